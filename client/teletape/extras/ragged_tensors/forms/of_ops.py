"""The forms of ops for ragged tensors: elementwise ops act on the flat values, others have a form in `OPS`.

Any other op refuses ragged tensors; the error has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from teletape.core.calls.dispatch import call, tensor_or_ragged
from teletape.extras.ragged_tensors.forms import arrangement, gathering, products, reductions
from teletape.extras.ragged_tensors.forms.elementwise import acts_on_elements, elementwise
from teletape.extras.ragged_tensors.functions import map_flat_values
from teletape.extras.ragged_tensors.tensor import Form, RaggedTensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op


def _first(function: Callable[..., Any], *attributes: str) -> Form:
    """Returns the form of an op with one input: a function of the input and of these attributes."""

    def form(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return function(args[0], *[attrs.get(name) for name in attributes])

    return form


def _gather(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    params, indices = args
    return gathering.gather(params, indices, axis=attrs.get("axis", 0), batch_dims=attrs.get("batch_dims", 0))


def _bits(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    (value,) = args
    return value.with_flat_values(call(op, (value.flat_values,), **attrs))


def _segments(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Unsorted segments of ragged values: values and ids with the same rows become flat values and flat ids."""
    data, ids = map(tensor_or_ragged, args)
    if not isinstance(data, RaggedTensor) or not isinstance(ids, RaggedTensor):
        raise ValueError(f"{op.name}: data and segment ids are both ragged, with the same rows, or neither is")
    values = map_flat_values(lambda values, _: values, data, ids).flat_values  # it checks the rows
    if op not in (ops.unsorted_segment_mean, ops.unsorted_segment_sqrt_n):
        return call(op, (values, ids.flat_values), **attrs)
    total, count = (
        call(ops.unsorted_segment_sum, (each, ids.flat_values), **attrs)
        for each in (values, call(ops.ones_like, (values,)))
    )
    return call(ops.div, (total, count if op is ops.unsorted_segment_mean else call(ops.sqrt, (count,))))


OPS: Final[Mapping[Op, Form]] = {
    **dict.fromkeys(reductions.SEGMENT_OPS, reductions.reduce),
    **dict.fromkeys((ops.reduce_all, ops.reduce_any), reductions.reduce_truths),
    **dict.fromkeys(
        (
            ops.unsorted_segment_max,
            ops.unsorted_segment_mean,
            ops.unsorted_segment_min,
            ops.unsorted_segment_prod,
            ops.unsorted_segment_sqrt_n,
            ops.unsorted_segment_sum,
        ),
        _segments,
    ),
    ops.bitcast: _bits,
    ops.concat: lambda op, args, attrs: arrangement.concat(list(args), attrs["axis"]),
    ops.cumsum: reductions.cumsum,
    ops.expand_dims: _first(arrangement.expand_dims, "axis"),
    ops.gather: _gather,
    ops.matmul: products.matmul,
    ops.nonzero: _first(gathering.nonzero),
    ops.reduce_mean: reductions.reduce_mean,
    ops.reduce_std: reductions.reduce_std,
    ops.reduce_variance: reductions.reduce_variance,
    ops.reverse: _first(arrangement.reverse, "axis"),
    ops.softmax: reductions.softmax,
    ops.stack: lambda op, args, attrs: arrangement.stack(list(args), attrs.get("axis", 0)),
    ops.squeeze: _first(arrangement.squeeze, "axis"),
    ops.tile: _first(arrangement.tile, "multiples"),
}


def form_of(op: Op) -> Form | None:
    """The form of an op for ragged tensors; None: it takes none."""
    form = OPS.get(op)
    return elementwise if form is None and acts_on_elements(op) else form
