"""The product and the quotient of two operators: one operator if their structures allow it, else a composition."""

from __future__ import annotations

from typing import Any

from teletape._generated.shapes.shape import expand_dims
from teletape.extras.linear_operators.blocks import LinearOperatorBlockDiag
from teletape.extras.linear_operators.circulant import _Circulant
from teletape.extras.linear_operators.composition import LinearOperatorComposition, LinearOperatorInversion
from teletape.extras.linear_operators.dense import LinearOperatorLowerTriangular
from teletape.extras.linear_operators.diagonals import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from teletape.extras.linear_operators.operator import LinearOperator

_DIAGONAL = LinearOperatorDiag | LinearOperatorScaledIdentity


def product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """Returns the operator that applies `right`, then `left`.

    Raises:
        ValueError: A zero operator with one that is not square.
    """
    if isinstance(left, LinearOperatorIdentity):
        return right
    if isinstance(right, LinearOperatorIdentity):
        return left
    if isinstance(left, LinearOperatorZeros) or isinstance(right, LinearOperatorZeros):
        if not left.is_square or not right.is_square:
            raise ValueError(
                "Matmul with non-square `LinearOperator`s or non-square `LinearOperatorZeros` not supported at this "
                "time."
            )
        return left if isinstance(left, LinearOperatorZeros) else right
    if isinstance(left, _DIAGONAL) and isinstance(right, _DIAGONAL):
        return _diagonal(left, right, _factor(left) * _factor(right))
    if isinstance(left, LinearOperatorDiag) and isinstance(right, LinearOperatorLowerTriangular):
        return _triangular(left, right, expand_dims(left.diag, -1) * right.to_dense())
    if isinstance(left, LinearOperatorLowerTriangular) and isinstance(right, LinearOperatorDiag):
        return _triangular(left, right, left.to_dense() * expand_dims(right.diag, -2))
    if isinstance(left, _Circulant) and type(left) is type(right) and left.block_shape == right.block_shape:
        return _circulant(left, right, left.spectrum * right.spectrum)
    blocks = _pairs(left, right)
    if blocks is not None:
        parts = [product(first, second) for first, second in blocks]
        return LinearOperatorBlockDiag(parts, _non_singular(left, right))
    return LinearOperatorComposition([left, right], **_hints(left, right))


def quotient(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """Returns the operator that applies `right`, then the inverse of `left`."""
    if isinstance(left, LinearOperatorIdentity):
        return right
    if isinstance(right, LinearOperatorIdentity):
        return left.inverse()
    if isinstance(left, LinearOperatorInversion):
        return product(left.operator, right)
    if isinstance(left, _DIAGONAL) and isinstance(right, _DIAGONAL):
        return _diagonal(left, right, _factor(right) / _factor(left))
    if isinstance(left, LinearOperatorDiag) and isinstance(right, LinearOperatorLowerTriangular):
        return _triangular(left, right, right.to_dense() / expand_dims(left.diag, -1))
    if isinstance(left, _Circulant) and type(left) is type(right) and left.block_shape == right.block_shape:
        return _circulant(left, right, right.spectrum / left.spectrum)
    blocks = _pairs(left, right)
    if blocks is not None:
        return LinearOperatorBlockDiag(
            [quotient(first, second) for first, second in blocks], _non_singular(left, right)
        )
    return LinearOperatorComposition([LinearOperatorInversion(left), right], **_hints(left, right))


# ------------------------------------------------------------------------------------------------------- one operator
def _factor(operator: Any) -> Any:
    """The diagonal [..., N], or [..., 1] of a multiple of the identity."""
    return operator.diag if isinstance(operator, LinearOperatorDiag) else expand_dims(operator.multiplier, -1)


def _diagonal(left: LinearOperator, right: LinearOperator, factors: Any) -> LinearOperator:
    hints = _commuting_hints(left, right)
    if isinstance(left, LinearOperatorDiag) or isinstance(right, LinearOperatorDiag):
        return LinearOperatorDiag(factors, **hints)
    return LinearOperatorScaledIdentity(left.domain_dimension, factors[..., 0], **hints)


def _triangular(left: LinearOperator, right: LinearOperator, tril: Any) -> LinearOperator:
    return LinearOperatorLowerTriangular(tril, is_non_singular=_non_singular(left, right))


def _circulant(left: _Circulant, right: LinearOperator, spectrum: Any) -> LinearOperator:
    return type(left)(spectrum, left.dtype, **_commuting_hints(left, right))


def _pairs(left: LinearOperator, right: LinearOperator) -> list[tuple[LinearOperator, LinearOperator]] | None:
    """Returns pairs of the blocks of two block diagonal operators, if each pair fits."""
    if not isinstance(left, LinearOperatorBlockDiag) or not isinstance(right, LinearOperatorBlockDiag):
        return None
    if [block.domain_dimension for block in left.operators] != [block.range_dimension for block in right.operators]:
        return None
    return list(zip(left.operators, right.operators, strict=True))


# -------------------------------------------------------------------------------------------------------------- hints
def _non_singular(left: LinearOperator, right: LinearOperator) -> bool | None:
    hints = (left.is_non_singular, right.is_non_singular)
    return False if False in hints else True if all(hints) else None


def _hints(left: LinearOperator, right: LinearOperator) -> dict[str, Any]:
    square = left.range_dimension == right.domain_dimension
    non_singular = _non_singular(left, right) if left.is_square and right.is_square else None if square else False
    return {"is_non_singular": non_singular, "is_square": square}


def _commuting_hints(left: LinearOperator, right: LinearOperator) -> dict[str, Any]:
    """Returns the hints of the product of two operators that commute."""
    self_adjoint = (left.is_self_adjoint, right.is_self_adjoint)
    both = all(self_adjoint)
    positive = both and left.is_positive_definite and right.is_positive_definite
    return {
        "is_non_singular": _non_singular(left, right),
        "is_self_adjoint": True if both else False if None not in self_adjoint and any(self_adjoint) else None,
        "is_positive_definite": True if positive else None,
    }
