"""Variables without a value in converted code."""

from __future__ import annotations

from typing import Any


class Undefined:
    """The placeholder for a variable without a value in converted code.

    Args:
        symbol_name: The variable's name.
    """

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """Raises: the variable has no value.

        Raises:
            UnboundLocalError: Always.
        """
        raise UnboundLocalError(f"'{self.symbol_name}' is used before assignment")

    def __repr__(self) -> str:
        return self.symbol_name


class UndefinedReturnValue:
    """The value of a function that has not returned yet."""


def ld(value: Any) -> Any:
    """Returns the value of a variable; raises as Python does if it has none."""
    return value.read() if value.__class__ is Undefined else value


def ldu(load: Any, name: str) -> Any:
    """Returns the result of `load` (it reads `self.x` or `d["x"]`), or Undefined if that fails."""
    try:
        return load()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)


def is_undefined(value: Any) -> bool:
    """Whether a variable has no value, or None."""
    return value is None or isinstance(value, Undefined | UndefinedReturnValue)
