"""Diagonal operators: any diagonal, the identity, a multiple of it, and zero. Nothing here takes more than O(N).

Long because there are four.
"""

from __future__ import annotations

from typing import Any

from teletape._generated.elementwise.complex import abs as modulus
from teletape._generated.elementwise.complex import conj, imag, real
from teletape._generated.elementwise.math import log, sqrt
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import broadcast_to, expand_dims
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, batch, common_batch, kept, length, parameters_of
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf import debugging
from teletape.tf.ops.arrays.create import ones, zeros, zeros_like
from teletape.tf.ops.linalg.diagonals import diag as diagonal_matrix
from teletape.tf.ops.linalg.diagonals import diag_part, set_diag


def with_diagonal_added(x: Tensor, diagonal: Any, operator: LinearOperator) -> Any:
    """Returns x plus a diagonal matrix with this diagonal."""
    common = common_batch([x.shape, operator.shape])
    x = x if x.shape == common else broadcast_to(x, common.as_list())
    return set_diag(x, diag_part(x) + diagonal)


def with_batch_of(operator: LinearOperator, x: Tensor) -> Tensor:
    """Returns the matrices x, broadcast with the operator's batch."""
    common = common_batch([x.shape, operator.batch_shape.concatenate([1, 1])])
    return x if x.shape == common else broadcast_to(x, common.as_list())


