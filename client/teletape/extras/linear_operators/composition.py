"""Operators made of whole operators: the product, the adjoint and the inverse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from teletape._generated.elementwise.complex import conj, sign
from teletape._generated.linalg.composites import adjoint as adjoint_of
from teletape._generated.shapes.shape import expand_dims
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.linear_operators.arguments import agreed, common_batch, parameters_of
from teletape.extras.linear_operators.dense import LinearOperatorLowerTriangular
from teletape.extras.linear_operators.hints import check_dtypes, inherited, is_square_of_factor
from teletape.extras.linear_operators.operator import LinearOperator


class LinearOperatorComposition(LinearOperator):
    """The product of operators, the last applied first.

    Args:
        operators: The factors, at least one, of one dtype.
        is_non_singular: A hint; see LinearOperator, also for the next three. Known if every factor is.
        is_self_adjoint: A hint; known of A Aᴴ.
        is_positive_definite: A hint; known of A Aᴴ that is non-singular.
        is_square: A hint.
        name: The factors' names joined by "_o_" if None.

    Raises:
        TypeError: Factors of several dtypes.
        ValueError: No factor, shapes that do not fit, or a hint that is wrong.
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
            raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
        dtype = check_dtypes(operators, "Expected all operators to have the same dtype.  Found")
        non_singular = agreed(
            is_non_singular,
            all(operator.is_non_singular for operator in operators),
            "The composition of non-singular operators is always non-singular.",
        )
        of_factor = is_square_of_factor(operators)
        self_adjoint = agreed(
            is_self_adjoint,
            of_factor or (len(operators) == 1 and bool(operators[0].is_self_adjoint)),
            "The composition was determined to be self-adjoint but user provided incorrect `False` hint.",
        )
        form = "have the form A @ A.H, hence it must be"
        square = agreed(
            is_square,
            of_factor,
            f"The composition was determined {form} square. The user provided an incorrect `False` hint.",
        )
        positive = agreed(
            is_positive_definite,
            of_factor and bool(non_singular),
            f"The composition was determined to be non-singular and {form} positive-definite. The user provided an "
            "incorrect `False` hint.",
        )
        name = "_o_".join(operator.name for operator in operators) if name is None else name
        super().__init__(dtype, None, non_singular, self_adjoint, positive, square, name, parameters)
        self._operators = operators
        self._shape()

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors, the first on the left."""
        return self._operators

    def _shape(self) -> TensorShape:
        for left, right in zip(self._operators, self._operators[1:], strict=False):
            if left.domain_dimension != right.range_dimension:
                raise ValueError(f"Dimensions {left.domain_dimension} and {right.range_dimension} are not compatible")
        common = common_batch(operator.batch_shape for operator in self._operators)
        return common.concatenate([self._operators[0].range_dimension, self._operators[-1].domain_dimension])

    def _assert_non_singular(self) -> None:
        if all(operator.is_square for operator in self._operators):
            for operator in self._operators:
                operator.assert_non_singular()
        else:
            super()._assert_non_singular()

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorComposition(
            [operator.adjoint() for operator in reversed(self._operators)], **self._hints()
        )

    def _linop_inverse(self) -> LinearOperator:
        if not all(operator.is_square for operator in self._operators):
            return super()._linop_inverse()
        return LinearOperatorComposition(
            [operator.inverse() for operator in reversed(self._operators)], **self._hints()
        )

    def _linop_cholesky(self) -> LinearOperator:
        left = self._operators[0]
        if len(self._operators) != 2 or not is_square_of_factor(self._operators):
            return super()._linop_cholesky()
        if not isinstance(left, LinearOperatorLowerTriangular):
            return super()._linop_cholesky()
        if left.is_positive_definite:
            return left
        signs = expand_dims(sign(left.diag_part()), -2)
        return LinearOperatorLowerTriangular(left.to_dense() / signs, left.is_non_singular, left.is_self_adjoint)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        first, *others = self._operators if adjoint else reversed(self._operators)
        result = first.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in others:
            result = operator.matmul(result, adjoint=adjoint)
        return result

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        first, *others = reversed(self._operators) if adjoint else self._operators
        result = first.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in others:
            result = operator.solve(result, adjoint=adjoint)
        return result

    def _determinant(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._determinant()
        result = self._operators[0].determinant()
        for operator in self._operators[1:]:
            result = result * operator.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        if not all(operator.is_square for operator in self._operators):
            return super()._log_abs_determinant()
        result = self._operators[0].log_abs_determinant()
        for operator in self._operators[1:]:
            result = result + operator.log_abs_determinant()
        return result


class _OfOperator(LinearOperator):
    """The base class of the adjoint and the inverse, whose hints are those of the operator."""

    def __init__(self, parameters: dict[str, Any], noun: str, suffix: str) -> None:
        operator: LinearOperator = parameters["operator"]
        hints = _inherited_hints(operator, parameters, noun)
        name = f"{operator.name}_{suffix}" if parameters["name"] is None else parameters["name"]
        super().__init__(operator.dtype, **hints, name=name, parameters=parameters)
        self._operator = operator

    @property
    def operator(self) -> LinearOperator:
        """The operator whose adjoint or inverse this is."""
        return self._operator

    def _assert_non_singular(self) -> None:
        self._operator.assert_non_singular()

    def _assert_positive_definite(self) -> None:
        self._operator.assert_positive_definite()

    def _assert_self_adjoint(self) -> None:
        self._operator.assert_self_adjoint()

    def _cond(self) -> Any:
        return self._operator.cond()


def _inherited_hints(operator: LinearOperator, hints: dict[str, Any], noun: str) -> dict[str, bool | None]:
    properties = {
        "is_square": "square",
        "is_non_singular": "non-singular",
        "is_self_adjoint": "self-adjoint",
        "is_positive_definite": "positive-definite",
    }
    return {
        name: inherited(
            operator,
            name,
            hints[name],
            f"An operator is {properties[name]} if and only if its {noun} is {properties[name]}.",
        )
        for name in properties
    }


class LinearOperatorAdjoint(_OfOperator):
    """The adjoint of an operator, for structures whose `operator.adjoint()` has no better form.

    Args:
        operator: The operator.
        is_non_singular: A hint; see LinearOperator, also for the next three. Each is that of the operator.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: The operator's name and "_adjoint" if None.

    Raises:
        ValueError: A hint that contradicts the operator's.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = parameters_of(locals())
        super().__init__(parameters, "adjoint", "adjoint")

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]])

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._operator.matvec(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _determinant(self) -> Any:
        return conj(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Any:
        return conj(self._operator.trace())

    def _to_dense(self) -> Any:
        return adjoint_of(self._operator.to_dense())

    def _diag_part(self) -> Any:
        return conj(self._operator.diag_part())

    def _eigvals(self) -> Any:
        return self._operator.eigvals()


class LinearOperatorInversion(_OfOperator):
    """The inverse of an operator, for structures whose `operator.inverse()` has no better form.

    Args:
        operator: The operator, square and not hinted to be singular.
        is_non_singular: A hint; see LinearOperator, also for the next three. Each is that of the operator.
        is_self_adjoint: A hint.
        is_positive_definite: A hint.
        is_square: A hint.
        name: The operator's name and "_inv" if None.

    Raises:
        ValueError: It has no inverse by its hints or shape, or a hint contradicts the operator's.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = parameters_of(locals())
        for hint in ("is_non_singular", "is_square"):
            theirs, ours = getattr(operator, hint), parameters[hint]
            if theirs is False or ours is False:
                raise ValueError(
                    f"Argument `{hint}` or argument `operator` must have supplied hint `{hint}` equal to `True` or "
                    f"`None`. Found `operator.{hint}`: {theirs}, `{hint}`: {ours}."
                )
        super().__init__(parameters, "inverse", "inv")

    def _shape(self) -> TensorShape:
        return self._operator.shape

    def _linop_inverse(self) -> LinearOperator:
        return self._operator

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator.log_abs_determinant()

    def _eigvals(self) -> Any:
        return 1.0 / self._operator.eigvals()
