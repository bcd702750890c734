"""What an expression's parts stand for while it is compiled: names, numbers, lists, texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np


@dataclass(frozen=True)
class Name:
    """A value under a name: an input, or a result of a step.

    Attributes:
        name: In the function.
        step: The step that computes it, if nothing else refers to it yet; None: it has a name in the text, or is an
            input.
        output: Its number among the results of that step.
    """

    name: str
    step: int | None = None
    output: int = 0


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


@dataclass(frozen=True)
class Computed:
    """A constant that a function has made of constants; it has no dtype, as those have none.

    Attributes:
        value: A number or nested lists of numbers.
    """

    value: Number | List


@dataclass(frozen=True)
class Constant:
    """A constant under a name.

    Attributes:
        name: Of the result that it is if no line uses it.
        value: The constant.
    """

    name: str
    value: Operand


Number: TypeAlias = bool | int | float
Operand: TypeAlias = Name | Text | List | Nothing | Computed | Number

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
    """Whether it is a number, a list of numbers, or computed of them."""
    if isinstance(operand, List):
        return all(map(is_constant, operand.members))
    return is_number(operand) or isinstance(operand, Computed)


def is_written(operand: Operand) -> bool:
    """Whether the text has it as a number or a list of numbers."""
    return is_number(operand) or (isinstance(operand, List) and all(map(is_written, operand.members)))


def array(operand: Operand) -> np.ndarray[Any, Any]:
    """Returns a constant as an array of bool or float64.

    Raises:
        ValueError: Its lists are ragged, or a number is too large; the text says which.
    """
    members = tensor(operand, integers=False, dtype="float64")
    numbers = np.array([float(number) for number in _numbers(operand)])
    return numbers.astype(members["dtype"]).reshape(members["shape"])


def of_array(result: np.ndarray[Any, Any]) -> Computed:
    """Returns an array as a constant."""

    def operand(value: Any) -> Any:
        return List(tuple(map(operand, value))) if isinstance(value, list) else value

    return Computed(operand(result.tolist()))


def plain(operand: Operand) -> Any:
    """Returns an attribute's value as JSON has it.

    Raises:
        TypeError: It holds a name: attributes are known before anything is computed.
    """
    if isinstance(operand, Computed):
        operand = operand.value
    if isinstance(operand, List):
        return [plain(member) for member in operand.members]
    if isinstance(operand, Name):
        raise TypeError(operand.name)
    if isinstance(operand, Text):
        return operand.text
    if isinstance(operand, Nothing):
        return None
    return _written(operand) if isinstance(operand, float) else operand


def tensor(operand: Operand, *, integers: bool, dtype: str) -> dict[str, Any]:
    """Returns a constant as a tensor in JSON: bool, int32 if `integers` are meant, or of `dtype`.

    The dtype is written out, since JavaScript writes 2.0 as 2.

    Raises:
        ValueError: Its lists are ragged; the text says how.
    """
    numbers = _numbers(operand)
    shape = _shape(operand)
    if numbers and all(isinstance(number, bool) for number in numbers):
        return {"dtype": "bool", "shape": shape, "data": numbers} | _scalar(shape, numbers)
    if integers and all(isinstance(number, int) for number in numbers):
        return {"dtype": "int32", "shape": shape, "data": [int(number) for number in numbers]} | _scalar(shape, numbers)
    try:
        data = [_written(float(number)) for number in numbers]
    except OverflowError:
        raise ValueError("a number is too large") from None
    return {"dtype": dtype, "shape": shape, "data": data} | _scalar(shape, data)


def _scalar(shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {} if shape else {"data": data[0]}


def _numbers(operand: Operand) -> list[Number]:
    if isinstance(operand, Computed):
        operand = operand.value
    if isinstance(operand, List):
        return [number for member in operand.members for number in _numbers(member)]
    assert isinstance(operand, bool | int | float)
    return [operand]


def _shape(operand: Operand) -> list[int]:
    if isinstance(operand, Computed):
        operand = operand.value
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
