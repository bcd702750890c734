"""`tf.linalg.diag`, `diag_part` and `set_diag`, whose `k` names one diagonal or a range of them.

By hand: several diagonals take several ops. Diagonals are the rows of a matrix, the highest first; shorter ones are
aligned to the left or the right of their row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_ALIGNMENTS: Final = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _range(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal.

    Raises:
        InvalidArgumentError: More than two numbers, or the lower one is higher.
    """
    numbers = to.ints(k, "k")
    if len(numbers) not in (1, 2):
        raise InvalidArgumentError(f"diag_index must have only one or two elements, received {len(numbers)} elements.")
    if numbers[0] > numbers[-1]:
        raise InvalidArgumentError(
            f"lower_diag_index must not be larger than upper_diag_index: {numbers[0]} > {numbers[-1]}"
        )
    return numbers[0], numbers[-1]


def _rows(rows: int, columns: int, k: tuple[int, int], align: str) -> tuple[int, Iterator[tuple[int, int, int]]]:
    """The longest length of the diagonals, and (number, first column, length) of each, the highest first.

    Raises:
        InvalidArgumentError: Diagonals outside of the matrix, or another alignment.
    """
    low, high = k
    for number, noun in ((low, "lower"), (high, "upper")):
        if number and not -rows < number < columns:
            raise InvalidArgumentError(
                f"{noun}_diag_index is out of bound: {number}. It must be between {-rows} and {columns}"
            )
    if align not in _ALIGNMENTS:
        raise InvalidArgumentError(
            f"Value for attr 'align' of \"{align}\" is not in the list of allowed values: "
            + ", ".join(f'"{each}"' for each in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
        )
    longest = max(min(rows + min(high, 0), columns - max(low, 0)), 0)
    above, below = (side == "LEFT" for side in align.split("_"))

    def each() -> Iterator[tuple[int, int, int]]:
        for number in range(high, low - 1, -1):
            length = max(min(rows + min(number, 0), columns - max(number, 0)), 0)
            to_the_left = (number >= 0 and above) or (number <= 0 and below)
            yield number, 0 if to_the_left else longest - length, length

    return longest, each()


def diag_part(
    input: to.TensorInput,
    name: str | None = "diag_part",
    k: to.IntsInput = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The k-th diagonals [..., n] of matrices, counted upwards from the main one; or a range of them.

    Args:
        input: Matrices [..., rows, columns].
        name: Accepted, without effect.
        k: A number, or the lowest and the highest: [..., number of diagonals, longest length].
        padding_value: Fills the rows of shorter diagonals.
        align: The alignment of the diagonals above the main one, then of those below: "RIGHT_LEFT", for example.

    Raises:
        InvalidArgumentError: No matrices, no such diagonals, or another alignment.

    Example:
        tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]])
    """
    low, high = _range(k)
    x = convert_to_tensor(input)
    if low == high or x.ndim < 2:
        return call(ops.diag_part, (x,), k=low)
    lengths = x.shape.as_list()
    longest, each = _rows(lengths[-2], lengths[-1], (low, high), align)
    around = ((0, 0),) * (x.ndim - 2)
    fill = to.number(padding_value)
    parts = []
    for number, first, length in each:
        paddings = (*around, (first, longest - first - length))
        parts.append(call(ops.pad, (call(ops.diag_part, (x,), k=number),), paddings=paddings, constant_value=fill))
    return call(ops.stack, tuple(parts), axis=x.ndim - 2)


def diag(
    diagonal: to.TensorInput,
    name: str | None = "diag",
    k: to.IntsInput = 0,
    num_rows: to.IntInput = -1,
    num_cols: to.IntInput = -1,
    padding_value: to.NumberInput = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the k-th diagonal, or a range of them, and `padding_value` elsewhere.

    Args:
        diagonal: [..., n]; of a range [..., number of diagonals, longest length], as `diag_part` returns it.
        name: Accepted, without effect.
        k: A number, or the lowest and the highest.
        num_rows: The number of rows; -1: the fewest.
        num_cols: The number of columns; -1: the fewest.
        padding_value: The other elements.
        align: As of `diag_part`.

    Raises:
        InvalidArgumentError: Shapes that do not fit, or another alignment.

    Example:
        tf.linalg.diag([1.0, 2.0])
    """
    low, high = _range(k)
    x, rows, columns, fill = (
        convert_to_tensor(diagonal),
        to.whole(num_rows),
        to.whole(num_cols),
        to.number(padding_value),
    )
    if low == high:
        return call(ops.diag, (x,), k=low, num_rows=rows, num_cols=columns, padding_value=fill)
    _check_count(x, low, high)
    longest = x.shape.as_list()[-1]
    least = longest - min(high, 0), longest + max(low, 0)
    if rows == columns == -1:
        rows = columns = max(least)
    rows, columns = (at_least if n == -1 else n for n, at_least in zip((rows, columns), least, strict=True))
    if rows < least[0] or columns < least[1] or (rows != least[0] and columns != least[1]):
        raise InvalidArgumentError(
            f"The number of rows or columns is not consistent with the diagonals: {rows}, {columns}, at least "
            f"{least[0]}, {least[1]}"
        )
    shape = (*x.shape.as_list()[:-2], rows, columns)
    return _written(constant(np.full(shape, fill, x.dtype.as_numpy_dtype)), x, (low, high), align)


def set_diag(
    input: to.TensorInput,
    diagonal: to.TensorInput,
    name: str | None = "set_diag",
    k: to.IntsInput = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The matrices with `diagonal` in place of the k-th diagonal, or of a range of them.

    Args:
        input: Matrices [..., rows, columns].
        diagonal: [..., n]; of a range [..., number of diagonals, longest length], as `diag_part` returns it.
        name: Accepted, without effect.
        k: A number, or the lowest and the highest.
        align: As of `diag_part`.

    Raises:
        InvalidArgumentError: Shapes or dtypes that do not fit, or another alignment.

    Example:
        tf.linalg.set_diag([[1.0, 2.0], [3.0, 4.0]], [9.0, 9.0])
    """
    low, high = _range(k)
    if low == high:
        return call(ops.set_diag, (input, diagonal), k=low)
    x = convert_to_tensor(input)
    parts = convert_to_tensor(to.like(diagonal, x))
    _check_count(parts, low, high)
    return _written(x, parts, (low, high), align)


def _check_count(diagonals: Tensor, low: int, high: int) -> None:
    if diagonals.ndim < 2 or diagonals.shape.as_list()[-2] != high - low + 1:
        raise InvalidArgumentError(
            f"The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index "
            f"range: {high - low + 1} diagonals from {low} to {high}, found shape {diagonals.shape}"
        )


def _written(matrices: Tensor, diagonals: Tensor, k: tuple[int, int], align: str) -> Tensor:
    rows, columns = matrices.shape.as_list()[-2:]
    longest, each = _rows(rows, columns, k, align)
    if diagonals.shape.as_list()[-1] != longest:
        raise InvalidArgumentError(f"the longest diagonal has {longest} elements, found shape {diagonals.shape}")
    for row, (number, first, length) in enumerate(each):
        part = diagonals[..., row, first : first + length]
        matrices = call(ops.set_diag, (matrices, part), k=number)
    return matrices
