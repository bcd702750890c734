"""Operators of low rank updates: of another operator, and of the identity (the reflection in a hyperplane)."""

from __future__ import annotations

from typing import Any

from teletape._generated.elementwise.complex import abs as modulus
from teletape._generated.elementwise.complex import conj
from teletape._generated.elementwise.math import exp, log
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.linalg.matrix import cholesky, cholesky_solve
from teletape._generated.linalg.products import matmul
from teletape._generated.linalg.solve import det
from teletape._generated.nn.normalization import l2_normalize
from teletape._generated.reduce import reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import expand_dims
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, common_batch, kept, parameters_of, solved
from teletape.extras.linear_operators.diagonals import LinearOperatorDiag, LinearOperatorIdentity
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf.ops.arrays.create import ones, zeros
from teletape.tf.ops.arrays.rearrange import concat
from teletape.tf.ops.linalg.diagonals import diag_part, set_diag


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D Vᴴ: an operator with an update of low rank, by the formulas of Woodbury and Sylvester.

    Args:
        base_operator: L, [..., M, N].
        u: U, [..., M, K].
        diag_update: The diagonal of D, [..., K]; ones if None.
        v: V, [..., N, K]; U if None.
        is_diag_update_positive: A hint that D is positive.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: A name.

    Raises:
        ValueError: Shapes that do not fit, or a hint that is wrong.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        parameters = parameters_of(locals())
        positive = agreed(
            is_diag_update_positive,
            diag_update is None,
            "Default diagonal is the identity, which is positive.  However, user set 'is_diag_update_positive' to "
            "False.",
        )
        use_cholesky = bool(
            base_operator.is_positive_definite and base_operator.is_self_adjoint and positive and v is None
        )
        is_self_adjoint = agreed(
            is_self_adjoint,
            bool(base_operator.is_self_adjoint and v is None and not base_operator.dtype.is_complex),
            "A = L + UDU^H, with L self-adjoint and D real diagonal.  Since UDU^H is self-adjoint, this must be a "
            "self-adjoint operator.",
        )
        if use_cholesky:
            if False in (is_positive_definite, is_self_adjoint, is_non_singular):
                raise ValueError("Arguments imply this is self-adjoint positive-definite operator.")
            is_positive_definite = is_self_adjoint = True
        super().__init__(
            base_operator.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            parameters,
        )
        self._base_operator = base_operator
        self._u = kept(u)
        self._v = self._u if v is None else kept(v)
        self._use_cholesky = use_cholesky
        self._is_diag_update_positive = positive
        self._diag_update = None if diag_update is None else kept(diag_update)
        rank = self._u.shape[-1]
        self._diag_operator: LinearOperator = (
            LinearOperatorIdentity(rank, dtype=base_operator.dtype)
            if diag_update is None
            else LinearOperatorDiag(self._diag_update, is_positive_definite=positive)
        )
        for axis, side, noun in ((-2, self._u, "u"), (-1, self._v, "v")):
            wanted = [base_operator.shape[axis], self._diag_operator.domain_dimension]
            if side.shape[-2:].as_list() != wanted:
                raise ValueError(f"Dimensions {side.shape[-2:]} of {noun} and {wanted} are not compatible")
        self._shape()

    @property
    def u(self) -> Any:
        """U: the tensor or variable of the constructor."""
        return self._u

    @property
    def v(self) -> Any:
        """V: the tensor or variable of the constructor, or U."""
        return self._v

    @property
    def is_diag_update_positive(self) -> bool | None:
        """The hint that D is positive."""
        return self._is_diag_update_positive

    @property
    def diag_update(self) -> Any:
        """The diagonal of D, or None."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        return self._diag_operator

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base_operator

    def _shape(self) -> TensorShape:
        batches = [self._base_operator.batch_shape, self._diag_operator.batch_shape]
        common = common_batch([*batches, self._u.shape[:-2], self._v.shape[:-2]])
        return common.concatenate(self._base_operator.shape[-2:])

    def _assert_self_adjoint(self) -> None:
        if self._u is self._v and self._diag_update is None:
            return self._base_operator.assert_self_adjoint()
        return super()._assert_self_adjoint()

    def _sides(self, adjoint: bool = False) -> tuple[Any, Any]:
        u = convert_to_tensor(self._u)
        v = u if self._v is self._u else convert_to_tensor(self._v)
        return (v, u) if adjoint else (u, v)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        u, v = self._sides(adjoint)
        inner = self._diag_operator.matmul(matmul(v, x, adjoint_a=True, adjoint_b=adjoint_arg), adjoint=adjoint)
        return self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg) + matmul(u, inner)

    def _capacitance(self) -> Any:
        """D⁻¹ + Vᴴ L⁻¹ U."""
        u, v = self._sides()
        inner = matmul(v, self._base_operator.solve(u), adjoint_a=True)
        return self._diag_operator.inverse().add_to_tensor(inner)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        base = self._base_operator
        if base.is_non_singular is False:
            raise ValueError("Solve not implemented unless this is a perturbation of a non-singular LinearOperator.")
        u, v = self._sides(adjoint)
        first = base.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(v, first, adjoint_a=True)
        if self._use_cholesky:
            inner = cholesky_solve(cholesky(self._capacitance()), inner)
        else:
            inner = solved(self._capacitance(), inner, adjoint)
        return first - base.solve(matmul(u, inner), adjoint=adjoint)

    def _determinant(self) -> Any:
        if self.is_positive_definite:
            return exp(self.log_abs_determinant())
        return det(self._capacitance()) * self._diag_operator.determinant() * self._base_operator.determinant()

    def _log_abs_determinant(self) -> Any:
        if self._use_cholesky:
            of_capacitance = 2 * reduce_sum(log(diag_part(cholesky(self._capacitance()))), axis=[-1])
        else:
            of_capacitance = cast(log(modulus(det(self._capacitance()))), self.dtype)
        rest = self._diag_operator.log_abs_determinant() + self._base_operator.log_abs_determinant()
        return of_capacitance + rest

    def _diag_part(self) -> Any:
        u, v = self._sides()
        products = u * conj(v)
        if self._diag_update is not None:
            products = products * expand_dims(self._diag_update, -2)
        return reduce_sum(products, axis=-1) + self._base_operator.diag_part()


class LinearOperatorHouseholder(LinearOperator):
    """I − 2 v vᴴ with the unit vector v: the reflection in the hyperplane across `reflection_axis`.

    Args:
        reflection_axis: [..., N], of any length but 0.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; always True.
        is_positive_definite: A hint; always False.
        is_square: A hint; always True.
        name: A name.

    Raises:
        ValueError: A scalar, or a hint that is wrong.
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        parameters = parameters_of(locals())
        axis = kept(reflection_axis)
        if not len(axis.shape):
            raise ValueError(f"Argument reflection_axis must have at least 1 dimension.  Found: {axis}")
        self_adjoint = agreed(is_self_adjoint, True, "A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        square = agreed(is_square, True, "A Householder operator is always square.")
        super().__init__(axis.dtype, None, is_non_singular, self_adjoint, False, square, name, parameters)
        self._reflection_axis = axis

    @property
    def reflection_axis(self) -> Any:
        """The vector: the tensor or variable of the constructor."""
        return self._reflection_axis

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._reflection_axis.shape
        return shape.concatenate(shape[-1:])

    def _assert_non_singular(self) -> None:
        """Nothing to check."""

    def _assert_positive_definite(self) -> None:
        raise InvalidArgumentError("Householder operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> None:
        """Nothing to check."""

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _unit(self) -> Any:
        return l2_normalize(self._reflection_axis, axis=-1)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        column = expand_dims(self._unit(), -1)
        return x - 2 * column * matmul(column, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return -ones(self.batch_shape.as_list(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros(self.batch_shape.as_list(), self.dtype)

    def _to_dense(self) -> Any:
        column = expand_dims(self._unit(), -1)
        matrix = -2 * matmul(column, column, adjoint_b=True)
        return set_diag(matrix, 1 + diag_part(matrix))

    def _diag_part(self) -> Any:
        unit = self._unit()
        return 1 - 2 * unit * conj(unit)

    def _trace(self) -> Any:
        return (self.domain_dimension - 2) * ones(self.batch_shape.as_list(), self.dtype)

    def _eigvals(self) -> Any:
        batch_shape = self.batch_shape.as_list()
        others = ones([*batch_shape, self.domain_dimension - 1], self.dtype)
        return concat([-ones([*batch_shape, 1], self.dtype), others], axis=-1)

    def _cond(self) -> Any:
        return ones(self.batch_shape.as_list(), self.dtype)
