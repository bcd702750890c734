"""`tf.linalg.LinearOperator`: the base class of all operators, which computes everything with the dense matrix.

An operator overrides the methods that its structure makes faster. Long because the base class has every method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape._generated.elementwise.complex import abs as modulus
from teletape._generated.elementwise.math import exp, log
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.linalg.eigen import eigvalsh
from teletape._generated.linalg.matrix import cholesky, cholesky_solve
from teletape._generated.linalg.solve import det
from teletape._generated.reduce import reduce_max, reduce_min, reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.create import eye
from teletape._generated.shapes.shape import expand_dims, squeeze
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.module import Module
from teletape.extras.linear_operators.arguments import solved
from teletape.tf import debugging
from teletape.tf.ops.linalg.decompositions import svd
from teletape.tf.ops.linalg.diagonals import diag_part
from teletape.tf.ops.linalg.norms import slogdet

#: Classes that operators make and that are defined in later modules, by name; the package fills it when imported.
CLASSES: Final[dict[str, Callable[..., LinearOperator]]] = {}


class LinearOperator(Module):
    """A matrix [..., M, N] that need not be written out; TensorFlow's LinearOperator.

    A derived class has at least `_shape` and `_matmul`; every other method uses the dense matrix unless
    it overrides `_solve`, `_determinant`, `_log_abs_determinant`, `_to_dense`, `_diag_part`, `_trace`, `_eigvals`,
    `_cond`, `_assert_…` or `_linop_…`. A variable of an operator is read at every use, so that gradients reach it. An
    operator may be used in place of a tensor: then it becomes the dense matrix.

    The hints `is_…` are True, False or None for unknown. They are not checked, and decide about the algorithm.

    Args:
        dtype: The dtype of the matrix, and of the tensors that it is multiplied with.
        graph_parents: Accepted, without effect.
        is_non_singular: Whether it has an inverse.
        is_self_adjoint: Whether it equals its conjugate transpose.
        is_positive_definite: Whether the real part of xᴴ A x is positive for every x other than 0.
        is_square: Whether M is N.
        name: The class's name if None.
        parameters: The arguments of the derived class's constructor.

    Raises:
        ValueError: Hints that contradict each other.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._is_square_by_hint = is_square
        self._name = name or type(self).__name__
        arguments = dict(parameters or {})
        # In a function: a checkpoint would otherwise save the operator's variables under two names.
        self._parameters: Callable[[], dict[str, Any]] = lambda: dict(arguments)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        return convert_to_tensor(self.to_dense(), dtype)

    # ------------------------------------------------------------------------------------------------- what it is
    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of its constructor, by name."""
        return self._parameters()

    @property
    def dtype(self) -> Any:
        """The dtype of the matrix."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """Empty: operators have no graph."""
        return []

    @property
    def is_non_singular(self) -> bool | None:
        """The hint whether it has an inverse."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """The hint whether it equals its conjugate transpose."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """The hint whether it is positive definite."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool:
        """Whether it has as many rows as columns.

        Raises:
            ValueError: The hint contradicts the shape.
        """
        rows, columns = self.shape[-2:]
        square: bool = rows == columns
        hint = self._is_square_by_hint
        if hint is False and square:
            raise ValueError(f"User set is_square hint to {hint}, but the operator was square.")
        if hint and not square:
            raise ValueError(f"User set is_square hint to {hint}, but the operator was not square.")
        return square

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    @property
    def shape(self) -> TensorShape:
        """The shape of the matrix, [..., M, N]."""
        return self._shape()

    def _sizes(self, sizes: Any) -> Tensor:
        return constant(np.asarray(sizes, np.int32))

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape as an int32 vector."""
        return self._sizes(self.shape.as_list())

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without the last two axes."""
        return self.shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape without the last two axes, as an int32 vector."""
        return self._sizes(self.batch_shape.as_list())

    @property
    def tensor_rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of axes, as an int32 scalar."""
        return self._sizes(self.tensor_rank)

    @property
    def domain_dimension(self) -> int:
        """The number of columns."""
        columns: int = self.shape[-1]
        return columns

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns, as an int32 scalar."""
        return self._sizes(self.domain_dimension)

    @property
    def range_dimension(self) -> int:
        """The number of rows."""
        rows: int = self.shape[-2]
        return rows

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows, as an int32 scalar."""
        return self._sizes(self.range_dimension)

    # ------------------------------------------------------------------------------------------------- assertions
    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _assert_non_singular(self) -> None:
        if self._can_use_cholesky():
            return self.assert_positive_definite()
        values = svd(self.to_dense(), compute_uv=False)
        size = max(100, *self.shape.as_list()[-2:])
        most = 1 / (size * np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps)
        condition = reduce_max(values, -1) / reduce_min(values, -1)
        return debugging.assert_less(
            condition, constant(most, condition.dtype), message="Singular matrix up to precision epsilon."
        )

    def assert_non_singular(self, name: str = "assert_non_singular") -> None:
        """Raise InvalidArgumentError if it has no inverse, up to the dtype's precision."""
        return self._assert_non_singular()

    def _assert_positive_definite(self) -> None:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        factor = cholesky(self.to_dense())
        return debugging.assert_positive(
            cast(diag_part(factor), self.dtype.real_dtype), message="Matrix was not positive definite."
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> None:
        """Raise InvalidArgumentError if it is not positive definite.

        Raises:
            NotImplementedError: Its structure does not decide it, and no hint says that it is self-adjoint.
        """
        return self._assert_positive_definite()

    def _assert_self_adjoint(self) -> None:
        dense = self.to_dense()
        return debugging.assert_equal(dense, adjoint_of(dense), message="Matrix was not equal to its adjoint.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> None:
        """Raise InvalidArgumentError if it differs from its conjugate transpose."""
        return self._assert_self_adjoint()

    # --------------------------------------------------------------------------------------------------- products
    def _argument(self, x: Any, wanted: int, axis: int) -> Tensor:
        """The argument as a tensor.

        Raises:
            TypeError: It has another dtype.
            ValueError: Its axis has another length.
        """
        tensor = convert_to_tensor(x)
        if tensor.dtype != self.dtype:
            raise TypeError(f"Expected argument to have dtype {self.dtype}.  Found: {tensor.dtype} in tensor {tensor}")
        if tensor.shape[axis] != wanted:
            raise ValueError(f"Dimensions {wanted} and {tensor.shape[axis]} are not compatible")
        return tensor

    def _right(self, other: LinearOperator, left: LinearOperator, adjoint_arg: bool, noun: str) -> LinearOperator:
        right = other.adjoint() if adjoint_arg else other
        if right.range_dimension != left.domain_dimension:
            raise ValueError(
                f"Operators are incompatible. Expected `{noun}` to have dimension {left.domain_dimension} but got "
                f"{right.range_dimension}."
            )
        return right

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        raise NotImplementedError("_matmul is not implemented.")

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Returns the product A x of the matrix and matrices [..., N, R]; for an operator x an operator.

        Args:
            x: A tensor of this dtype, or an operator.
            adjoint: Whether Aᴴ is used in place of A.
            adjoint_arg: Whether xᴴ is used in place of x.
            name: Accepted, without effect.

        Raises:
            TypeError: Another dtype.
            ValueError: Shapes that do not fit.
        """
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            return CLASSES["product"](left, self._right(x, left, adjoint_arg, "x"))
        wanted = self.range_dimension if adjoint else self.domain_dimension
        return self._matmul(
            self._argument(x, wanted, -1 if adjoint_arg else -2), adjoint=adjoint, adjoint_arg=adjoint_arg
        )

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return squeeze(self.matmul(expand_dims(x, -1), adjoint=adjoint), axis=-1)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """Returns the product A x of the matrix and vectors [..., N]; that of Aᴴ if `adjoint`.

        Raises:
            TypeError: Another dtype.
            ValueError: Another length.
        """
        return self._matvec(
            self._argument(x, self.range_dimension if adjoint else self.domain_dimension, -1), adjoint=adjoint
        )

    # ---------------------------------------------------------------------------------------------------- systems
    def _check_solvable(self) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        if self.is_square is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to not be square.")

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return cholesky_solve(cholesky(self.to_dense()), rhs)
        return solved(self.to_dense(), rhs, adjoint)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Solves A X = rhs, with X of shape [..., N, R]; for an operator rhs it returns the operator A⁻¹ rhs.

        Args:
            rhs: A tensor [..., M, R] of this dtype, or an operator.
            adjoint: Whether Aᴴ is used in place of A.
            adjoint_arg: Whether rhsᴴ is used in place of rhs.
            name: Accepted, without effect.

        Raises:
            NotImplementedError: A hint says that the operator is singular, or it is not square.
            TypeError: Another dtype.
            ValueError: Shapes that do not fit.
        """
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            return CLASSES["quotient"](left, self._right(rhs, left, adjoint_arg, "rhs"))
        wanted = self.domain_dimension if adjoint else self.range_dimension
        return self._solve(
            self._argument(rhs, wanted, -1 if adjoint_arg else -2), adjoint=adjoint, adjoint_arg=adjoint_arg
        )

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return squeeze(self.solve(expand_dims(rhs, -1), adjoint=adjoint), axis=-1)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """Solves A x = rhs for vectors [..., M]; Aᴴ x = rhs if `adjoint`.

        Raises:
            NotImplementedError: A hint says that the operator is singular, or it is not square.
            TypeError: Another dtype.
            ValueError: Another length.
        """
        return self._solvevec(
            self._argument(rhs, self.domain_dimension if adjoint else self.range_dimension, -1), adjoint=adjoint
        )

    # ------------------------------------------------------------------------------------------------ other operators
    def _hints(self) -> dict[str, Any]:
        return {
            "is_non_singular": self.is_non_singular,
            "is_self_adjoint": self.is_self_adjoint,
            "is_positive_definite": self.is_positive_definite,
            "is_square": self.is_square,
        }

    def _linop_adjoint(self) -> LinearOperator:
        return CLASSES["adjoint"](self, **self._hints())

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator Aᴴ; `H` is the same."""
        return self if self.is_self_adjoint else self._linop_adjoint()

    @property
    def H(self) -> LinearOperator:
        """The operator Aᴴ."""
        return self.adjoint()

    def _linop_inverse(self) -> LinearOperator:
        return CLASSES["inverse"](self, **self._hints())

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator A⁻¹.

        Raises:
            ValueError: It is not square, or a hint says that it is singular.
        """
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return self._linop_inverse()

    def _linop_cholesky(self) -> LinearOperator:
        return CLASSES["triangular"](
            cholesky(self.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
        )

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular operator L with A = L Lᴴ.

        Raises:
            ValueError: The hints do not say that it is self-adjoint and positive definite.
        """
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return self._linop_cholesky()

    # -------------------------------------------------------------------------------------------- numbers and matrices
    def _check_square_for_determinant(self) -> None:
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")

    def _determinant(self) -> Any:
        return exp(self.log_abs_determinant()) if self._can_use_cholesky() else det(self.to_dense())

    def determinant(self, name: str = "det") -> Any:
        """The determinants, of the batch's shape.

        Raises:
            NotImplementedError: It is not square.
        """
        self._check_square_for_determinant()
        return self._determinant()

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            return 2 * reduce_sum(log(diag_part(cholesky(self.to_dense()))), axis=[-1])
        return slogdet(self.to_dense()).log_abs_determinant

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithms of the absolute values of the determinants, of the batch's shape.

        Raises:
            NotImplementedError: It is not square.
        """
        self._check_square_for_determinant()
        return self._log_abs_determinant()

    def _to_dense(self) -> Any:
        return self.matmul(eye(self.domain_dimension, batch_shape=self.batch_shape.as_list(), dtype=self.dtype))

    def to_dense(self, name: str = "to_dense") -> Any:
        """Returns the dense matrix."""
        return self._to_dense()

    def _diag_part(self) -> Any:
        return diag_part(self.to_dense())

    def diag_part(self, name: str = "diag_part") -> Any:
        """The diagonals, [..., min(M, N)]."""
        return self._diag_part()

    def _trace(self) -> Any:
        return reduce_sum(self.diag_part(), axis=-1)

    def trace(self, name: str = "trace") -> Any:
        """The sums of the diagonals, of the batch's shape."""
        return self._trace()

    def _add_to_tensor(self, x: Any) -> Any:
        return self.to_dense() + x

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """A + x for a tensor of this dtype that broadcasts.

        Raises:
            TypeError: Another dtype.
        """
        tensor = convert_to_tensor(x)
        if tensor.dtype != self.dtype:
            raise TypeError(f"Expected argument to have dtype {self.dtype}.  Found: {tensor.dtype} in tensor {tensor}")
        return self._add_to_tensor(tensor)

    def _eigvals(self) -> Any:
        return eigvalsh(self.to_dense())

    def eigvals(self, name: str = "eigvals") -> Any:
        """The eigenvalues of a self-adjoint operator, [..., N].

        Raises:
            NotImplementedError: No hint says that it is self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def _cond(self) -> Any:
        values = modulus(self._eigvals()) if self.is_self_adjoint else svd(self.to_dense(), compute_uv=False)
        return reduce_max(values, -1) / reduce_min(values, -1)

    def cond(self, name: str = "cond") -> Any:
        """The condition numbers in the spectral norm, of the batch's shape."""
        return self._cond()

    def __getitem__(self, slices: Any) -> LinearOperator:
        """Returns the operator of a part of the batch: the indices are those of the batch's axes."""
        index = slices if isinstance(slices, tuple) else (slices,)
        if Ellipsis not in index:
            index = (*index, Ellipsis)
        dense = self.to_dense()
        return CLASSES["dense"](dense[(*index, slice(None), slice(None))], **self._hints())
