"""A border around an array: of one value, or of its own mirror image."""

from __future__ import annotations

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Pairs, Slices
from teletape_engine.catalogue.define import op, sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import Number, Shape, Spec, element, shape_text


def _check_paddings(shape: Shape, paddings: Pairs) -> None:
    if len(paddings) != len(shape):
        raise InvalidArgumentError(
            f"The first dimension of paddings must be the rank of inputs[{len(paddings)},2] {shape_text(shape)}"
        )
    for before, after in paddings:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")


def _pad_spec(x: Spec, *, paddings: Pairs, constant_value: Number) -> Spec:
    _check_paddings(x.shape, paddings)
    element(constant_value, x.dtype, "constant_value")
    return x.with_shape(tuple(n + before + after for n, (before, after) in zip(x.shape, paddings, strict=True)))


def _inside(x_spec: Spec, paddings: Pairs) -> Slices:
    return tuple((before, before + n, None) for n, (before, _) in zip(x_spec.shape, paddings, strict=True))


@op(
    infer=_pad_spec,
    vjp=lambda ct, x_spec, paddings: strided_slice(ct, index=_inside(x_spec, paddings)),
    jvp=lambda t, paddings: ops.pad(t, paddings=paddings),
    batch=lambda record, args, batched, attrs: record(args[0], **{**attrs, "paddings": ((0, 0), *attrs["paddings"])}),
    samples=[
        sample((2, 3), paddings=((1, 0), (0, 2))),
        sample((2,), paddings=((1, 2),), constant_value=5),
        sample((), paddings=()),
    ],
    tf=(by_hand("pad", "the mode chooses between two ops"),),
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def pad(xp: ArrayModule, x: Array, *, paddings: Pairs, constant_value: Number = 0) -> Array:
    """x with `constant_value` around it: paddings[i] elements before and after along axis i."""
    out = xp.full([n + sum(both) for n, both in zip(x.shape, paddings, strict=True)], constant_value, x.dtype)
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, paddings, strict=True))] = x
    return out


@composite(
    samples=[
        sample((3, 4), paddings=((1, 2), (0, 3)), mode="REFLECT"),
        sample((3, 2), paddings=((3, 1), (0, 2)), mode="SYMMETRIC"),
    ],
)
def mirror_pad(x: Operand, *, paddings: Pairs, mode: str) -> Operand:
    """x with its mirror image around it; REFLECT leaves out the outermost element, SYMMETRIC repeats it."""
    _check_paddings(x.shape, paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise InvalidArgumentError(f"mode must be REFLECT or SYMMETRIC, found {mode!r}")
    skip = 1 if mode == "REFLECT" else 0
    for axis, (before, after) in enumerate(paddings):
        n = x.shape[axis]
        if max(before, after) > n - skip:
            than = "less than the dimension size" if skip else "no greater than the dimension size"
            raise InvalidArgumentError(
                f"paddings must be {than}: {before}, {after} not {'less' if skip else 'no greater'} than {n}"
            )
        if not before and not after:
            continue
        every = ((None, None, None),) * axis
        # Mirrored: from element `before` down to the first, and from the end down over `after` elements.
        head = (*every, (before - 1 + skip, skip - 1 if skip else None, -1))
        tail = (*every, (n - 1 - skip, n - 1 - skip - after if n - 1 - skip - after >= 0 else None, -1))
        parts = [strided_slice(x, index=head)] if before else []
        parts.append(x)
        parts.extend([strided_slice(x, index=tail)] if after else [])
        x = concat(*parts, axis=axis)
    return x
