"""The recorded form of a result, and the comparison of two of them.

Every kind of value keeps its kind: a tensor is not an array, a list is not a tuple, None is not zero. Python's None,
booleans, integers, floats, strings and lists stand as themselves in JSON; the rest is an object with one telling key.
Floats are written with the fewest digits that read back to the same value of their dtype.

Two machines round sums differently, so two results agree within a tolerance. It follows from the dtype, from the
largest element of an array, and from the spread: how far the recorder saw the array move when inputs and kernels
rounded otherwise (`record.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Relative, and absolute for a result whose largest element is 1 or less (it grows with that element).
TOLERANCES = {
    "float16": (5e-3, 1e-3),
    "bfloat16": (2e-2, 1e-2),
    "float32": (1e-5, 1e-6),
    "complex64": (1e-5, 1e-6),
    "float64": (1e-9, 1e-11),
    "complex128": (1e-9, 1e-11),
}

#: A few recordings show a part of how far roundings move a result; another machine's may move it further.
BEYOND_SPREAD = 8.0


@dataclass(frozen=True)
class Tolerance:
    """How closely two results agree.

    Attributes:
        rtol, atol: Replace those of the dtypes.
        spreads: How far arrays moved while recording, by their place ("result[6]"): 8 times as much is allowed.
    """

    rtol: float | None = None
    atol: float | None = None
    spreads: Mapping[str, float] = field(default_factory=dict)

    def of(self, dtype: str, largest: float, at: str) -> tuple[float, float]:
        """The relative and the absolute tolerance of an array with this largest element at this place."""
        relative, absolute = TOLERANCES[dtype]
        relative = relative if self.rtol is None else self.rtol
        absolute = absolute if self.atol is None else self.atol
        return relative, absolute * max(1.0, largest) + BEYOND_SPREAD * self.spreads.get(at, 0.0)


_ARRAYS = ("tensor", "variable", "array", "scalar")
_PYTHON_FLOAT = "float32"  # a Python float that a program returns came out of such a tensor
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(value: Any, tf: Any) -> Any:
    """``value`` as data for JSON. A TypeError names a kind of value that programs may not return."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and not isinstance(value, np.generic):
        return {"float": _special(value)} if not math.isfinite(value) else value
    if isinstance(value, list):
        return [encode(item, tf) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, tf) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): encode(value[key], tf) for key in sorted(value, key=str)}}
    if isinstance(value, tf.IndexedSlices):
        parts = {name: encode(getattr(value, name), tf) for name in ("values", "indices", "dense_shape")}
        return {"slices": parts}
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": [encode(each, tf) for each in (value.shape, value.flat_values, *value.nested_row_splits)]}
    if isinstance(value, tf.Variable):
        return _encode_array("variable", np.asarray(value.numpy()))
    if isinstance(value, tf.Tensor):
        return _encode_array("tensor", np.asarray(value.numpy()))
    if isinstance(value, np.ndarray):
        return _encode_array("array", value)
    if isinstance(value, np.generic):
        return _encode_array("scalar", np.asarray(value))
    if hasattr(value, "as_list"):
        return {"shape": value.as_list()}
    if hasattr(value, "as_numpy_dtype"):
        return {"dtype": value.name}
    raise TypeError(
        f"a program returned a {type(value).__name__}: return tensors, arrays, numbers, strings, lists, dicts"
    )


def difference(expected: Any, got: Any, tolerance: Tolerance = Tolerance()) -> str:
    """Where and how two encoded results first differ, in one line; empty where they agree."""
    texts = (_difference(at, *parts, tolerance) for at, *parts in _pairs(expected, got, "result"))
    return next((text for text in texts if text), "")


def spreads(expected: Any, others: list[Any]) -> dict[str, float]:
    """How far the floating arrays of the other results are from those of `expected`, by place.

    Places are left out that the tolerance of their dtype covers, and those where one of the results is further away
    than a hundredth of the largest element: that is no rounding, but another choice, as between two elements that are
    almost equal.
    """
    farthest: dict[str, float] = {}
    least: dict[str, float] = {}
    for other in others:
        for at, a, b in _pairs(expected, other, "result"):
            dtype, numbers = _floats(a)
            if not dtype or dtype != (other_floats := _floats(b))[0]:
                continue
            finite = np.isfinite(numbers) & np.isfinite(other_floats[1])
            with np.errstate(invalid="ignore"):
                distance = float(np.max(np.abs(numbers - other_floats[1]), where=finite, initial=0.0))
            largest = _largest(numbers)
            least[at] = Tolerance().of(dtype.partition("[")[0], largest, at)[1]
            rounded = distance <= max(1.0, largest) / 100
            farthest[at] = max(farthest.get(at, 0.0), distance if rounded else math.inf)
    return {at: float(f"{far:.1e}") for at, far in farthest.items() if least[at] < BEYOND_SPREAD * far < math.inf}


