"""Operators with few elements in each row: permutations and tridiagonal ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape._generated.elementwise.complex import conj, imag
from teletape._generated.elementwise.logic import equal
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.index import gather
from teletape._generated.shapes.rearrange import roll
from teletape._generated.shapes.shape import broadcast_to, expand_dims
from teletape._generated.sorting import argsort
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, common_batch, kept, parameters_of
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf import debugging
from teletape.tf.ops.arrays.create import ones, zeros, zeros_like
from teletape.tf.ops.arrays.create import range as range_of
from teletape.tf.ops.arrays.rearrange import concat, stack, unstack
from teletape.tf.ops.linalg.bands import tridiagonal_matmul, tridiagonal_solve
from teletape.tf.ops.linalg.diagonals import diag as diagonal_matrix
from teletape.tf.ops.linalg.diagonals import diag_part, set_diag


class LinearOperatorPermutation(LinearOperator):
    """The operator that moves element perm[i] of a vector to index i.

    Args:
        perm: [..., N], integers, each from 0 to N − 1 once.
        dtype: Of the matrix.
        is_non_singular: A hint; always True. See LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: A name.

    Raises:
        TypeError: Numbers that are no integers.
        ValueError: No permutation, or a hint that is wrong.
    """

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        parameters = parameters_of(locals())
        perm = kept(perm)
        if not len(perm.shape):
            raise ValueError(f"Argument `perm` must have at least 1 dimension. Received: {perm}.")
        if not perm.dtype.is_integer:
            raise TypeError(f"Argument `perm` must be integer dtype. Received: {perm}.")
        size = perm.shape[-1]
        if (np.sort(convert_to_tensor(perm).numpy(), axis=-1) != np.arange(size)).any():
            raise ValueError(f"Argument `perm` must be a vector of unique integers from 0 to {size - 1}.")
        for hint, noun in ((is_non_singular, "non-singular"), (is_square, "square")):
            argument = f"is_{noun}".replace("-", "_")
            agreed(
                hint,
                True,
                f"A Permutation operator is always {noun}. Expected argument `{argument}` to be True. Received: "
                f"{hint}.",
            )
        super().__init__(dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name, parameters)
        self._perm = perm

    @property
    def perm(self) -> Any:
        """The permutation: the tensor or variable of the constructor."""
        return self._perm

    def _shape(self) -> TensorShape:
        shape: TensorShape = self._perm.shape
        return shape.concatenate(shape[-1:])

    def _assert_non_singular(self) -> None:
        """Nothing to check."""

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorPermutation(argsort(self._perm, axis=-1), self.dtype, **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        return self.adjoint()

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        perm = argsort(self._perm, axis=-1) if adjoint else convert_to_tensor(self._perm)
        if len(perm.shape) == 1:
            return gather(x, perm, axis=-2)
        common = common_batch([x.shape[:-2], self.batch_shape]).as_list()
        x, perm = broadcast_to(x, [*common, *x.shape[-2:]]), broadcast_to(perm, [*common, perm.shape[-1]])
        return gather(x, perm, axis=-2, batch_dims=len(common))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _log_abs_determinant(self) -> Any:
        return zeros(self.batch_shape.as_list(), self.dtype)

    def _places(self) -> Any:
        return range_of(self.domain_dimension, dtype=self._perm.dtype)

    def _to_dense(self) -> Any:
        return cast(equal(self._places(), expand_dims(self._perm, -1)), self.dtype)

    def _diag_part(self) -> Any:
        return cast(equal(self._places(), self._perm), self.dtype)

    def _cond(self) -> Any:
        return ones(self.batch_shape.as_list(), self.dtype)


_FORMATS: Final = ("compact", "matrix", "sequence")


class LinearOperatorTridiag(LinearOperator):
    """The operator of a tridiagonal matrix, which takes O(N) for a product or a system.

    Args:
        diagonals: Those above, on and below the main diagonal: [..., 3, N] ("compact"), three of [..., N]
            ("sequence"), or the matrix [..., N, N]. The last above and the first below are not read.
        diagonals_format: "compact", "sequence" or "matrix".
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: A name.

    Raises:
        ValueError: Another format, or hints that contradict each other.
    """

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        parameters = parameters_of(locals())
        if diagonals_format not in _FORMATS:
            raise ValueError(
                "Argument `diagonals_format` must be one of compact, matrix, or sequence. Received : "
                f"{diagonals_format}."
            )
        values = [kept(diagonal) for diagonal in diagonals] if diagonals_format == "sequence" else kept(diagonals)
        dtype = values[0].dtype if isinstance(values, list) else values.dtype
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name, parameters
        )
        self._diagonals = values
        self._diagonals_format = diagonals_format

    @property
    def diagonals(self) -> Any:
        """The diagonals of the constructor."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """The format of `diagonals`."""
        return self._diagonals_format

    def _shape(self) -> TensorShape:
        if isinstance(self._diagonals, list):
            size = self._diagonals[1].shape[-1]
            return common_batch(diagonal.shape[:-1] for diagonal in self._diagonals).concatenate([size, size])
        shape: TensorShape = self._diagonals.shape
        return shape if self._diagonals_format == "matrix" else shape[:-2].concatenate([shape[-1], shape[-1]])

    def _compact(self, adjoint: bool = False) -> Any:
        """Returns the diagonals as [..., 3, N]; those of the adjoint if `adjoint`."""
        if isinstance(self._diagonals, list):
            shape = self.shape[:-1].as_list()
            diagonals = [broadcast_to(diagonal, shape) for diagonal in self._diagonals]
        elif self._diagonals_format == "matrix":
            above, below = (diag_part(self._diagonals, k=k) for k in (1, -1))
            nothing = zeros([*above.shape[:-1], 1], self.dtype)
            diagonals = [
                concat([above, nothing], axis=-1),
                diag_part(self._diagonals),
                concat([nothing, below], axis=-1),
            ]
        elif not adjoint:
            return convert_to_tensor(self._diagonals)
        else:
            diagonals = [self._diagonals[..., i, :] for i in range(3)]
        if adjoint:
            above, main, below = (conj(diagonal) for diagonal in diagonals)
            diagonals = [roll(below, -1, axis=-1), main, roll(above, 1, axis=-1)]
        return stack(diagonals, axis=-2)

    def _assert_self_adjoint(self) -> None:
        diagonals = self._compact()
        if self.dtype.is_complex:
            parts = imag(diagonals[..., 1, :])
            debugging.assert_equal(
                zeros_like(parts),
                parts,
                message="This tridiagonal operator contained non-zero imaginary values on the diagonal.",
            )
        debugging.assert_equal(
            conj(diagonals[..., 2, 1:]),
            diagonals[..., 0, :-1],
            message="This tridiagonal operator has non-conjugate subdiagonal and superdiagonal.",
        )

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorTridiag(self._compact(adjoint=True), **self._hints())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        return tridiagonal_matmul(*self._with_batch(x, adjoint), diagonals_format="compact")

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return tridiagonal_solve(*self._with_batch(rhs, adjoint), diagonals_format="compact")

    def _with_batch(self, x: Any, adjoint: bool) -> tuple[Any, Any]:
        diagonals = self._compact(adjoint)
        common = common_batch([x.shape[:-2], self.batch_shape]).as_list()
        return broadcast_to(diagonals, [*common, *diagonals.shape[-2:]]), broadcast_to(x, [*common, *x.shape[-2:]])

    def _diag_part(self) -> Any:
        return self._compact()[..., 1, :]

    def _to_dense(self) -> Any:
        if self._diagonals_format == "matrix":
            return convert_to_tensor(self._diagonals)
        above, main, below = unstack(self._compact(), axis=-2)
        sides = diagonal_matrix(above[..., :-1], k=1) + diagonal_matrix(below[..., 1:], k=-1)
        return set_diag(sides, main)
