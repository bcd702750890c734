"""What an expression's parts stand for while it is compiled: names, numbers, lists, texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Name:
    """A value under a name: an input, or a result of a step.

    Attributes:
        name: In the function.
        step: The step that computes it, if nothing else refers to it yet; None: it has a name in the text, or is an
            input.
    """

    name: str
    step: int | None = None


@dataclass(frozen=True)
class Text:
    """A text, for attributes."""

    text: str


@dataclass(frozen=True)
class List:
    """A list of operands."""

    members: tuple[Operand, ...]


@dataclass(frozen=True)
class Nothing:
    """`none`, for attributes."""


Number: TypeAlias = bool | int | float
Operand: TypeAlias = Name | Text | List | Nothing | Number

#: Names that mean a number or nothing, unless the text assigns to them.
CONSTANTS: dict[str, Operand] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "true": True,
    "false": False,
    "True": True,
    "False": False,
    "none": Nothing(),
    "None": Nothing(),
}


def is_number(operand: Operand) -> bool:
    """Whether it is a number that the text has."""
    return isinstance(operand, bool | int | float)


def is_constant(operand: Operand) -> bool:
    """Whether it is a number, or a list of numbers."""
    return is_number(operand) or (isinstance(operand, List) and all(map(is_constant, operand.members)))


def plain(operand: Operand) -> Any:
    """Returns an attribute's value as JSON has it.

    Raises:
        TypeError: It holds a name: attributes are known before anything is computed.
    """
    if isinstance(operand, List):
        return [plain(member) for member in operand.members]
    if isinstance(operand, Name):
        raise TypeError(operand.name)
    if isinstance(operand, Text):
        return operand.text
    if isinstance(operand, Nothing):
        return None
    return _written(operand) if isinstance(operand, float) else operand


def tensor(operand: Operand, *, integers: bool) -> dict[str, Any]:
    """Returns a number or a list of numbers as a tensor in JSON: bool, int32 if meant, or float32.

    The dtype is written out, since JavaScript writes 2.0 as 2.

    Raises:
        ValueError: Its lists are ragged; the text says how.
    """
    numbers = _numbers(operand)
    shape = _shape(operand)
    if numbers and all(isinstance(number, bool) for number in numbers):
        return {"dtype": "bool", "shape": shape, "data": numbers}
    if integers and all(isinstance(number, int) for number in numbers):
        return {"dtype": "int32", "shape": shape, "data": [int(number) for number in numbers]} | _scalar(shape, numbers)
    try:
        data = [_written(float(number)) for number in numbers]
    except OverflowError:
        raise ValueError("a number is too large") from None
    return {"dtype": "float32", "shape": shape, "data": data} | _scalar(shape, data)


def _scalar(shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {} if shape else {"data": data[0]}


def _numbers(operand: Operand) -> list[Number]:
    if isinstance(operand, List):
        return [number for member in operand.members for number in _numbers(member)]
    assert isinstance(operand, bool | int | float)
    return [operand]


def _shape(operand: Operand) -> list[int]:
    if not isinstance(operand, List):
        return []
    shapes = [_shape(member) for member in operand.members]
    if any(shape != shapes[0] for shape in shapes):
        different = next(shape for shape in shapes if shape != shapes[0])
        raise ValueError(f"the members of a list have different shapes: {shapes[0]} and {different}")
    return [len(shapes), *(shapes[0] if shapes else [])]


def _written(number: float) -> float | str:
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"