def moves(result: Any) -> bool:
    """Whether an encoded result has floating numbers."""
    return any(_floats(part)[0] for _, part, _ in _pairs(result, result, "result"))


def _pairs(expected: Any, got: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
    """The innermost parts of two results and their places; where the structures differ, the parts that do."""
    if isinstance(expected, dict) and isinstance(got, dict) and set(expected) == set(got):
        kind = next(iter(expected))
        a, b = expected[kind], got[kind]
        if kind in _ARRAYS:
            yield at, expected, got
        elif kind not in ("dict", "slices"):
            yield from _pairs(a, b, at)
        elif set(a) != set(b):
            yield at, expected, got
        else:
            for key in a:
                yield from _pairs(a[key], b[key], f"{at}[{key!r}]")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (a, b) in enumerate(zip(expected, got, strict=True)):
            yield from _pairs(a, b, f"{at}[{i}]")
    else:
        yield at, expected, got


def _difference(at: str, expected: Any, got: Any, tolerance: Tolerance) -> str:
    """How two innermost parts differ."""
    if isinstance(expected, dict) and isinstance(got, dict) and set(expected) == set(got):
        kind = next(iter(expected))
        if kind not in _ARRAYS:
            return f"{at}: expected keys {sorted(expected[kind])}, got {sorted(got[kind])}"
        if expected[kind] != got[kind]:
            return f"{at}: expected {kind} {expected[kind]}, got {kind} {got[kind]}"
        dtype = expected[kind].partition("[")[0]
        return _element_difference(dtype, expected["data"], got["data"], tolerance, at)
    if isinstance(expected, list) and isinstance(got, list):
        return f"{at}: expected {len(expected)} items, got {len(got)}: {_brief(expected)} against {_brief(got)}"
    if type(expected) is float and type(got) is float:
        return _element_difference(_PYTHON_FLOAT, [expected], [got], tolerance, at)
    if type(expected) is not type(got) or expected != got:
        return f"{at}: expected {_brief(expected)}, got {_brief(got)}"
    return ""


def _floats(part: Any) -> tuple[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The type and the numbers of an innermost part; an empty type where it holds no floating ones."""
    if type(part) is float:
        return _PYTHON_FLOAT, np.array([part])
    kind = next(iter(part)) if isinstance(part, dict) else ""
    if kind in _ARRAYS and part[kind].partition("[")[0] in TOLERANCES:
        return part[kind], _numbers(part["data"])
    return "", np.zeros(0)


def _encode_array(kind: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """dtype[shape] and the elements, row-major; complex ones as pairs, strings decoded."""
    flat = array.reshape(-1)
    if array.dtype.kind in "OSU":
        data: list[Any] = [item.decode() if isinstance(item, bytes) else str(item) for item in flat]
        name = "string"
    elif array.dtype.kind == "c":
        data = [[_float(item.real), _float(item.imag)] for item in flat]
        name = array.dtype.name
    elif array.dtype.kind in "biu":
        data = flat.tolist()
        name = array.dtype.name
    else:
        data = [_float(item) for item in flat]
        name = array.dtype.name
    return {kind: f"{name}{list(array.shape)}", "data": data}


def _float(item: Any) -> float | str:
    """The shortest decimal that reads back to ``item`` in its own dtype; NaN and infinities by name."""
    exact = float(item)
    if not math.isfinite(exact):
        return _special(exact)
    short = float(str(item))
    return short if type(item)(short) == item else exact


def _special(value: float) -> str:
    return next(name for name, special in _SPECIAL.items() if value == special or (value != value and name == "nan"))


def _element_difference(dtype: str, expected: list[Any], got: list[Any], tolerance: Tolerance, at: str) -> str:
    """Compares elements of one dtype: exactly, but for floating ones that are finite on both sides."""
    if dtype not in TOLERANCES:
        wrong = [i for i, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b]
    else:
        a, b = _numbers(expected), _numbers(got)
        finite = np.isfinite(a)
        relative, absolute = tolerance.of(dtype, _largest(a), at)
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= absolute + relative * np.abs(a)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = np.flatnonzero(~np.where(finite & np.isfinite(b), close, same)).tolist()
        if dtype.startswith("complex"):
            wrong = sorted({i // 2 for i in wrong})
    if not wrong:
        return ""
    i = wrong[0]
    return (
        f"{at}: {len(wrong)} of {len(expected)} elements differ, the first at {i}: expected {expected[i]}, got {got[i]}"
    )


def _numbers(data: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Floats out of their JSON form; a complex number as two of them, compared part by part."""
    flat = [part for item in data for part in (item if isinstance(item, list) else [item])]
    return np.array([_SPECIAL.get(part, part) if isinstance(part, str) else part for part in flat], dtype=np.float64)


def _largest(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The largest finite absolute value; 0 of none."""
    return float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=0.0))


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