class LinearOperatorDiag(LinearOperator):
    """The operator of a diagonal matrix.

    Args:
        diag: [..., N].
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; True of real ones.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: A name.

    Raises:
        ValueError: A scalar, or a hint that is wrong.
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        parameters = parameters_of(locals())
        diag = kept(diag)
        if not len(diag.shape):
            raise ValueError(f"Argument diag must have at least 1 dimension.  Found: {diag}")
        self_adjoint = agreed(
            is_self_adjoint, not diag.dtype.is_complex, "A real diagonal operator is always self adjoint."
        )
        square = agreed(is_square, True, "Only square diagonal operators currently supported.")
        super().__init__(
            diag.dtype, None, is_non_singular, self_adjoint, is_positive_definite, square, name, parameters
        )
        self._diag = diag

    @property
    def diag(self) -> Any:
        """The diagonal: the tensor or variable of the constructor."""
        return self._diag

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._diag.shape
        return shape.concatenate(shape[-1:])

    def _assert_non_singular(self) -> None:
        debugging.assert_positive(modulus(self._diag), message="Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> None:
        kind = "Diagonal operator had diagonal entries with non-positive real part"
        if not self.dtype.is_complex:
            kind = "Real diagonal operator had non-positive diagonal entries"
        debugging.assert_positive(real(self._diag), message=f"{kind}, thus was not positive definite.")

    def _assert_self_adjoint(self) -> None:
        if self.dtype.is_complex:
            parts = imag(self._diag)
            debugging.assert_equal(
                zeros_like(parts),
                parts,
                message="This diagonal operator contained non-zero imaginary values.   Thus it was not self-adjoint.",
            )

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(conj(self._diag), **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1.0 / self._diag, **self._hints())

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(sqrt(self._diag), True, True, True, True)

    def _diagonal(self, adjoint: bool) -> Any:
        return conj(self._diag) if adjoint else self._diag

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return expand_dims(self._diagonal(adjoint), -1) * (adjoint_of(x) if adjoint_arg else x)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._diagonal(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (adjoint_of(rhs) if adjoint_arg else rhs) * expand_dims(1.0 / self._diagonal(adjoint), -1)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag, axis=[-1])

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(modulus(self._diag)), axis=[-1]), self.dtype)

    def _to_dense(self) -> Any:
        return diagonal_matrix(self._diag)

    def _diag_part(self) -> Any:
        return convert_to_tensor(self._diag)

    def _add_to_tensor(self, x: Any) -> Any:
        return with_diagonal_added(x, self._diag, self)

    def _eigvals(self) -> Any:
        return convert_to_tensor(self._diag)

    def _cond(self) -> Any:
        sizes = modulus(self._diag)
        return reduce_max(sizes, axis=-1) / reduce_min(sizes, axis=-1)


class LinearOperatorIdentity(LinearOperator):
    """The identity.

    Args:
        num_rows: How many rows and columns.
        batch_shape: A vector of sizes; None: no batch axes.
        dtype: float32 by default.
        is_non_singular: True; see LinearOperator, also for the next three.
        is_self_adjoint: True.
        is_positive_definite: True.
        is_square: True.
        assert_proper_shapes: Accepted: shapes are always checked.
        name: A name.

    Raises:
        TypeError: Sizes that are no integers.
        ValueError: Negative sizes, or a hint that is not True.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        parameters = parameters_of(locals())
        for hint, property_ in (
            (is_self_adjoint, "self adjoint"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
            (is_square, "square"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {property_}.")
        super().__init__(dtype or dtypes.float32, None, True, True, True, True, name, parameters)
        self._num_rows = length(num_rows, "num_rows")
        self._batch = batch(batch_shape)

    def _shape(self) -> TensorShape:
        return self._batch.concatenate([self._num_rows, self._num_rows])

    def _assert_non_singular(self) -> None:
        """Nothing to check."""

    def _assert_positive_definite(self) -> None:
        """Nothing to check."""

    def _assert_self_adjoint(self) -> None:
        """Nothing to check."""

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorIdentity(self._num_rows, self._batch.as_list() or None, self.dtype)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return with_batch_of(self, adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return ones(self.batch_shape.as_list(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros(self.batch_shape.as_list(), self.dtype)

    def _trace(self) -> Any:
        return self._num_rows * ones(self.batch_shape.as_list(), self.dtype)

    def _diag_part(self) -> Any:
        return ones(self.shape[:-1].as_list(), self.dtype)

    def _add_to_tensor(self, x: Any) -> Any:
        return with_diagonal_added(x, 1, self)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _cond(self) -> Any:
        return ones(self.batch_shape.as_list(), self.dtype.real_dtype)


class LinearOperatorScaledIdentity(LinearOperator):
    """A multiple of the identity.

    Args:
        num_rows: How many rows and columns.
        multiplier: The factor, of the batch's shape.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; True of real ones.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        assert_proper_shapes: Accepted: shapes are always checked.
        name: A name.

    Raises:
        TypeError: A size that is no integer.
        ValueError: A negative size, or a hint that is wrong.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        parameters = parameters_of(locals())
        multiplier = kept(multiplier)
        self_adjoint = agreed(
            is_self_adjoint, not multiplier.dtype.is_complex, "A real diagonal operator is always self adjoint."
        )
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        super().__init__(
            multiplier.dtype, None, is_non_singular, self_adjoint, is_positive_definite, True, name, parameters
        )
        self._num_rows = length(num_rows, "num_rows")
        self._multiplier = multiplier

    @property
    def multiplier(self) -> Any:
        """The factor: the tensor or variable of the constructor."""
        return self._multiplier

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._multiplier.shape
        return shape.concatenate([self._num_rows, self._num_rows])

    def _assert_non_singular(self) -> None:
        debugging.assert_positive(modulus(self._multiplier), message="LinearOperator was singular")

    def _assert_positive_definite(self) -> None:
        debugging.assert_positive(real(self._multiplier), message="LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> None:
        parts = imag(self._multiplier)
        debugging.assert_equal(zeros_like(parts), parts, message="LinearOperator was not self-adjoint")

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, conj(self._multiplier), **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, 1.0 / self._multiplier, **self._hints())

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, sqrt(self._multiplier), True, True, True)

    def _factors(self, adjoint: bool) -> Any:
        factors = conj(self._multiplier) if adjoint else self._multiplier
        return expand_dims(expand_dims(factors, -1), -1)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (adjoint_of(x) if adjoint_arg else x) * self._factors(adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (adjoint_of(rhs) if adjoint_arg else rhs) / self._factors(adjoint)

    def _determinant(self) -> Any:
        return self._multiplier**self._num_rows

    def _log_abs_determinant(self) -> Any:
        return self._num_rows * log(modulus(self._multiplier))

    def _trace(self) -> Any:
        return self._multiplier * self._num_rows

    def _diag_part(self) -> Any:
        return expand_dims(self._multiplier, -1) * ones([self._num_rows], self.dtype)

    def _add_to_tensor(self, x: Any) -> Any:
        return with_diagonal_added(x, expand_dims(self._multiplier, -1), self)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _cond(self) -> Any:
        return modulus(self._multiplier) / modulus(self._multiplier)  # NaN for a multiplier 0, as in TensorFlow


class LinearOperatorZeros(LinearOperator):
    """The zero matrix.

    Args:
        num_rows: The number of rows.
        num_columns: The number of columns; None: as many as rows.
        batch_shape: A vector of sizes; None: no batch axes.
        dtype: float32 by default.
        is_non_singular: False; see LinearOperator, also for the next three.
        is_self_adjoint: True if it is square.
        is_positive_definite: False.
        is_square: Whether it has as many columns as rows.
        assert_proper_shapes: Accepted: shapes are always checked.
        name: A name.

    Raises:
        TypeError: Sizes that are no integers.
        ValueError: Negative sizes, or a hint that is wrong.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        parameters = parameters_of(locals())
        if not is_self_adjoint and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        super().__init__(
            dtype or dtypes.float32,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            parameters,
        )
        self._num_rows = length(num_rows, "num_rows")
        self._num_columns = self._num_rows if num_columns is None else length(num_columns, "num_columns")
        self._batch = batch(batch_shape)
        if is_square and self._num_rows != self._num_columns:
            raise ValueError(
                f"LinearOperatorZeros initialized as is_square=True, but got num_rows({self._num_rows}) != "
                f"num_columns({self._num_columns})"
            )

    def _shape(self) -> TensorShape:
        return self._batch.concatenate([self._num_rows, self._num_columns])

    def _assert_non_singular(self) -> None:
        raise InvalidArgumentError("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> None:
        raise InvalidArgumentError("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> None:
        """Nothing to check."""

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorZeros(
            self._num_columns,
            self._num_rows,
            self._batch.as_list() or None,
            self.dtype,
            is_self_adjoint=False,
            is_square=False,
        )

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        columns = x.shape[-2] if adjoint_arg else x.shape[-1]
        shape = x.shape[:-2].concatenate([self._num_columns if adjoint else self._num_rows, columns])
        return with_batch_of(self, zeros(shape.as_list(), self.dtype))

    def _determinant(self) -> Any:
        return zeros(self.batch_shape.as_list(), self.dtype)

    def _trace(self) -> Any:
        return zeros(self.batch_shape.as_list(), self.dtype)

    def _to_dense(self) -> Any:
        return zeros(self.shape.as_list(), self.dtype)

    def _diag_part(self) -> Any:
        return zeros([*self.batch_shape.as_list(), min(self._num_rows, self._num_columns)], self.dtype)

    def _add_to_tensor(self, x: Any) -> Any:
        return with_batch_of(self, x)

    def _eigvals(self) -> Any:
        return self._diag_part()
