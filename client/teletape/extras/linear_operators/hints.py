"""The hints and dtypes of an operator, derived from those of the operators that it consists of."""

from __future__ import annotations

from typing import Any

from teletape.extras.linear_operators.operator import LinearOperator


def inherited(operator: LinearOperator, name: str, hint: bool | None, message: str) -> bool | None:
    """Returns the hint `name` of an operator that has this property if and only if `operator` has it.

    Raises:
        ValueError: Both are known and differ.
    """
    theirs: bool | None = getattr(operator, name)
    if None not in (theirs, hint) and theirs is not hint:
        raise ValueError(message)
    return hint if theirs is None else theirs


def check_dtypes(operators: list[LinearOperator], message: str) -> Any:
    """Returns the dtype of the operators.

    Raises:
        TypeError: They differ; the message ends with their names and dtypes.
    """
    dtype = operators[0].dtype
    if any(operator.dtype != dtype for operator in operators):
        names = "   ".join(str((operator.name, operator.dtype)) for operator in operators)
        raise TypeError(f"{message} {names}")
    return dtype


def is_adjoint_pair(left: LinearOperator, right: LinearOperator) -> bool:
    """Whether each is the adjoint of the other, by identity."""
    if left is right and left.is_self_adjoint is not None:
        return left.is_self_adjoint
    return left.H is right or right.H is left


def is_square_of_factor(operators: list[LinearOperator]) -> bool:
    """Whether the product of the operators has the form A Aᴴ."""
    half, odd = divmod(len(operators), 2)
    return not odd and all(is_adjoint_pair(operators[i], operators[-1 - i]) for i in range(half))
