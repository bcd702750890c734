"""The recorded form of a result, and the comparison of two of them.

Every kind of value keeps its kind: a tensor is not an array, a list is not a tuple, None is not zero. Python's None,
booleans, integers, floats, strings and lists stand as themselves in JSON; the rest is an object with one telling key.
Floats are written with the fewest digits that read back to the same value of their dtype.
"""

from __future__ import annotations

import math
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

_ARRAYS = ("tensor", "variable", "array", "scalar")
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


def difference(
    expected: Any, got: Any, rtol: float | None = None, atol: float | None = None, at: str = "result"
) -> str:
    """Where and how two encoded results first differ, in one line; empty where they agree."""
    if isinstance(expected, dict) and isinstance(got, dict) and set(expected) == set(got):
        kind = next(iter(expected))
        if kind in _ARRAYS:
            return _array_difference(kind, expected, got, rtol, atol, at)
        if kind in ("dict", "slices"):
            return _dict_difference(expected[kind], got[kind], rtol, atol, at)
        return difference(expected[kind], got[kind], rtol, atol, at)
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{at}: expected {len(expected)} items, got {len(got)}: {_brief(expected)} against {_brief(got)}"
        parts = (difference(a, b, rtol, atol, f"{at}[{i}]") for i, (a, b) in enumerate(zip(expected, got, strict=True)))
        return next((part for part in parts if part), "")
    if type(expected) is float and type(got) is float:
        # A python float that a program returns came out of a float32 tensor.
        return _element_difference("float32", [expected], [got], rtol, atol, at)
    if type(expected) is not type(got) or expected != got:
        return f"{at}: expected {_brief(expected)}, got {_brief(got)}"
    return ""


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


def _dict_difference(
    expected: dict[str, Any], got: dict[str, Any], rtol: float | None, atol: float | None, at: str
) -> str:
    if set(expected) != set(got):
        return f"{at}: expected keys {sorted(expected)}, got {sorted(got)}"
    parts = (difference(expected[key], got[key], rtol, atol, f"{at}[{key!r}]") for key in expected)
    return next((part for part in parts if part), "")


def _array_difference(
    kind: str, expected: dict[str, Any], got: dict[str, Any], rtol: float | None, atol: float | None, at: str
) -> str:
    if expected[kind] != got[kind]:
        return f"{at}: expected {kind} {expected[kind]}, got {kind} {got[kind]}"
    dtype = expected[kind].partition("[")[0]
    return _element_difference(dtype, expected["data"], got["data"], rtol, atol, at)


def _element_difference(
    dtype: str, expected: list[Any], got: list[Any], rtol: float | None, atol: float | None, at: str
) -> str:
    """Compares elements of one dtype: exactly, but for floating ones that are finite on both sides."""
    if dtype not in TOLERANCES:
        wrong = [i for i, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b]
    else:
        a, b = _numbers(expected), _numbers(got)
        relative, absolute = TOLERANCES[dtype]
        relative = relative if rtol is None else rtol
        absolute = absolute if atol is None else atol
        finite = np.isfinite(a)
        absolute *= float(max(1.0, np.max(np.abs(a[finite]), initial=0.0)))
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


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
