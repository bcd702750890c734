"""Whether a ufunc gives the same bytes in parts as for a whole array: tried once for its dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.plans.ir.buffers import View

MULTIPLE: Final = 64  #: The length of each part but the last is a multiple of this number of elements.


def splits(ufunc: Any, inputs: Sequence[View], output: View) -> bool:
    """Whether the ufunc gives the same bytes in parts of a multiple of 64 elements; tried once for its dtypes.

    Its loop may end with code of another kind, which chooses another one of two NaNs.
    """
    uniform = tuple([view.layout.size == 1 or not any(view.layout.strides) for view in inputs])
    key = (ufunc, *[view.layout.dtype for view in (*inputs, output)], uniform)
    same = _tried.get(key)
    if same is None:
        tried = [_specials(view.layout.dtype, number) for number, view in enumerate(inputs)]
        same = _tried[key] = all(
            _same_in_parts(ufunc, parts, output.layout.dtype) for parts in _with_numbers(tried, uniform)
        )
    return same


def _with_numbers(inputs: list[Any], uniform: tuple[bool, ...]) -> list[list[Any]]:
    """The inputs; if some are one number for all elements, several such numbers in turn."""
    if not any(uniform):
        return [inputs]
    return [
        [x[at : at + 1] if is_one else x for x, is_one in zip(inputs, uniform, strict=True)] for at in range(0, 40, 8)
    ]


def _same_in_parts(ufunc: Any, inputs: Sequence[Any], dtype: Any) -> bool:
    with np.errstate(all="ignore"):
        whole = ufunc(*inputs, out=np.empty(_TRIED, dtype))
        parts, at = np.empty_like(whole), 0
        for length in _LENGTHS:
            part = slice(at, at + length)
            ufunc(*[x if x.size == 1 else x[part] for x in inputs], out=parts[part])
            at += length
    return bool(whole.tobytes() == parts.tobytes())


def _specials(dtype: Any, seed: int) -> Any:
    """Numbers of all kinds, in an order of their own for each seed."""
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return random.random(_TRIED) < 0.5
    if dtype.kind in "iu":
        return random.integers(0, 100, _TRIED).astype(dtype)
    numbers = random.standard_normal(_TRIED) * 10.0 ** random.integers(-6, 6, _TRIED)
    kinds = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 88.8, -103.5, 1e5]
    chosen = random.random(_TRIED) < 0.6
    numbers[chosen] = random.choice(kinds, int(chosen.sum()))
    with np.errstate(all="ignore"):
        array = numbers.astype(dtype)
    negative = np.isnan(array) & (random.random(_TRIED) < 0.5)
    array[negative] = np.copysign(array[negative], -1)
    return array


_LENGTHS: Final = (64, 128, 192, 256, 320, 1024, 51)
_TRIED: Final = sum(_LENGTHS)
_tried: Final[dict[Any, bool]] = {}
