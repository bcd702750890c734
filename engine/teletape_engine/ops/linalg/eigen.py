"""Eigenvalues and eigenvectors of stacked square matrices [..., n, n]: of Hermitian ones, and of any.

Where eigenvalues are equal, the rules take the reciprocal of their difference for zero, as TensorFlow's do.
"""

from __future__ import annotations

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, HostArray, decompositions
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj, real
from teletape_engine.ops.elementwise.math import square
from teletape_engine.ops.linalg.diagonal import band_part, diag, diag_part, set_diag, stacked
from teletape_engine.ops.linalg.matrix import SOLVABLE, adjoint_of
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.shape import expand_dims
from teletape_engine.spec import COMPLEX, COMPLEX_OF, DType, Spec

_TINY = 1e-20  # as TensorFlow's


def check_square(op_type: str, x: Spec) -> None:
    """Raises InvalidArgumentError unless x are square matrices of a dtype that LAPACK takes."""
    check_dtypes(op_type, (x,), SOLVABLE)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    if x.shape[-1] != x.shape[-2]:
        raise InvalidArgumentError("Input matrix must be square.")


def safe_reciprocal(x: Operand) -> Operand:
    """1 / x, and 0 at 0."""
    return x / (square(x) + _TINY)


def reciprocal_differences(values: Operand) -> Operand:
    """The matrices 1 / (values[j] - values[i]), zero on the diagonal."""
    difference = expand_dims(values, axis=-2) - expand_dims(values, axis=-1)
    return set_diag(safe_reciprocal(difference), zeros_like(values))


def total(*parts: Operand | None) -> Operand:
    """The sum of the parts that are not None: of cotangents of which some are absent."""
    first, *others = [part for part in parts if part is not None]
    return sum(others, first)


def _lower_of_hermitian(x: Operand) -> Operand:
    """The cotangent of a lower triangle that stands for a Hermitian matrix, from the cotangent x of that matrix."""
    whole = band_part(x + adjoint_of(x), num_lower=-1, num_upper=0)
    return set_diag(whole, diag_part(whole) * 0.5)


def _hermitian_of_lower(x: Operand) -> Operand:
    """The Hermitian matrix whose lower triangle is that of x."""
    lower = band_part(x, num_lower=-1, num_upper=0)
    diagonal = diag_part(lower)
    return set_diag(lower + adjoint_of(lower), real_part(diagonal))


def real_part(x: Operand) -> Operand:
    """The real part, in the dtype of x."""
    return (x + conj(x)) * 0.5 if x.dtype in COMPLEX else x


def _eigenvectors_work(x: Spec) -> int:
    return 4 * x.size * x.shape[-1]


def _separated(*lead: int) -> HostArray:
    """Matrices with eigenvalues near 1, 3 and -2; of the lower triangle too."""
    random = np.random.default_rng(3)
    return random.uniform(-0.4, 0.4, (*lead, 3, 3)) + np.diag([1.0, 3.0, -2.0])


# ---------------------------------------------------------------------------------------------------------- Hermitian
def _eigh_spec(x: Spec) -> tuple[Spec, Spec]:
    check_square("SelfAdjointEigV2", x)
    return x.with_shape(x.shape[:-1]), x


def _eigvalsh_spec(x: Spec) -> Spec:
    check_square("SelfAdjointEigV2", x)
    return x.with_shape(x.shape[:-1])


# Giles 2008, An extended collection of matrix derivative results, section 3.1. With P = Vᴴ dA V and
# F = 1 / (w[j] - w[i]): dw = diag P, dV = V (F ∘ P).
def _eigh_vjp(ct: tuple[Operand | None, ...], values: Operand, vectors: Operand) -> Operand:
    values_ct, vectors_ct = ct
    inner = None if values_ct is None else diag(real_part(values_ct))
    if vectors_ct is not None:
        inner = total(inner, reciprocal_differences(values) * matmul(vectors, vectors_ct, adjoint_a=True))
    return _lower_of_hermitian(matmul(vectors, matmul(inner, vectors, adjoint_b=True)))


def _eigh_jvp(t: Operand, values: Operand, vectors: Operand) -> tuple[Operand, Operand]:
    within = matmul(vectors, matmul(_hermitian_of_lower(t), vectors), adjoint_a=True)
    return real_part(diag_part(within)), matmul(vectors, reciprocal_differences(values) * within)


