"""Writes the steps of a function from formulas: `m + (g - m) * 0.1` is two steps, each with a name of its own."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands
from teletape_engine.commands import Command
from teletape_engine.recording.values import Literal


class StepWriter:
    """The steps of a function that is being written.

    Attributes:
        steps: In order.
    """

    def __init__(self) -> None:
        self.steps: list[Command] = []

    def term(self, name: str) -> Term:
        """Returns the term of a name inside the function: an input, or a result of a step."""
        return Term(self, name)

    def new_name(self) -> str:
        """Returns a name that no step has."""
        return f"term:{len(self.steps)}"

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Term:
        """Writes a call of an op; inputs are terms and numbers."""
        name = self.new_name()
        operands = tuple([value.name if isinstance(value, Term) else Literal(value) for value in inputs])
        self.steps.append(commands.Call(op, operands, (name,), attrs))
        return Term(self, name)

    def assign(self, variable: Term, value: Term, mode: str = "set") -> None:
        """Writes an assignment; the variable's term is its new value from now on."""
        self.steps.append(commands.Assign(variable.name, value.name, mode))


class Term:
    """A value inside a function that is being written.

    Args:
        writer: Gets the steps.
        name: Its name inside the function.
    """

    __slots__ = ("name", "writer")

    def __init__(self, writer: StepWriter, name: str) -> None:
        self.writer, self.name = writer, name

    def __add__(self, other: Any) -> Term:
        return self.writer.op("add", self, other)

    def __sub__(self, other: Any) -> Term:
        return self.writer.op("sub", self, other)

    def __rsub__(self, other: Any) -> Term:
        return self.writer.op("sub", other, self)

    def __mul__(self, other: Any) -> Term:
        return self.writer.op("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Term:
        return self.writer.op("div", self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return self.writer.op("div", other, self)

    def __rpow__(self, other: Any) -> Term:
        return self.writer.op("pow", other, self)

    def __neg__(self) -> Term:
        return self.writer.op("neg", self)
