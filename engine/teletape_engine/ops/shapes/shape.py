"""The same elements in another shape or order: no arithmetic, and mostly no copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs, Axes, Axis, Ints, Slices
from teletape_engine.catalogue.define import check_dtype, op, sample
from teletape_engine.catalogue.elementwise import sum_to
from teletape_engine.catalogue.families import batch_all, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import Shape, Spec, axis_in, broadcast, shape_text


# ----------------------------------------------------------------------------------------------------------- reshape
def resolve(shape: Ints, own: Shape) -> Shape:
    """`shape` with the one -1 in it replaced by the length that gives as many elements as the shape `own` has.

    If both shapes have a zero, the others decide: (100, 0, 5) as (0, -1, 5) is (0, 100, 5), as in TensorFlow.

    Raises:
        InvalidArgumentError: Two of them, another negative length, or another number of elements.
    """
    unknown = [i for i, n in enumerate(shape) if n == -1]
    for i, n in enumerate(shape):
        if n < -1:
            raise InvalidArgumentError(f"Size {i} must be non-negative, not {n}")
    if len(unknown) > 1:
        raise InvalidArgumentError(f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]}")
    size, product = math.prod(own), math.prod(n for n in shape if n != -1)
    if not unknown:
        if product != size:
            raise InvalidArgumentError(
                f"Input to reshape is a tensor with {size} values, but the requested shape has {product}"
            )
        return shape
    if not product and not size:
        size, product = math.prod(n for n in own if n), math.prod(n for n in shape if n > 0)
    if product == 0 or size % product:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {size} values, but the requested shape requires a multiple of {product}"
        )
    return tuple(size // product if n == -1 else n for n in shape)


def _batch_reshape(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    return record(x, shape=(x.shape[0], *resolve(attrs["shape"], tuple(x.shape[1:]))))


@linear(
    infer=lambda x, *, shape: x.with_shape(resolve(shape, x.shape)),
    vjp=lambda ct, x_spec: ops.reshape(ct, shape=x_spec.shape),
    batch=_batch_reshape,
    samples=[
        sample((2, 3), shape=(3, 2)),
        sample((2, 3), shape=(-1,)),
        sample((), shape=(1, 1)),
        sample((1,), shape=()),
        sample((4, 0, 3), shape=(0, -1, 3)),
    ],
    tf=(function("reshape", "tensor", Conversion.INTS("shape")),),
    views=True,
    reach=Reach.MOVES,
)
def reshape(xp: ArrayModule, x: Array, *, shape: Ints) -> Array:
    """The same elements, in row-major order, in another shape; one length may be -1: it follows from the others."""
    return x.reshape(shape if x.size else resolve(shape, x.shape))


def _expand_dims_spec(x: Spec, *, axis: int) -> Spec:
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise InvalidArgumentError(f"Tried to expand dim index {axis} for tensor with {x.ndim} dimensions.")
    at = axis % (x.ndim + 1)
    return x.with_shape((*x.shape[:at], 1, *x.shape[at:]))


def _batch_expand_dims(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    return record(x, axis=attrs["axis"] % len(x.shape) + 1)


@linear(
    infer=_expand_dims_spec,
    vjp=lambda ct, x_spec: reshape(ct, shape=x_spec.shape),
    batch=_batch_expand_dims,
    samples=[sample((2, 3), axis=0), sample((2, 3), axis=-1), sample((2, 3), axis=1), sample((), axis=0)],
    tf=(function("expand_dims", "input", Conversion.ONE_INT("axis")),),
    views=True,
    reach=Reach.MOVES,
)
def expand_dims(xp: ArrayModule, x: Array, *, axis: Axis) -> Array:
    """x with a new axis of length 1 at `axis` of the result."""
    return xp.expand_dims(x, axis)


def _squeezed(shape: Shape, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes that squeeze removes."""
    ndim = len(shape)
    if axis is None or axis == ():
        return tuple(i for i, n in enumerate(shape) if n == 1)
    axes = (axis,) if isinstance(axis, int) else axis
    for number in axes:
        if not -ndim <= number < ndim:
            raise InvalidArgumentError(f"Tried to squeeze dim index {number} for tensor with {ndim} dimensions.")
        if shape[number] != 1:
            raise InvalidArgumentError(
                f"Can not squeeze dim[{number % ndim}], expected a dimension of 1, got {shape[number]}"
            )
    return tuple(sorted({number % ndim for number in axes}))


def _squeeze_spec(x: Spec, *, axis: int | tuple[int, ...] | None) -> Spec:
    gone = _squeezed(x.shape, axis)
    return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in gone))


