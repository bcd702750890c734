"""Operators that convolve, by Fourier transforms: circulant over one, two or three axes, and Toeplitz."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from teletape._generated import fourier
from teletape._generated.elementwise.complex import abs as modulus
from teletape._generated.elementwise.complex import complex as complex_of
from teletape._generated.elementwise.complex import conj, imag, real
from teletape._generated.elementwise.math import log
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.linalg.composites import matrix_transpose
from teletape._generated.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.index import gather
from teletape._generated.shapes.rearrange import reverse
from teletape._generated.shapes.shape import broadcast_to, reshape
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, common_batch, kept, parameters_of
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf import debugging
from teletape.tf.ops.arrays.create import ones, zeros_like
from teletape.tf.ops.arrays.rearrange import concat


def _complex(x: Any) -> Any:
    if x.dtype.is_complex:
        return convert_to_tensor(x)
    return cast(x, dtypes.complex128 if x.dtype == dtypes.float64 else dtypes.complex64)


def _to_dtype(x: Any, dtype: Any) -> Any:
    """Returns a complex tensor in the operator's dtype; for a real one its real part."""
    return cast(x if dtype.is_complex else real(x), dtype)


class _Circulant(LinearOperator):
    """The base class of all depths. They convolve along the last `block_depth` axes of the spectrum."""

    _DEPTH: ClassVar[int]

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        parameters = parameters_of(locals())
        spectrum = kept(spectrum)
        if len(spectrum.shape) < self._DEPTH:
            raise ValueError(f"Argument `spectrum` must have at least {self._DEPTH} dimensions. Received: {spectrum}.")
        self_adjoint = agreed(
            is_self_adjoint,
            not spectrum.dtype.is_complex,
            "A real spectrum always corresponds to a self-adjoint operator. Expected argument `is_self_adjoint` to be "
            f"True when `spectrum.dtype.is_complex` = True. Received: {is_self_adjoint}.",
        )
        square = agreed(
            is_square,
            True,
            "A [[nested] block] circulant operator is always square. Expected argument `is_square` to be True. "
            f"Received: {is_square}.",
        )
        super().__init__(
            input_output_dtype, None, is_non_singular, self_adjoint, is_positive_definite, square, name, parameters
        )
        self._spectrum = spectrum

    @property
    def spectrum(self) -> Any:
        """The eigenvalues: the tensor or variable of the constructor."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """The number of axes along which it convolves."""
        return self._DEPTH

    @property
    def block_shape(self) -> TensorShape:
        """The lengths of those axes."""
        shape: TensorShape = self._spectrum.shape[-self._DEPTH :]
        return shape

    def block_shape_tensor(self) -> Any:
        """The lengths of those axes, as an int32 vector."""
        return self._sizes(self.block_shape.as_list())

    def _shape(self) -> TensorShape:
        size = math.prod(self.block_shape)
        batch_shape: TensorShape = self._spectrum.shape[: -self._DEPTH]
        return batch_shape.concatenate([size, size])

    def _transformed(self, x: Any, inverse: bool = False) -> Any:
        name = ("ifft" if inverse else "fft") + ("" if self._DEPTH == 1 else f"{self._DEPTH}d")
        return getattr(fourier, name)(x)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """The convolution kernel: the inverse transform of the spectrum."""
        return _to_dtype(self._transformed(_complex(self._spectrum), inverse=True), self.dtype)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Raise InvalidArgumentError unless the convolution kernel is real, up to the dtype's precision."""
        kernel = self._transformed(_complex(self._spectrum), inverse=True)
        parts = modulus(imag(kernel))
        most = np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps * self.domain_dimension
        debugging.assert_less(parts, constant(most, parts.dtype), message="Spectrum was not Hermitian")

    def _assert_non_singular(self) -> None:
        debugging.assert_positive(
            modulus(self._spectrum), message="Singular operator:  Spectrum contained zero values."
        )

    def _assert_positive_definite(self) -> None:
        debugging.assert_positive(
            real(self._spectrum), message="Not positive definite:  Real part of spectrum was not all positive."
        )

    def _assert_self_adjoint(self) -> None:
        if self._spectrum.dtype.is_complex:
            parts = imag(self._spectrum)
            debugging.assert_equal(
                zeros_like(parts),
                parts,
                message="Not self-adjoint:  The spectrum contained non-zero imaginary part.",
            )

    def _with_spectrum(self, spectrum: Any) -> LinearOperator:
        return type(self)(spectrum, self.dtype, **self._hints())

    def _linop_adjoint(self) -> LinearOperator:
        return self._with_spectrum(conj(self._spectrum))

    def _linop_inverse(self) -> LinearOperator:
        return self._with_spectrum(1.0 / self._spectrum)

    def _filtered(self, x: Any, factors: Any) -> Any:
        """Returns the matrices x [..., N, R] with their columns' transforms multiplied by `factors`."""
        depth = self._DEPTH
        vectors = matrix_transpose(cast(x, factors.dtype))
        blocks = reshape(vectors, [*vectors.shape[:-1], *self.block_shape])
        per_vector = reshape(factors, [*factors.shape[:-depth], 1, *self.block_shape])
        result = self._transformed(per_vector * self._transformed(blocks), inverse=True)
        return _to_dtype(matrix_transpose(reshape(result, [*result.shape[:-depth], -1])), self.dtype)

    def _factors(self, adjoint: bool) -> Any:
        factors = _complex(self._spectrum)
        return conj(factors) if adjoint else factors

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(adjoint_of(x) if adjoint_arg else x, self._factors(adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._filtered(adjoint_of(rhs) if adjoint_arg else rhs, 1.0 / self._factors(adjoint))

    def _values(self) -> Any:
        return reshape(self._spectrum, [*self.batch_shape, -1])

    def _determinant(self) -> Any:
        product = reduce_prod(self._values(), axis=-1)
        return _to_dtype(product, self.dtype) if product.dtype.is_complex else cast(product, self.dtype)

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(modulus(self._values())), axis=-1), self.dtype)

    def _trace(self) -> Any:
        total = reduce_sum(self._values(), axis=-1)
        if self.is_self_adjoint and total.dtype.is_complex:
            total = complex_of(real(total), zeros_like(real(total)))
        return _to_dtype(total, self.dtype) if total.dtype.is_complex else cast(total, self.dtype)

    def _diag_part(self) -> Any:
        entry = self.trace() / self.domain_dimension
        return entry[..., None] * ones([self.domain_dimension], self.dtype)

    def _eigvals(self) -> Any:
        return self._values()

    def _cond(self) -> Any:
        sizes = modulus(self._values())
        return reduce_max(sizes, axis=-1) / reduce_min(sizes, axis=-1)


