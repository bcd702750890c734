"""Operators of a given matrix: any matrix, and a lower triangular one."""

from __future__ import annotations

from typing import Any, Final

from teletape._generated.elementwise.complex import abs as modulus
from teletape._generated.elementwise.math import log
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.linalg.diagonal import band_part
from teletape._generated.linalg.matrix import triangular_solve
from teletape._generated.linalg.products import matmul
from teletape._generated.reduce import reduce_prod, reduce_sum
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import kept, parameters_of
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf import debugging
from teletape.tf.ops.linalg.diagonals import diag_part

_DTYPES: Final = [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128]


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of a written-out matrix.

    Args:
        matrix: [..., M, N], floating or complex.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: A name.

    Raises:
        TypeError: A matrix of another dtype.
        ValueError: Fewer than two axes, or hints that contradict each other.
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        parameters = parameters_of(locals())
        matrix = kept(matrix)
        if matrix.dtype not in _DTYPES:
            raise TypeError(f"Argument `matrix` must have dtype in {_DTYPES}. Received: {matrix.dtype}.")
        if len(matrix.shape) < 2:
            raise ValueError(f"Argument `matrix` must have at least 2 dimensions. Received: {matrix}.")
        super().__init__(
            matrix.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name, parameters
        )
        self._matrix = matrix

    @property
    def matrix(self) -> Any:
        """The matrix: the tensor or variable of the constructor."""
        return self._matrix

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._matrix.shape
        return shape

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return convert_to_tensor(self._matrix)


class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of the lower triangle of a matrix; elements above the diagonal are not read.

    Args:
        tril: [..., N, N], floating or complex.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: A name.

    Raises:
        ValueError: Fewer than two axes, or a hint that it is not square.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        parameters = parameters_of(locals())
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        tril = kept(tril)
        if len(tril.shape) < 2:
            raise ValueError(f"Argument tril must have at least 2 dimensions.  Found: {tril}")
        super().__init__(
            tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters
        )
        self._tril = tril

    @property
    def tril(self) -> Any:
        """The matrix: the tensor or variable of the constructor, also above the diagonal."""
        return self._tril

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._tril.shape
        return shape

    def _assert_non_singular(self) -> None:
        sizes = modulus(diag_part(self._tril))
        debugging.assert_positive(sizes, message="Singular operator:  Diagonal contained zero values.")

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return triangular_solve(self._to_dense(), rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(diag_part(self._tril), axis=[-1])

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(modulus(diag_part(self._tril))), axis=[-1])

    def _to_dense(self) -> Any:
        return band_part(self._tril, -1, 0)

    def _diag_part(self) -> Any:
        return diag_part(self._tril)

    def _eigvals(self) -> Any:
        return diag_part(self._tril)
