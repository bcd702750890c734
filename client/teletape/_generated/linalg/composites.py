"""TensorFlow's functions of teletape_engine.ops.linalg.composites.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_MATVEC = ops.matvec
_TRACE = ops.trace
_LOGDET = ops.logdet
_MATRIX_TRANSPOSE = ops.matrix_transpose
_ADJOINT = ops.adjoint
_TENSOR_DIAG = ops.tensor_diag
_TENSOR_DIAG_PART = ops.tensor_diag_part
_CROSS = ops.cross


def matvec(
    a: to.TensorInput,
    b: to.TensorInput,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: Any = False,
    b_is_sparse: Any = False,
    name: str | None = None,
) -> Tensor:
    """The products of matrices [..., n, k] and vectors [..., k]: [..., n]; leading axes broadcast.

    `transpose_a` swaps the last two axes of `a` first; `adjoint_a` conjugates it too.
    """
    try:
        a = to.value(a)
        b = to.hinted(b, a)
        attrs: dict[str, Any] = {}
        if transpose_a is not False:
            attrs["transpose_a"] = to.flag(transpose_a)
        if adjoint_a is not False:
            attrs["adjoint_a"] = to.flag(adjoint_a)
        return call(_MATVEC, (a, b), **attrs)
    except BaseException as error:
        report(error)
        raise


def trace(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of matrices [..., n, m]."""
    try:
        x = to.tensor(x)
        return call(_TRACE, (x,))
    except BaseException as error:
        report(error)
        raise


def logdet(matrix: to.TensorInput, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of Hermitian, positive definite matrices [..., n, n]; NaN of others."""
    try:
        matrix = to.tensor(matrix)
        return call(_LOGDET, (matrix,))
    except BaseException as error:
        report(error)
        raise


def matrix_transpose(a: to.TensorInput, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes swapped, and the elements conjugated if `conjugate`."""
    try:
        a = to.tensor(a)
        checks.matrices(a)
        attrs: dict[str, Any] = {}
        if conjugate is not False:
            attrs["conjugate"] = to.flag(conjugate)
        return call(_MATRIX_TRANSPOSE, (a,), **attrs)
    except BaseException as error:
        report(error)
        raise


def adjoint(matrix: to.TensorInput, name: str | None = None) -> Tensor:
    """The last two axes swapped, and the elements conjugated."""
    try:
        matrix = to.tensor(matrix)
        checks.matrices(matrix)
        return call(_ADJOINT, (matrix,))
    except BaseException as error:
        report(error)
        raise


def tensor_diag(diagonal: to.TensorInput, name: str | None = None) -> Tensor:
    """Zeros [*shape, *shape] with x [*shape] where both halves of the index are equal."""
    try:
        return call(_TENSOR_DIAG, (diagonal,))
    except BaseException as error:
        report(error)
        raise


def tensor_diag_part(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The elements [*shape] of x [*shape, *shape] where both halves of the index are equal."""
    try:
        input = to.tensor(input)
        return call(_TENSOR_DIAG_PART, (input,))
    except BaseException as error:
        report(error)
        raise


def cross(a: to.TensorInput, b: to.TensorInput, name: str | None = None) -> Tensor:
    """The cross products of vectors [..., 3] of three elements."""
    try:
        a = to.tensor(a)
        checks.three_elements(a, b)
        return call(_CROSS, (a, b))
    except BaseException as error:
        report(error)
        raise