class LinearOperatorCirculant(_Circulant):
    """The operator that convolves vectors, given by its eigenvalues.

    Args:
        spectrum: [..., N]: the transform of what it convolves with. Real: the operator is self-adjoint.
        input_output_dtype: Of the matrix; if it is real, so must the matrix be.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; True of a real spectrum.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: The class's name if None.

    Raises:
        ValueError: A spectrum of too few axes, or a hint that is wrong.
    """

    _DEPTH = 1


class LinearOperatorCirculant2D(_Circulant):
    """The operator that convolves vectors that are matrices row by row, given by its eigenvalues.

    Args:
        spectrum: [..., N0, N1]: the transform of what it convolves with. Real: the operator is self-adjoint.
        input_output_dtype: Of the matrix; if it is real, so must the matrix be.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; True of a real spectrum.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: The class's name if None.

    Raises:
        ValueError: A spectrum of too few axes, or a hint that is wrong.
    """

    _DEPTH = 2


class LinearOperatorCirculant3D(_Circulant):
    """The operator that convolves vectors that are arrays of three axes, given by its eigenvalues.

    Args:
        spectrum: [..., N0, N1, N2]: the transform of what it convolves with. Real: the operator is self-adjoint.
        input_output_dtype: Of the matrix; if it is real, so must the matrix be.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint; True of a real spectrum.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: The class's name if None.

    Raises:
        ValueError: A spectrum of too few axes, or a hint that is wrong.
    """

    _DEPTH = 3


class LinearOperatorToeplitz(LinearOperator):
    """The operator with equal elements along every diagonal, which multiplies by Fourier transforms.

    Args:
        col: The first column, [..., N].
        row: The first row, [..., N]; its first element is not read.
        is_non_singular: A hint; see LinearOperator, also for the next three.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint; it is.
        name: A name.

    Raises:
        ValueError: Scalars, other lengths, or a hint that is wrong.
    """

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        parameters = parameters_of(locals())
        row, col = kept(row), kept(col)
        for noun, tensor in (("row", row), ("col", col)):
            if not len(tensor.shape):
                raise ValueError(f"Argument {noun} must have at least 1 dimension.  Found: {tensor}")
        if row.shape[-1] != col.shape[-1]:
            raise ValueError("Expected square matrix, got row and col with mismatched dimensions.")
        square = agreed(is_square, True, "Only square Toeplitz operators currently supported.")
        super().__init__(
            row.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, square, name, parameters
        )
        self._row, self._col = row, col

    @property
    def col(self) -> Any:
        """The first column: the tensor or variable of the constructor."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row: the tensor or variable of the constructor."""
        return self._row

    def _shape(self) -> TensorShape:
        shape = common_batch([self._row.shape, self._col.shape])
        return shape.concatenate(shape[-1:])

    def _assert_self_adjoint(self) -> None:
        debugging.assert_equal(
            self._row, self._col, message="row and col are not the same, and so this operator is not self-adjoint."
        )

    def _sides(self) -> tuple[Any, Any]:
        shape = self.shape[:-1].as_list()
        return broadcast_to(self._col, shape), broadcast_to(self._row, shape)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        col, row = self._sides()
        around = concat([col, zeros_like(col[..., :1]), reverse(row[..., 1:], axis=[-1])], axis=-1)
        circulant = LinearOperatorCirculant(fourier.fft(_complex(around)), input_output_dtype=self.dtype)
        result = circulant.matmul(concat([x, zeros_like(x)], axis=-2), adjoint=adjoint)
        return result[..., : self.domain_dimension, :]

    def _trace(self) -> Any:
        return self.domain_dimension * self._sides()[0][..., 0]

    def _diag_part(self) -> Any:
        return self._sides()[0][..., :1] * ones([self.domain_dimension], self.dtype)

    def _to_dense(self) -> Any:
        size = self.domain_dimension
        col, row = self._sides()
        elements = concat([reverse(col, axis=[-1]), row[..., 1:]], axis=-1)
        places = np.arange(size) + np.arange(size)[::-1, None]
        return gather(elements, places, axis=-1)
