"""Stacked matrices [..., rows, columns]: their diagonals and bands."""

from __future__ import annotations

from collections.abc import Sequence

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.spec import Number, Shape, Spec, element, shape_text


def stacked(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    """The batch rule of ops on stacked matrices: the batch is one more leading axis."""
    return record(*args, **attrs)


def _diagonal_length(shape: Shape, k: int) -> int:
    rows, columns = shape[-2:]
    if k and not -rows < k < columns:
        raise InvalidArgumentError(f"lower_diag_index is out of bound: {k}. It must be between {-rows} and {columns}")
    return max(min(rows + min(k, 0), columns - max(k, 0)), 0)


def _check_matrix(x: Spec, what: str = "input") -> None:
    if x.ndim < 2:
        raise InvalidArgumentError(f"{what} must be at least 2-dim, received shape: {shape_text(x.shape)}")


def _part_spec(x: Spec, *, k: int) -> Spec:
    _check_matrix(x)
    return x.with_shape((*x.shape[:-2], _diagonal_length(x.shape, k)))


def _diag_shape(x: Spec, k: int, num_rows: int, num_cols: int) -> tuple[int, int]:
    if x.ndim < 1:
        raise InvalidArgumentError(f"diagonal must be at least 1-dim, received shape: {shape_text(x.shape)}")
    least = (x.shape[-1] + max(-k, 0), x.shape[-1] + max(k, 0))
    if num_rows == -1 and num_cols == -1:
        num_rows = num_cols = max(least)
    rows, columns = (at_least if n == -1 else n for n, at_least in zip((num_rows, num_cols), least, strict=True))
    if rows < least[0] or columns < least[1]:
        raise InvalidArgumentError(f"The number of rows and columns is too small: {rows}, {columns}, at least {least}")
    if (rows, columns) != least and rows != least[0] and columns != least[1]:
        raise InvalidArgumentError(
            f"The number of rows or columns is not consistent with the diagonal: {rows}, {columns}"
        )
    return rows, columns


def _diag_spec(x: Spec, *, k: int, num_rows: int, num_cols: int, padding_value: Number) -> Spec:
    element(padding_value, x.dtype, "padding_value")
    return x.with_shape((*x.shape[:-1], *_diag_shape(x, k, num_rows, num_cols)))


def _place(xp: ArrayModule, matrices: Array, diagonal: Array, k: int) -> None:
    """Writes a diagonal into matrices, in place."""
    at = xp.arange(diagonal.shape[-1])
    matrices[..., at + max(-k, 0), at + max(k, 0)] = diagonal


@linear(
    infer=_part_spec,
    vjp=lambda ct, x_spec, k: ops.diag(ct, k=k, num_rows=x_spec.shape[-2], num_cols=x_spec.shape[-1]),
    batch=stacked,
    samples=[
        sample((3, 3)),
        sample((2, 3, 4), k=1),
        sample((4, 3), k=-2),
        sample((2, 0, 0)),
        sample((2, 4), k=2),
    ],
    op_type="MatrixDiagPartV3",
    tf=(by_hand("linalg.diag_part", "several diagonals take several ops"),),
    views=True,
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def diag_part(xp: ArrayModule, x: Array, *, k: int = 0) -> Array:
    """The k-th diagonals [..., n] of matrices, counted upwards from the main one."""
    return xp.diagonal(x[..., max(-k, 0) :, max(k, 0) :], axis1=-2, axis2=-1)  # its own offset has 32 bits


@op(
    infer=_diag_spec,
    vjp=lambda ct, k: diag_part(ct, k=k),
    jvp=lambda t, k, num_rows, num_cols: ops.diag(t, k=k, num_rows=num_rows, num_cols=num_cols),
    batch=stacked,
    samples=[
        sample((3,)),
        sample((2, 2), k=1),
        sample((2,), k=-1, num_rows=3, num_cols=4),
        sample((2,), num_rows=3, padding_value=7),
        sample((0,)),
    ],
    op_type="MatrixDiagV3",
    tf=(by_hand("linalg.diag", "several diagonals take several ops"),),
    reach=Reach.MOVES,
)
def diag(
    xp: ArrayModule, x: Array, *, k: int = 0, num_rows: int = -1, num_cols: int = -1, padding_value: Number = 0
) -> Array:
    """Matrices with x [..., n] on the k-th diagonal and `padding_value` elsewhere; -1 rows or columns: the fewest."""
    shape = _diag_shape(Spec.of(tuple(x.shape), x.dtype), k, num_rows, num_cols)
    out = xp.full((*x.shape[:-1], *shape), padding_value, x.dtype)
    _place(xp, out, x, k)
    return out


def _set_diag_spec(x: Spec, diagonal: Spec, *, k: int) -> Spec:
    _check_matrix(x)
    if diagonal.dtype is not x.dtype:
        check_dtypes("MatrixSetDiagV3", (x, diagonal), frozenset((x.dtype,)))
    expected = (*x.shape[:-2], _diagonal_length(x.shape, k))
    if diagonal.shape != expected:
        raise InvalidArgumentError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to "
            f"the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: {shape_text(x.shape)}\n"
            f"Diagonal shape: {shape_text(diagonal.shape)}\nExpected diagonal shape: {shape_text(expected)}"
        )
    return x


@op(
    infer=_set_diag_spec,
    vjp=[
        lambda ct, k: ops.set_diag(ct, zeros_like(diag_part(ct, k=k)), k=k),
        lambda ct, k: diag_part(ct, k=k),
    ],
    jvp=[
        lambda t, k: ops.set_diag(t, zeros_like(diag_part(t, k=k)), k=k),
        lambda t, k, y_spec: diag(t, k=k, num_rows=y_spec.shape[-2], num_cols=y_spec.shape[-1]),
    ],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched), **attrs),
    samples=[sample((3, 3), (3,)), sample((2, 3, 4), (2, 3), k=1), sample((4, 3), (3,), k=-1, seed=1)],
    op_type="MatrixSetDiagV3",
    tf=(by_hand("linalg.set_diag", "several diagonals take several ops"),),
    like=(0, 0),
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def set_diag(xp: ArrayModule, x: Array, diagonal: Array, *, k: int = 0) -> Array:
    """x with `diagonal` [..., n] in place of its k-th diagonal."""
    out = x.copy()
    _place(xp, out, diagonal, k)
    return out


