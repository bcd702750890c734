"""TensorFlow's functions of teletape_engine.ops.sorting.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_ARGSORT = ops.argsort
_SORT = ops.sort
_TOP_K = ops.top_k
_SEARCHSORTED = ops.searchsorted
_BUCKETIZE = ops.bucketize


class TopKV2(NamedTuple):
    """The results of top_k."""

    values: Tensor
    indices: Tensor


def argsort(
    values: to.TensorInput,
    axis: to.IntInput = -1,
    direction: str = "ASCENDING",
    stable: Any = False,
    name: str | None = None,
) -> Tensor:
    """The indices that sort the elements along `axis`, as int32; equal elements keep their order.

    `direction` is "ASCENDING" or "DESCENDING".
    """
    try:
        values = to.tensor(values)
        checks.known_direction(values, direction)
        return call(_ARGSORT, (values,), axis=to.whole(axis), direction=direction)
    except BaseException as error:
        report(error)
        raise


def sort(
    values: to.TensorInput, axis: to.IntInput = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """The elements in order along `axis`; `direction` is "ASCENDING" or "DESCENDING"."""
    try:
        values = to.tensor(values)
        checks.known_direction(values, direction)
        return call(_SORT, (values,), axis=to.whole(axis), direction=direction)
    except BaseException as error:
        report(error)
        raise


def top_k(
    input: to.TensorInput,
    k: to.IntInput = 1,
    sorted: Any = True,
    index_type: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> TopKV2:
    """The k largest elements along the last axis, the largest first, and their indices; equal ones by their index."""
    try:
        input = to.tensor(input)
        return TopKV2(*call(_TOP_K, (input,), k=to.whole(k), index_type=to.dtype(index_type)))
    except BaseException as error:
        report(error)
        raise


def searchsorted(
    sorted_sequence: to.TensorInput,
    values: to.TensorInput,
    side: str = "left",
    out_type: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The index of each of `values` [..., m] in `sorted_sequence` [..., n], before or after equal elements.

    Both have as many rows; their first axes may number them in different ways.

    `side` is "left" (before them) or "right".
    """
    try:
        sorted_sequence = to.tensor(sorted_sequence)
        values = to.like(values, sorted_sequence)
        checks.known_side(sorted_sequence, values, side, out_type)
        return call(_SEARCHSORTED, (sorted_sequence, values), side=side, out_type=to.dtype(out_type))
    except BaseException as error:
        report(error)
        raise


def Bucketize(input: to.TensorInput, boundaries: to.TensorInput, name: str | None = None) -> Tensor:
    """The number of `boundaries`, a sorted vector, that are not greater than each element of x: int32."""
    try:
        input = to.tensor(input)
        boundaries = to.tensor(boundaries)
        return call(_BUCKETIZE, (input, boundaries))
    except BaseException as error:
        report(error)
        raise
