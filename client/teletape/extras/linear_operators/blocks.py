"""Operators made of blocks: on the diagonal, on and below it, and multiplied with one another (Kronecker).

Operators of the first two kinds also take and return lists of tensors, one for each block. Long because there are
three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.linalg.composites import matrix_transpose
from teletape._generated.shapes.shape import broadcast_to, expand_dims, reshape, squeeze
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, common_batch, parameters_of, same_batch
from teletape.extras.linear_operators.hints import check_dtypes
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf.ops.arrays.create import zeros
from teletape.tf.ops.arrays.rearrange import concat, split


class _Blocks(LinearOperator):
    """The base class of both kinds: blocks on the diagonal, and arguments that are lists of blocks."""

    _diagonal: list[LinearOperator]

    def _lengths(self, of_rows: bool) -> list[int]:
        return [block.range_dimension if of_rows else block.domain_dimension for block in self._diagonal]

    def _parts(self, x: Any, lengths: list[int], axis: int) -> list[Tensor] | None:
        """Returns the tensors of a list with one for each block; None if `x` is no such list."""
        if not isinstance(x, list | tuple) or len(x) != len(lengths):
            return None
        parts = [convert_to_tensor(part) for part in x]
        if any(len(part.shape) < -axis for part in parts):
            return None
        return [self._argument(part, wanted, axis) for part, wanted in zip(parts, lengths, strict=True)]

    def _joined(self, parts: list[Tensor], axis: int = -2) -> Tensor:
        return concat(same_batch(parts), axis=axis)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        parts = self._parts(x, self._lengths(of_rows=adjoint), -1 if adjoint_arg else -2)
        if parts is None:
            return super().matmul(x, adjoint, adjoint_arg)
        return self._multiplied(parts, adjoint, adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        parts = self._parts(x, self._lengths(of_rows=adjoint), -1)
        if parts is None:
            return super().matvec(x, adjoint)
        columns = [expand_dims(part, -1) for part in parts]
        return [squeeze(part, -1) for part in self._multiplied(columns, adjoint, False)]

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        self._check_solvable()
        parts = self._parts(rhs, self._lengths(of_rows=not adjoint), -1 if adjoint_arg else -2)
        if parts is None:
            return super().solve(rhs, adjoint, adjoint_arg)
        return self._solutions([adjoint_of(part) for part in parts] if adjoint_arg else parts, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        parts = self._parts(rhs, self._lengths(of_rows=not adjoint), -1)
        if parts is None:
            return super().solvevec(rhs, adjoint)
        self._check_solvable()
        columns = [expand_dims(part, -1) for part in parts]
        return [squeeze(part, -1) for part in self._solutions(columns, adjoint)]

    def _multiplied(self, parts: list[Tensor], adjoint: bool, adjoint_arg: bool) -> list[Tensor]:
        raise NotImplementedError

    def _solutions(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        raise NotImplementedError

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        parts = split(x, self._lengths(of_rows=adjoint), axis=-1 if adjoint_arg else -2)
        return self._joined(self._multiplied(parts, adjoint, adjoint_arg))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all(block.is_square for block in self._diagonal):
            return super()._solve(rhs, adjoint, adjoint_arg)
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        parts = split(rhs, self._lengths(of_rows=not adjoint), axis=-2)
        return self._joined(self._solutions(parts, adjoint))

    def _assert_non_singular(self) -> None:
        for block in self._diagonal:
            block.assert_non_singular()

    def _determinant(self) -> Any:
        if not all(block.is_square for block in self._diagonal):
            return super()._determinant()
        product = math.prod(block.determinant() for block in self._diagonal)
        return broadcast_to(product, self.batch_shape.as_list())

    def _log_abs_determinant(self) -> Any:
        if not all(block.is_square for block in self._diagonal):
            return super()._log_abs_determinant()
        total = sum(block.log_abs_determinant() for block in self._diagonal)
        return broadcast_to(total, self.batch_shape.as_list())

    def _of_diagonals(self, values: list[Tensor]) -> Any:
        joined = squeeze(self._joined([expand_dims(value, -1) for value in values]), -1)
        return broadcast_to(joined, [*self.batch_shape, joined.shape[-1]])

    def _diag_part(self) -> Any:
        if not all(block.is_square for block in self._diagonal):
            return super()._diag_part()
        return self._of_diagonals([block.diag_part() for block in self._diagonal])

    def _trace(self) -> Any:
        if not all(block.is_square for block in self._diagonal):
            return super()._trace()
        return broadcast_to(sum(block.trace() for block in self._diagonal), self.batch_shape.as_list())


class LinearOperatorBlockDiag(_Blocks):
    """The operator with operators on its diagonal and zeros elsewhere.

    Args:
        operators: The blocks, at least one, of one dtype.
        is_non_singular: A hint; see LinearOperator, also for the next three. Known if known for every block.
        is_self_adjoint: A hint; known if known for every block.
        is_positive_definite: A hint; known if known for every block.
        is_square: A hint.
        name: The blocks' names joined by "_ds_" if None.

    Raises:
        TypeError: Blocks of several dtypes.
        ValueError: No block, or a hint that is wrong.
    """

    def __init__(
        self,
        operators: Iterable[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        parameters = parameters_of(locals())
        operators = list(operators)
        if not operators:
            raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
        dtype = check_dtypes(operators, "Expected all operators to have the same dtype.  Found")
        hints = _of_all(operators, parameters, "The direct sum of {0} operators is always {0}.")
        name = "_ds_".join(operator.name for operator in operators) if name is None else name
        super().__init__(dtype, **hints, is_square=is_square, name=name, parameters=parameters)
        self._operators = self._diagonal = operators

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks, the upper left one first."""
        return self._operators

    def _shape(self) -> TensorShape:
        common = common_batch(block.batch_shape for block in self._operators)
        return common.concatenate([sum(self._lengths(of_rows=True)), sum(self._lengths(of_rows=False))])

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([block.adjoint() for block in self._operators], **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        if not all(block.is_square for block in self._operators):
            return super()._linop_inverse()
        return LinearOperatorBlockDiag([block.inverse() for block in self._operators], **self._hints())

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([block.cholesky() for block in self._operators], is_non_singular=True)

    def _assert_positive_definite(self) -> None:
        for block in self._operators:
            block.assert_positive_definite()

    def _assert_self_adjoint(self) -> None:
        for block in self._operators:
            block.assert_self_adjoint()

    def _multiplied(self, parts: list[Tensor], adjoint: bool, adjoint_arg: bool) -> list[Tensor]:
        pairs = zip(self._operators, parts, strict=True)
        return [block.matmul(part, adjoint=adjoint, adjoint_arg=adjoint_arg) for block, part in pairs]

    def _solutions(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        return [block.solve(part, adjoint=adjoint) for block, part in zip(self._operators, parts, strict=True)]

    def _to_dense(self) -> Any:
        rows = []
        before, columns = 0, self.domain_dimension
        for matrix in same_batch(block.to_dense() for block in self._operators):
            after = columns - before - matrix.shape[-1]
            left, right = (zeros([*matrix.shape[:-1], width], self.dtype) for width in (before, after))
            rows.append(concat([left, matrix, right], axis=-1))
            before += matrix.shape[-1]
        return concat(rows, axis=-2)

    def _eigvals(self) -> Any:
        return self._of_diagonals([block.eigvals() for block in self._operators])


class LinearOperatorBlockLowerTriangular(_Blocks):
    """The operator with operators on and below its diagonal and zeros above.

    Args:
        operators: The rows of blocks: one block, two, …; those on the diagonal are square.
        is_non_singular: A hint; see LinearOperator, also for the next three. Known if every diagonal block is.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint; always True.
        name: The blocks' names if None.

    Raises:
        TypeError: Blocks of several dtypes.
        ValueError: Rows of other lengths, shapes that do not fit, or a hint that is wrong.
    """

    def __init__(
        self,
        operators: Iterable[Iterable[LinearOperator]],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        parameters = parameters_of(locals())
        rows = [list(row) for row in operators]
        if not rows:
            raise ValueError(f"Argument `operators` must be a list of >=1 operators. Received: {rows}.")
        for i, row in enumerate(rows):
            if len(row) != i + 1:
                raise ValueError(
                    f"Argument `operators[{i}]` must contain `{i + 1}` blocks. Received: {len(row)} blocks."
                )
        flat = [block for row in rows for block in row]
        dtype = check_dtypes(flat, "Expected all operators to have the same dtype.  Found")
        diagonal = [row[-1] for row in rows]
        for i, row in enumerate(rows):
            for j, block in enumerate(row):
                wanted = [diagonal[i].range_dimension, diagonal[j].domain_dimension]
                if block.shape[-2:].as_list() != wanted or not diagonal[i].is_square:
                    raise ValueError(
                        f"Argument `operators[{i}][{j}]` must have the shape {wanted}, and the blocks on the diagonal "
                        f"be square. Received: {block.shape[-2:]}."
                    )
        non_singular = agreed(
            is_non_singular,
            all(block.is_non_singular for block in diagonal),
            "A blockwise lower-triangular operator is non-singular if all blocks on its diagonal are.",
        )
        if any(block.is_non_singular is False for block in diagonal):
            if is_non_singular:
                raise ValueError("A blockwise lower-triangular operator with a singular diagonal block is singular.")
            non_singular = False
        square = agreed(is_square, True, "A blockwise lower-triangular operator is always square.")
        super().__init__(dtype, None, non_singular, is_self_adjoint, is_positive_definite, square, name, parameters)
        self._operators = rows
        self._diagonal = diagonal

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks, the uppermost first."""
        return self._operators

    def _shape(self) -> TensorShape:
        common = common_batch(block.batch_shape for row in self._operators for block in row)
        return common.concatenate([sum(self._lengths(of_rows=True)), sum(self._lengths(of_rows=False))])

    def _multiplied(self, parts: list[Tensor], adjoint: bool, adjoint_arg: bool) -> list[Tensor]:
        results = []
        for i in range(len(parts)):
            terms = range(i, len(parts)) if adjoint else range(i + 1)
            first, *others = (
                (self._operators[j][i] if adjoint else self._operators[i][j]).matmul(
                    parts[j], adjoint=adjoint, adjoint_arg=adjoint_arg
                )
                for j in terms
            )
            results.append(sum(others, start=first))
        return results

    def _solutions(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        """Solves by substitution: forward, or backward for the adjoint."""
        solutions: dict[int, Tensor] = {}
        for i in reversed(range(len(parts))) if adjoint else range(len(parts)):
            rest = parts[i]
            for j, solution in solutions.items():
                block = self._operators[j][i] if adjoint else self._operators[i][j]
                rest = rest - block.matmul(solution, adjoint=adjoint)
            solutions[i] = self._diagonal[i].solve(rest, adjoint=adjoint)
        return [solutions[i] for i in range(len(parts))]

    def _to_dense(self) -> Any:
        flat = iter(same_batch(block.to_dense() for row in self._operators for block in row))
        rows = []
        for row in self._operators:
            matrices = [next(flat) for _ in row]
            width = self.domain_dimension - sum(block.domain_dimension for block in row)
            rows.append(concat([*matrices, zeros([*matrices[0].shape[:-1], width], self.dtype)], axis=-1))
        return concat(rows, axis=-2)

    def _eigvals(self) -> Any:
        return self._of_diagonals([block.eigvals() for block in self._diagonal])


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators: each element of the first times the second, and so on.

    Args:
        operators: The factors, at least one, of one dtype.
        is_non_singular: A hint; see LinearOperator, also for the next three. Known if known for every factor.
        is_self_adjoint: A hint; known if known for every factor.
        is_positive_definite: A hint; known if known for every factor.
        is_square: A hint.
        name: The factors' names joined by "_x_" if None.

    Raises:
        TypeError: Factors of several dtypes.
        ValueError: No factor, or a hint that is wrong.
    """

    def __init__(
        self,
        operators: Iterable[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = parameters_of(locals())
        operators = list(operators)
        if not operators:
            raise ValueError(f"Argument `operators` must be a list of >=1 operators. Received: {operators}.")
        dtype = check_dtypes(
            operators, "Expected every operation in argument `operators` to have the same dtype. Received"
        )
        hints = _of_all(operators, parameters, "The Kronecker product of {0} operators is always {0}.")
        name = "_x_".join(operator.name for operator in operators) if name is None else name
        super().__init__(dtype, **hints, is_square=is_square, name=name, parameters=parameters)
        self._operators = operators

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors, the outermost first."""
        return self._operators

    def _shape(self) -> TensorShape:
        common = common_batch(operator.batch_shape for operator in self._operators)
        rows, columns = (math.prod(operator.shape[axis] for operator in self._operators) for axis in (-2, -1))
        return common.concatenate([rows, columns])

    def _assert_of_factors(self, name: str) -> None:
        if not all(operator.is_square for operator in self._operators):
            raise InvalidArgumentError(
                "All Kronecker factors must be square for the product to be invertible. Expected hint `is_square` to "
                "be True for every operator in argument `operators`."
            )
        for operator in self._operators:
            getattr(operator, name)()

    def _assert_non_singular(self) -> None:
        self._assert_of_factors("assert_non_singular")

    def _assert_self_adjoint(self) -> None:
        self._assert_of_factors("assert_self_adjoint")

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([operator.adjoint() for operator in self._operators], **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        if not all(operator.is_square for operator in self._operators):
            return super()._linop_inverse()
        return LinearOperatorKronecker([operator.inverse() for operator in self._operators], **self._hints())

    def _linop_cholesky(self) -> LinearOperator:
        if not all(operator._can_use_cholesky() for operator in self._operators):
            return super()._linop_cholesky()
        return LinearOperatorKronecker([operator.cholesky() for operator in self._operators], is_non_singular=True)

    def _factor_by_factor(self, x: Any, apply: Callable[[LinearOperator, Tensor], Tensor], axis: int) -> Any:
        """Applies every factor to its own axis of x; `axis` is the axis of a factor that x is multiplied along."""
        columns = x.shape[-1]
        result = matrix_transpose(x)  # [..., R, N]: the rows' index is split from its end
        for operator in reversed(self._operators):
            size = operator.shape[axis]
            flat = reshape(result, [*result.shape[:-2], math.prod(result.shape[-2:]) // size, size])
            result = matrix_transpose(apply(operator, matrix_transpose(flat)))
            # [..., R·others, new]: the axis just computed comes first, those left come last
            batch_shape, (count, new) = result.shape[:-2].as_list(), result.shape[-2:]
            inner = count // columns if columns else 0
            result = reshape(result, [*batch_shape, columns, inner, new])
            result = reshape(matrix_transpose(result), [*batch_shape, columns, new * inner])
        return matrix_transpose(result)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        axis = -2 if adjoint else -1
        return self._factor_by_factor(x, lambda operator, part: operator.matmul(part, adjoint=adjoint), axis)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return self._factor_by_factor(rhs, lambda operator, part: operator.solve(part, adjoint=adjoint), -1)

    def _determinant(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._determinant()
        rows = self.domain_dimension
        return math.prod(operator.determinant() ** (rows // operator.domain_dimension) for operator in self._operators)

    def _log_abs_determinant(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._log_abs_determinant()
        rows = self.domain_dimension
        return sum(operator.log_abs_determinant() * (rows // operator.domain_dimension) for operator in self._operators)

    def _trace(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._trace()
        return math.prod(operator.trace() for operator in self._operators)

    def _outer(self, vectors: Iterable[Tensor]) -> Any:
        first, *others = vectors
        for vector in others:
            product = expand_dims(first, -1) * expand_dims(vector, -2)
            first = reshape(product, [*product.shape[:-2], -1])
        return broadcast_to(first, [*self.batch_shape, first.shape[-1]])

    def _diag_part(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._diag_part()
        return self._outer(operator.diag_part() for operator in self._operators)

    def _eigvals(self) -> Any:
        return self._outer(operator.eigvals() for operator in self._operators)

    def _to_dense(self) -> Any:
        first, *others = (operator.to_dense() for operator in self._operators)
        for matrix in others:
            product = expand_dims(expand_dims(first, -1), -3) * expand_dims(expand_dims(matrix, -2), -4)
            # [..., m, p, n, q] of the axes [..., m, 1, n, 1] and [..., 1, p, 1, q]
            rows, p, columns, q = product.shape[-4:]
            first = reshape(product, [*product.shape[:-4], rows * p, columns * q])
        return first


def _of_all(operators: list[LinearOperator], hints: dict[str, Any], message: str) -> dict[str, bool | None]:
    """Returns the hints; True for those that are True for all operators."""
    return {
        name: agreed(hints[name], all(getattr(operator, name) for operator in operators), message.format(property_))
        for name, property_ in (
            ("is_non_singular", "non-singular"),
            ("is_self_adjoint", "self-adjoint"),
            ("is_positive_definite", "positive-definite"),
        )
    }