def _batch_squeeze(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    gone = _squeezed(tuple(x.shape[1:]), attrs["axis"])
    return record(x, axis=tuple(axis + 1 for axis in gone)) if gone else x


@linear(
    infer=_squeeze_spec,
    vjp=lambda ct, x_spec: reshape(ct, shape=x_spec.shape),
    batch=_batch_squeeze,
    samples=[
        sample((1, 2, 1)),
        sample((1, 2, 1), axis=-1),
        sample((1, 2, 1), axis=(0, 2)),
        sample((2, 3)),
        sample((1, 1), axis=0),
    ],
    tf=(function("squeeze", "input", Conversion.AXES("axis", None)),),
    views=True,
    reach=Reach.MOVES,
)
def squeeze(xp: ArrayModule, x: Array, *, axis: Axes = None) -> Array:
    """x without the axes of `axis`, which must have length 1; without every such axis if none is named."""
    return xp.squeeze(x, axis=_squeezed(x.shape, axis))


# --------------------------------------------------------------------------------------------------------- transpose
def _order(perm: Ints | None, ndim: int) -> Ints:
    if perm is None:
        return tuple(range(ndim))[::-1]
    if len(perm) != ndim:
        raise InvalidArgumentError(
            f"transpose expects a vector of size {ndim}. But input(1) is a vector of size {len(perm)}"
        )
    for axis in perm:
        if not -ndim <= axis < ndim:
            raise InvalidArgumentError(f"{axis} is out of range [0 .. {ndim})")
    order = tuple(axis % ndim for axis in perm)
    for axis in range(ndim):
        if axis not in order:
            raise InvalidArgumentError(f"{axis} is missing from {{{','.join(map(str, perm))}}}.")
    return order


def _transpose_vjp(ct: Operand, x_spec: Spec, perm: Ints | None) -> Operand:
    order = _order(perm, x_spec.ndim)
    return transpose(ct, perm=tuple(order.index(axis) for axis in range(x_spec.ndim)))


def _batch_transpose(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    return record(x, perm=(0, *(axis + 1 for axis in _order(attrs["perm"], len(x.shape) - 1))))


@linear(
    infer=lambda x, *, perm: x.with_shape(tuple(x.shape[axis] for axis in _order(perm, x.ndim))),
    vjp=_transpose_vjp,
    batch=_batch_transpose,
    samples=[sample((2, 3, 4)), sample((2, 3, 4), perm=(1, 2, 0)), sample((2, 3), perm=(-1, 0)), sample(())],
    tf=(function("transpose", "a", Conversion.INTS("perm", None), Conversion.CONJUGATE("conjugate", False)),),
    views=True,
    reach=Reach.MOVES,
)
def transpose(xp: ArrayModule, x: Array, *, perm: Ints | None = None) -> Array:
    """Reorders the axes: axis i of the result is axis `perm[i]` of x. Without `perm` the order is reversed."""
    return xp.transpose(x, _order(perm, len(x.shape)))


# ------------------------------------------------------------------------------------------------------- repetition
def _broadcast_to_spec(x: Spec, *, shape: Shape) -> Spec:
    if len(shape) < x.ndim:
        raise InvalidArgumentError(
            f"Rank of input ({x.ndim}) must be no greater than rank of output shape ({len(shape)})."
        )
    if broadcast(x.shape, shape) != shape:
        raise InvalidArgumentError(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(shape)}")
    return x.with_shape(shape)


def _batch_broadcast_to(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,), shape = args, attrs["shape"]
    n, *rest = x.shape
    return record(reshape(x, shape=(n, *(1,) * (len(shape) - len(rest)), *rest)), shape=(n, *shape))


@linear(
    infer=_broadcast_to_spec,
    vjp=lambda ct, x_spec: sum_to(ct, x_spec.shape),
    batch=_batch_broadcast_to,
    samples=[
        sample((3,), shape=(2, 3)),
        sample((2, 1), shape=(4, 2, 3)),
        sample((), shape=(2,)),
        sample((2,), shape=(2,)),
    ],
    tf=(function("broadcast_to", "input", Conversion.LENGTHS("shape")),),
    views=True,
    reach=Reach.MOVES,
)
def broadcast_to(xp: ArrayModule, x: Array, *, shape: Shape) -> Array:
    """x repeated along new leading axes and along its axes of length 1."""
    return xp.broadcast_to(x, shape)


def _tile_spec(x: Spec, *, multiples: Ints) -> Spec:
    if len(multiples) != x.ndim:
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {x.ndim} but got length {len(multiples)}"
        )
    for i, times in enumerate(multiples):
        if times < 0:
            raise InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {times}")
    return x.with_shape(tuple(n * times for n, times in zip(x.shape, multiples, strict=True)))


def _tile_vjp(ct: Operand, x_spec: Spec, y_spec: Spec, multiples: Ints) -> Operand:
    if not y_spec.size:
        return broadcast_to(ops.reduce_sum(ct), shape=x_spec.shape)
    apart = tuple(part for pair in zip(multiples, x_spec.shape, strict=True) for part in pair)
    return ops.reduce_sum(reshape(ct, shape=apart), axis=tuple(range(0, 2 * x_spec.ndim, 2)))


@linear(
    infer=_tile_spec,
    vjp=_tile_vjp,
    batch=lambda record, args, batched, attrs: record(args[0], multiples=(1, *attrs["multiples"])),
    samples=[
        sample((2, 3), multiples=(2, 1)),
        sample((2,), multiples=(3,)),
        sample((), multiples=()),
        sample((2,), multiples=(0,)),
    ],
    tf=(function("tile", "input", Conversion.INTS("multiples")),),
    reach=Reach.MOVES,
)
def tile(xp: ArrayModule, x: Array, *, multiples: Ints) -> Array:
    """x repeated `multiples[i]` times along axis i."""
    return xp.tile(x, multiples)


# --------------------------------------------------------------------------------------------------- concat and stack
def _concat_spec(*specs: Spec, axis: int) -> Spec:
    first = specs[0]
    if first.ndim == 0:
        raise InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    if not -first.ndim <= axis < first.ndim:
        raise InvalidArgumentError(
            f"ConcatOp : Expected concatenating dimensions in the range [{-first.ndim}, {first.ndim}), but got {axis}"
        )
    at = axis % first.ndim
    for i, spec in enumerate(specs):
        check_dtype("ConcatV2", i, spec, first.dtype)
        shapes = f"shape[0] = {shape_text(first.shape)} vs. shape[{i}] = {shape_text(spec.shape)}"
        if spec.ndim != first.ndim:
            raise InvalidArgumentError(f"ConcatOp : Ranks of all input tensors should match: {shapes}")
        for k in range(first.ndim):
            if k != at and spec.shape[k] != first.shape[k]:
                raise InvalidArgumentError(f"ConcatOp : Dimension {k} in both shapes must be equal: {shapes}")
    return first.with_shape((*first.shape[:at], sum(spec.shape[at] for spec in specs), *first.shape[at + 1 :]))


def _part(xs_specs: tuple[Spec, ...], axis: int, i: int) -> Slices:
    """The index of input i in the result of a concat."""
    at = axis % xs_specs[0].ndim
    start = sum(spec.shape[at] for spec in xs_specs[:i])
    return (*((None, None, None),) * at, (start, start + xs_specs[i].shape[at], None))


def _cut(ct: Operand, index: Slices) -> Operand:
    return ops.strided_slice(ct, index=index)


def _placed(t: Operand, index: Slices, shape: Shape) -> Operand:
    return ops.strided_slice_grad(t, index=index, shape=shape)


def _batch_concat(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    args = batch_all(args, batched)
    return record(*args, axis=axis_in(attrs["axis"], len(args[0].shape) - 1) + 1)


@op(
    infer=_concat_spec,
    vjp=lambda ct, xs_specs, axis, i: _cut(ct, _part(xs_specs, axis, i)),
    jvp=lambda t, xs_specs, y_spec, axis, i: _placed(t, _part(xs_specs, axis, i), y_spec.shape),
    batch=_batch_concat,
    samples=[
        sample((2, 3), (2, 1), (2, 2), axis=-1),
        sample((1, 2), (3, 2), axis=0),
        sample((2,), axis=0),
        sample((2, 0), (2, 1), axis=1),
    ],
    op_type="ConcatV2",
    tf=(by_hand("concat", "a list of one tensor is an identity"),),
    traits=[Trait.JOINS],
    reach=Reach.MOVES,
)
def concat(xp: ArrayModule, *xs: Array, axis: Axis) -> Array:
    """Joins arrays of one rank along `axis`; their other axes have the same lengths."""
    return xp.concatenate(xs, axis=axis)


def _stack_spec(*specs: Spec, axis: int) -> Spec:
    first = specs[0]
    for i, spec in enumerate(specs):
        check_dtype("Pack", i, spec, first.dtype)
        if spec.shape != first.shape:
            raise InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first.shape)} != values[{i}].shape = "
                f"{shape_text(spec.shape)}"
            )
    if not -first.ndim - 1 <= axis <= first.ndim:
        raise InvalidArgumentError(f"Argument `axis` = {axis} not in range [{-first.ndim - 1}, {first.ndim + 1})")
    at = axis % (first.ndim + 1)
    return first.with_shape((*first.shape[:at], len(specs), *first.shape[at:]))


def _layer(y_spec: Spec, axis: int, i: int) -> Slices:
    """The index of input i in the result of a stack."""
    return (*((None, None, None),) * (axis % y_spec.ndim), i)


def _batch_stack(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    args = batch_all(args, batched)
    return record(*args, axis=attrs["axis"] % len(args[0].shape) + 1)


@op(
    infer=_stack_spec,
    vjp=lambda ct, y_spec, axis, i: _cut(ct, _layer(y_spec, axis, i)),
    jvp=lambda t, y_spec, axis, i: _placed(t, _layer(y_spec, axis, i), y_spec.shape),
    batch=_batch_stack,
    samples=[sample((2, 3), (2, 3)), sample((2, 3), (2, 3), (2, 3), axis=-1), sample((), ()), sample((2,), axis=1)],
    op_type="Pack",
    tf=(by_hand("stack", "a tensor is unstacked first, and an empty list gives an empty tensor"),),
    traits=[Trait.JOINS],
    reach=Reach.MOVES,
)
def stack(xp: ArrayModule, *xs: Array, axis: Axis = 0) -> Array:
    """Joins arrays of one shape along a new axis, which is `axis` of the result."""
    return xp.stack(xs, axis=axis)