def _band_spec(x: Spec, *, num_lower: int, num_upper: int) -> Spec:
    _check_matrix(x)
    for name, value, what, most in (
        ("num_lower", num_lower, "rows", x.shape[-2]),
        ("num_upper", num_upper, "columns", x.shape[-1]),
    ):
        if value > most:
            raise InvalidArgumentError(
                f"{name} must be negative or less or equal to number of {what} ({most}) got: {value}"
            )
    return x


@linear(
    infer=_band_spec,
    vjp=lambda ct, num_lower, num_upper: ops.band_part(ct, num_lower=num_lower, num_upper=num_upper),
    batch=stacked,
    samples=[
        sample((3, 3), num_lower=-1, num_upper=0),
        sample((2, 3, 4), num_lower=1, num_upper=1),
        sample((3, 2), num_lower=0, num_upper=-1),
    ],
    op_type="MatrixBandPart",
    tf="linalg.band_part",
    args="input num_lower num_upper",
    workspace=lambda x, **_: 3 * x.shape[-2] * x.shape[-1],
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def band_part(xp: ArrayModule, x: Array, *, num_lower: int, num_upper: int) -> Array:
    """x with zeros outside of a band of `num_lower` and `num_upper` diagonals around the main one; negative: all."""
    shape = x.shape[-2:]
    inside = xp.ones(shape, bool) if num_upper < 0 else xp.tri(*shape, num_upper, bool)
    if num_lower >= 0:
        inside &= ~xp.tri(*shape, -num_lower - 1, bool)
    return xp.where(inside, x, x.dtype.type(0))
