"""Patterns through one call: from those of its inputs to that of its result, by the op's `Reach`.

An op that only moves elements says where to by moving their numbers: its own forward runs on 1, 2, 3, …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.binding import Bound, CallPlan
from teletape_engine.catalogue.op import Reach
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.derivatives.sparsity.pattern import Ints, Pattern, index_dtype, joined, union
from teletape_engine.spec import Shape, axes_in

#: Returns an input of a call, or its result, as a host array; None: the tape has not kept it.
Residual = Callable[[int], Any]


def through(plan: CallPlan, patterns: Mapping[int, Pattern], residual: Residual) -> Pattern:
    """The pattern of a call's result.

    Args:
        plan: Of a call of an op.
        patterns: Those of its inputs through which the result depends on the source; one at least.
        residual: What the tape has kept of the call.

    Raises:
        ResourceExhaustedError: The pattern has too many entries.
    """
    bound = plan.bound
    assert isinstance(bound, Bound)
    if bound.selects:
        return _before_selects(bound, patterns)
    if bound.op.reach is Reach.MOVES:
        moved = _moved(bound, patterns, residual)
        return everything(patterns, bound.spec.size) if moved is None else moved
    rule = _RULES.get(bound.op.reach, _all)
    return union([rule(plan, i, pattern, residual) for i, pattern in patterns.items()])


def _before_selects(bound: Bound, patterns: Mapping[int, Pattern]) -> Pattern:
    """Of a call of several results: a row for each stacked matrix, or one for all that each of the results has."""
    if bound.op.reach is not Reach.MATRICES or len(bound.specs) > 1:
        return everything(patterns, 1)
    *lead, rows, columns = bound.specs[0].shape
    return patterns[0].gather(np.arange(bound.specs[0].size) // max(rows * columns, 1), math.prod(lead))


def everything(patterns: Mapping[int, Pattern], size: int) -> Pattern:
    """`size` rows, each with all that any of the patterns has."""
    whole = [pattern.gather(np.zeros(pattern.rows, np.int32), 1) for pattern in patterns.values()]
    return union(whole).take(np.zeros(size, np.int32))


def _all(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    return everything({i: pattern}, plan.bound.spec.size)


def _elements(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    shape, out = plan.bound.specs[i].shape, plan.bound.spec.shape
    return pattern if shape == out else pattern.take(_numbered(shape, out))


def _numbered(shape: Shape, out: Shape) -> Ints:
    """For each element of an array of the shape `out` the number of that of an array that is broadcast to it."""
    size = math.prod(shape)
    return np.broadcast_to(np.arange(size, dtype=index_dtype(size)).reshape(shape), out).ravel()


# ------------------------------------------------------------------------------------------------- elements that move
def _moved(bound: Bound, patterns: Mapping[int, Pattern], residual: Residual) -> Pattern | None:
    """The pattern of a result whose op only moves elements; None if the tape does not know where it moves them."""
    total = sum([pattern.rows for pattern in patterns.values()])
    arrays, first, dtype = [], 1, index_dtype(total + 1)
    for i, spec in enumerate(bound.specs):
        if i in patterns:
            arrays.append(np.arange(first, first + spec.size, dtype=dtype).reshape(spec.shape))
            first += spec.size
        elif spec.differentiable:  # a constant of the program
            arrays.append(np.zeros(spec.shape, dtype))
        else:
            array = residual(i)
            if array is None:
                return None
            arrays.append(array)
    attrs = {name: 0 if name in _FILLS else value for name, value in bound.attrs.items()}
    numbers = np.asarray(bound.op.forward(np, *arrays, **attrs))
    return joined(list(patterns.values())).take(numbers.reshape(-1).astype(dtype, copy=False) - dtype.type(1))


#: Attributes that hold what an op fills the rest of its result with.
_FILLS: Final = frozenset(["padding_value", "constant_value"])


def _sums(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    bound = plan.bound
    assert isinstance(bound, Bound)
    rule = bound.op.rule(bound.op.vjp, i)
    assert not isinstance(rule, NoGradient)
    size = bound.spec.size
    everywhere = dict(enumerate(range(len(bound.specs) + 1)))
    residuals = [residual(position) for position in everywhere]
    numbers = np.arange(1, size + 1, dtype=index_dtype(size + 1)).reshape(bound.spec.shape)
    into = np.asarray(rule.bind(bound, i, everywhere)(numbers, residuals))
    return pattern.gather(into.reshape(-1).astype(numbers.dtype, copy=False) - numbers.dtype.type(1), size)


def _segments(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    ids = residual(1)
    if ids is None:
        return _all(plan, i, pattern, residual)
    shape = plan.bound.spec.shape
    inner = math.prod(shape[1:])
    rows = np.where((ids >= 0) & (ids < shape[0]), ids, -1).reshape(-1, 1).astype(np.int64)
    into = np.where(rows < 0, -1, rows * inner + np.arange(inner))
    return pattern.gather(into.reshape(-1), plan.bound.spec.size)


# ------------------------------------------------------------------------------------------------- axes that are mixed
def _by_groups(plan: CallPlan, i: int, pattern: Pattern, mixed: frozenset[int], mixed_out: frozenset[int]) -> Pattern:
    """Each element of the result depends on the elements that agree with it in all axes that are not mixed."""
    shape, out = plan.bound.specs[i].shape, plan.bound.spec.shape
    rest, rest_out = _without(shape, mixed), _without(out, mixed_out)
    if rest != rest_out:
        return everything({i: pattern}, plan.bound.spec.size)
    groups_of = tuple([1 if axis in mixed else n for axis, n in enumerate(shape)])
    groups_out = tuple([1 if axis in mixed_out else n for axis, n in enumerate(out)])
    return pattern.gather(_numbered(groups_of, shape), math.prod(rest)).take(_numbered(groups_out, out))


def _without(shape: Shape, axes: frozenset[int]) -> Shape:
    return tuple([n for axis, n in enumerate(shape) if axis not in axes])


def _lines(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    shape, out, attrs = plan.bound.specs[i].shape, plan.bound.spec.shape, plan.bound.attrs
    last = tuple(range(-attrs.get("rank", 1), 0))
    mixed = frozenset(axes_in(attrs.get("axis", last), len(shape)))
    if len(out) == len(shape):
        return _by_groups(plan, i, pattern, mixed, mixed)
    return _by_groups(plan, i, pattern, mixed, frozenset())


def _matrices(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    shape, out = plan.bound.specs[i].shape, plan.bound.spec.shape
    lead = len(shape) - 2
    return _by_groups(plan, i, pattern, frozenset([lead, lead + 1]), frozenset(range(lead, len(out))))


def _images(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    shape, out = plan.bound.specs[i].shape, plan.bound.spec.shape
    lead = len(shape) - 3
    return _by_groups(plan, i, pattern, frozenset(range(lead, lead + 3)), frozenset(range(lead, len(out))))


def _windows(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    """Of a convolution and its transpose: each element of a filter, alone, moves the pixels' numbers."""
    bound = plan.bound
    assert isinstance(bound, Bound)
    if i != 0:
        return _all(plan, i, pattern, residual)
    shape, out = bound.specs[0].shape, bound.spec.shape
    height, width, inner, _ = bound.specs[1].shape
    channels, channels_out = shape[-1], out[-1]
    groups = (channels_out if "shape" in bound.attrs else channels) // inner  # a transpose's result has the images
    pixels = math.prod(shape[:-1])
    if not (pixels and groups and math.prod(out)):
        return _all(plan, i, pattern, residual)
    group_of = np.arange(channels) // (channels // groups)
    into = np.arange(pixels)[:, None] * groups + group_of
    grouped = pattern.gather(into.reshape(-1), pixels * groups)
    group_of_out = np.arange(channels_out) // (channels_out // groups)
    numbers = np.arange(1.0, pixels + 1).reshape(*shape[:-1], 1)
    attrs = dict(bound.attrs)
    if "shape" in attrs:
        attrs["shape"] = (*out[:-1], 1)
    filters = (
        None if any(tracked == 1 for tracked, _ in plan.rules) else residual(1)
    )  # None: not the program's constant
    used = np.ones(height * width, bool) if filters is None else filters.any(axis=(2, 3)).reshape(-1)
    parts = [Pattern.empty(pattern.width, bound.spec.size)]
    for k in np.flatnonzero(used):
        alone = np.zeros(height * width)
        alone[k] = 1
        moved = bound.op.forward(np, numbers, alone.reshape(height, width, 1, 1), **attrs)
        pixel = np.rint(np.asarray(moved)).astype(np.int64).reshape(-1, 1) - 1
        parts.append(grouped.take(np.where(pixel < 0, -1, pixel * groups + group_of_out).reshape(-1)))
    return union(parts)


