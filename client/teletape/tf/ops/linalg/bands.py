"""`tf.linalg` functions of tridiagonal matrices, whose diagonals come in three formats."""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.rearrange import boolean_mask
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """The diagonals [..., 3, n]: above the main one, the main one, below it.

    Raises:
        ValueError: Another format, or shapes that do not fit it.
    """
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals)
    if diagonals_format == "sequence":
        if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
            raise ValueError("Expected diagonals to be a sequence of length 3.")
        above, main, below = (convert_to_tensor(part) for part in diagonals)
        above, below = _padded(above, main, "superdiagonal", (0, 1)), _padded(below, main, "subdiagonal", (1, 0))
    elif diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals)
        rows, columns = matrix.shape.as_list()[-2:]
        if rows != columns:
            raise ValueError(f"Expected last two dimensions of diagonals to be same, got {columns} and {rows}")
        main = call(ops.diag_part, (matrix,))
        if rows < 2:
            above = below = call(ops.zeros_like, (main,))
        else:
            above = _padded(call(ops.diag_part, (matrix,), k=1), main, "superdiagonal", (0, 1))
            below = _padded(call(ops.diag_part, (matrix,), k=-1), main, "subdiagonal", (1, 0))
    else:
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    return call(ops.stack, (above, main, below), axis=-2)


def _padded(part: Tensor, main: Tensor, what: str, width: tuple[int, int]) -> Tensor:
    n, m = part.shape[-1], main.shape[-1]
    if n == m:
        return part
    if n == m - 1:
        return call(ops.pad, (part,), paddings=(*[(0, 0)] * (part.ndim - 1), width))
    raise ValueError(f"Expected {what} to be have length {m} or {m - 1}, got {n}.")


def tridiagonal_solve(
    diagonals: Any,
    rhs: to.TensorInput,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solves T x = rhs for tridiagonal matrices T; rhs [..., n, k], or [..., n] for one right side each.

    NaN for singular matrices.

    By hand: the diagonals have three formats.

    Args:
        diagonals: "compact": [..., 3, n], above the main diagonal, the main one, below it; "sequence": those three;
            "matrix": [..., n, n].
        rhs: Right sides.
        diagonals_format: See `diagonals`.
        transpose_rhs: Whether to swap the last two axes of `rhs` first.
        conjugate_rhs: Whether to conjugate `rhs` first.
        name: Accepted, without effect.
        partial_pivoting: Accepted: rows are always exchanged.
        perturb_singular: Must be False.

    Raises:
        ValueError: Another format, or shapes that do not fit.
        NotImplementedError: `perturb_singular`.

    Example:
        tf.linalg.tridiagonal_solve(tf.constant([[0.0, 0.0], [2.0, 4.0], [0.0, 0.0]]), [[2.0], [4.0]])
    """
    if perturb_singular:
        if not partial_pivoting:
            raise ValueError("partial_pivoting must be True if perturb_singular is.")
        raise NotImplementedError("perturb_singular=True is not offered: add a small number to the main diagonal")
    bands, right = _compact(diagonals, diagonals_format), convert_to_tensor(rhs)
    if bands.ndim < 2:
        raise ValueError(f"Expected diagonals to have rank at least 2, got {bands.ndim}")
    if right.ndim not in (bands.ndim, bands.ndim - 1):
        raise ValueError(f"Expected the rank of rhs to be {bands.ndim - 1} or {bands.ndim}, got {right.ndim}")
    if bands.shape[:-2].as_list() != right.shape[: bands.ndim - 2].as_list():
        raise ValueError(f"Batch shapes {bands.shape[:-2]} and {right.shape[: bands.ndim - 2]} are incompatible")
    if bands.shape[-2] != 3:
        raise ValueError(f"Expected 3 diagonals got {bands.shape[-2]}")
    if conjugate_rhs and right.dtype.is_complex:
        right = call(ops.conj, (right,))
    vectors = right.ndim == bands.ndim - 1
    if vectors:
        right = call(ops.expand_dims, (right,), axis=-1)
    elif transpose_rhs:
        right = call(ops.matrix_transpose, (right,))
    if bands.shape[-1] != right.shape[-2]:
        raise ValueError(
            "Expected number of left-hand sided and right-hand sides to be equal, got "
            f"{bands.shape[-1]} and {right.shape[-2]}"
        )
    solved = call(ops.tridiagonal_solve, (bands, right))
    return call(ops.squeeze, (solved,), axis=-1) if vectors else solved


def tridiagonal_matmul(
    diagonals: Any, rhs: to.TensorInput, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The products of tridiagonal matrices and rhs [..., n, k]; the formats are those of `tridiagonal_solve`.

    By hand: the diagonals have three formats.

    Raises:
        ValueError: Another format, or shapes that do not fit it.
        InvalidArgumentError: Shapes or dtypes of the product that do not fit.

    Example:
        tf.linalg.tridiagonal_matmul(tf.constant([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]]), [[1.0], [2.0]])
    """
    return call(ops.tridiagonal_matmul, (_compact(diagonals, diagonals_format), convert_to_tensor(rhs)))


def eigh_tridiagonal(
    alpha: to.TensorInput,
    beta: to.TensorInput,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """Ascending eigenvalues of Hermitian tridiagonal matrices, or (eigenvalues, eigenvectors).

    By hand: the whole matrices are built, and all eigenvalues are computed.

    Args:
        alpha: The diagonal [n], real or with zero imaginary parts.
        beta: The diagonal below it [n - 1].
        eigvals_only: Whether to return the eigenvalues alone.
        select: "a": all; "i": those with the indices from select_range[0] to select_range[1]; "v": those above
            select_range[0] and up to select_range[1].
        select_range: The first and the last index, or two bounds.
        tol: Accepted, without effect.
        name: Accepted, without effect.

    Raises:
        ValueError: Another `select`, or no range for it.
        InvalidArgumentError: An empty range.

    Example:
        tf.linalg.eigh_tridiagonal(tf.constant([2.0, 2.0]), tf.constant([1.0]))
    """
    if select not in ("a", "i", "v"):
        raise ValueError(f"select must have a value in {{'a', 'i', 'v'}}, got {select!r}")
    if select != "a" and select_range is None:
        raise ValueError(f"select_range must be given for select={select!r}")
    main = convert_to_tensor(alpha)
    below = to.like(beta, main)
    matrix = call(ops.diag, (main,))
    if main.shape[-1] > 1:
        matrix = matrix + call(ops.diag, (below,), k=-1)
    values, vectors = (call(ops.eigvalsh, (matrix,)), None) if eigvals_only else call(ops.eigh, (matrix,))
    if values.dtype.is_complex:
        values = call(ops.real, (values,))
    if select == "i":
        first, last = (to.whole(number) for number in select_range)
        if first > last:
            raise InvalidArgumentError(f"Got empty index range in select_range: [{first}, {last}]")
        values = values[..., first : last + 1]
        vectors = vectors if vectors is None else vectors[..., first : last + 1]
    elif select == "v":
        lower, upper = (to.real_number(bound) for bound in select_range)
        if lower >= upper:
            raise InvalidArgumentError(f"Got empty interval in select_range: ({lower}, {upper}]")
        within = call(ops.logical_and, (values > lower, values <= upper))
        vectors = vectors if vectors is None else boolean_mask(vectors, within, axis=vectors.ndim - 1)
        values = boolean_mask(values, within)
    return values if vectors is None else (values, vectors)