@op(
    infer=_eigh_spec,
    vjp=_eigh_vjp,
    jvp=_eigh_jvp,
    batch=stacked,
    samples=lambda: [sample(_separated()), sample(_separated(2)), sample(np.zeros((0, 0)))],
    op_type="SelfAdjointEigV2",
    results="values vectors",
    tf=(function("linalg.eigh", Conversion.TENSOR("tensor")),),
    workspace=lambda x: 4 * x.nbytes,
    work=_eigenvectors_work,
    traits=[Trait.SELECTS, Trait.PHASES],
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether the matrices are finite")
def eigh(xp: ArrayModule, x: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues [..., n] and eigenvectors [..., n, n], the columns, of Hermitian matrices [..., n, n].

    Their lower triangle is read, and has the gradient; that of the vectors takes each vector's phase for fixed.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    values, vectors = decompositions.eigh(xp, x)
    return values.astype(x.dtype), vectors


@op(
    infer=_eigvalsh_spec,
    vjp=lambda ct, x: _eigvalsh_vjp(ct, x),
    jvp=lambda t, x: _eigh_jvp(t, *ops.eigh(x))[0],
    batch=stacked,
    samples=lambda: [sample(_separated()), sample(_separated(2)), sample(np.zeros((0, 0)))],
    op_type="SelfAdjointEigV2",
    tf="linalg.eigvalsh",
    args="tensor",
    workspace=lambda x: 3 * x.nbytes,
    work=lambda x: x.size * x.shape[-1],
    traits=[Trait.SELECTS],
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether the matrices are finite")
def eigvalsh(xp: ArrayModule, x: Array) -> Array:
    """The ascending eigenvalues [..., n] of Hermitian matrices [..., n, n], of which the lower triangle is read.

    The gradient computes the eigenvectors too, and is a lower triangle.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    return decompositions.eigvalsh(xp, x).astype(x.dtype)


def _eigvalsh_vjp(ct: Operand, x: Operand) -> Operand:
    _, vectors = ops.eigh(x)
    scaled = vectors * expand_dims(real_part(ct), axis=-2)
    return _lower_of_hermitian(matmul(scaled, vectors, adjoint_b=True))


# --------------------------------------------------------------------------------------------------- without symmetry
def complex_like(dtype: DType) -> DType:
    """The complex dtype of that precision."""
    return COMPLEX_OF.get(dtype, dtype)


def _eig_spec(x: Spec) -> tuple[Spec, Spec]:
    check_square("Eig", x)
    vectors = x.with_dtype(complex_like(x.dtype))
    return vectors.with_shape(x.shape[:-1]), vectors


def _eigvals_spec(x: Spec) -> Spec:
    check_square("Eig", x)
    return Spec.of(x.shape[:-1], complex_like(x.dtype))


def _real_diagonal(x: Operand) -> Operand:
    """The matrices of the real parts of the diagonals."""
    return diag(real_part(diag_part(x)))


def _as_input(gradient: Operand, x_spec: Spec) -> Operand:
    return gradient if x_spec.dtype in COMPLEX else real(gradient)


def _as_complex(t: Operand) -> Operand:
    return t if t.dtype in COMPLEX else cast(t, dtype=complex_like(t.dtype))


# With P = V⁻¹ dA V and F = 1 / (w[j] - w[i]): dw = diag P, dV = V (F ∘ P), minus V times the real diagonal of
# Vᴴ V (F ∘ P), so that the columns keep their length (Boeddeker et al. 2017, On the computation of complex-valued
# gradients with application to statistically optimum beamforming, section 4.13).
def _eig_vjp(ct: tuple[Operand | None, ...], x_spec: Spec, values: Operand, vectors: Operand) -> Operand:
    values_ct, vectors_ct = ct
    inner = None if values_ct is None else diag(values_ct)
    if vectors_ct is not None:
        turned = matmul(vectors, vectors_ct, adjoint_a=True)
        straight = turned - matmul(matmul(vectors, vectors, adjoint_a=True), _real_diagonal(turned))
        inner = total(inner, conj(reciprocal_differences(values)) * straight)
    gradient = ops.solve(vectors, matmul(inner, vectors, adjoint_b=True), adjoint=True)
    return _as_input(gradient, x_spec)


def _eig_jvp(t: Operand, values: Operand, vectors: Operand) -> tuple[Operand, Operand]:
    within = ops.solve(vectors, matmul(_as_complex(t), vectors))
    moved = matmul(vectors, reciprocal_differences(values) * within)
    lengths = _real_diagonal(matmul(vectors, moved, adjoint_a=True))
    return diag_part(within), moved - matmul(vectors, lengths)


@op(
    infer=_eig_spec,
    vjp=_eig_vjp,
    jvp=_eig_jvp,
    batch=stacked,
    samples=lambda: [sample(_separated()), sample(_separated(2)), sample(np.zeros((0, 0)))],
    op_type="Eig",
    results="values vectors",
    tf=(function("linalg.eig eig", Conversion.TENSOR("tensor")),),
    workspace=lambda x: 8 * x.nbytes,
    work=lambda x: 8 * x.size * x.shape[-1],
    traits=[Trait.PHASES],
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether the matrices are finite")
def eig(xp: ArrayModule, x: Array) -> tuple[Array, Array]:
    """Eigenvalues [..., n] and eigenvectors [..., n, n] of matrices [..., n, n] without symmetry, complex.

    The eigenvectors are columns of length 1. The order is LAPACK's for real matrices, and by magnitude for complex
    ones. The gradient of the vectors takes each vector's phase for fixed.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    values, vectors = decompositions.eig(xp, x)
    dtype = complex_like(x.dtype)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _eigvals_vjp(ct: Operand, x: Operand, x_spec: Spec) -> Operand:
    _, vectors = ops.eig(x)
    scaled = expand_dims(ct, axis=-1) * adjoint_of(vectors)
    return _as_input(ops.solve(vectors, scaled, adjoint=True), x_spec)


@op(
    infer=_eigvals_spec,
    vjp=_eigvals_vjp,
    jvp=lambda t, x: _eig_jvp(t, *ops.eig(x))[0],
    batch=stacked,
    samples=lambda: [sample(_separated()), sample(_separated(2)), sample(np.zeros((0, 0)))],
    op_type="Eig",
    tf=(by_hand("linalg.eigvals eigvals", "the dtype of what it takes is checked as TensorFlow checks it"),),
    workspace=lambda x: 6 * x.nbytes,
    work=lambda x: 4 * x.size * x.shape[-1],
    reach=Reach.MATRICES,
)
@on_gpu(waits="whether the matrices are finite")
def eigvals(xp: ArrayModule, x: Array) -> Array:
    """The complex eigenvalues [..., n] of matrices [..., n, n] without symmetry, in the order of `eig`.

    The gradient computes the eigenvectors too.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    return decompositions.eigvals(xp, x).astype(complex_like(x.dtype), copy=False)