def _products(plan: CallPlan, i: int, pattern: Pattern, residual: Residual) -> Pattern:
    """Of a matrix product: input 0 is summed over its columns, input 1 over its rows, unless they are transposed."""
    shape, out, attrs = plan.bound.specs[i].shape, plan.bound.spec.shape, plan.bound.attrs
    which = "ab"[i]
    turned = attrs[f"transpose_{which}"] or attrs[f"adjoint_{which}"]
    summed = len(shape) - (1 if (i == 0) is not turned else 2)
    rest = tuple([1 if axis == summed else n for axis, n in enumerate(shape)])
    groups = pattern.gather(_numbered(rest, shape), math.prod(rest))
    length = shape[-2] if summed == len(shape) - 1 else shape[-1]
    placed = (*shape[:-2], length, 1) if i == 0 else (*shape[:-2], 1, length)
    return groups.take(_numbered(placed, out))


_RULES: Final[Mapping[Reach, Callable[[CallPlan, int, Pattern, Residual], Pattern]]] = {
    Reach.ALL: _all,
    Reach.ELEMENTS: _elements,
    Reach.SUMS: _sums,
    Reach.LINES: _lines,
    Reach.SEGMENTS: _segments,
    Reach.MATRICES: _matrices,
    Reach.IMAGES: _images,
    Reach.WINDOWS: _windows,
    Reach.PRODUCTS: _products,
}
