"""The text of a StableHLO program: values, constants, and the ops that have more than operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.spec import Spec

#: The element types, by dtype.
ELEMENTS: Final = {
    "bool": "i1",
    "bfloat16": "bf16",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


class Value(NamedTuple):
    """A value of the program.

    Attributes:
        name: `%3`.
        spec: Its shape and dtype.
    """

    name: str
    spec: Spec


def type_of(spec: Spec) -> str:
    """Returns `tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{size}x' for size in spec.shape)}{ELEMENTS[np.dtype(spec.dtype).name]}>"


def numbers(values: Sequence[int]) -> str:
    """Returns an attribute that is a list of integers."""
    return f"array<i64{': ' if len(values) else ''}{', '.join(map(str, values))}>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    """Returns an attribute that is a table of integers: what is added before and after each axis."""
    return f"dense<{[list(pair) for pair in values]}> : tensor<{len(values)}x2xi64>"


class Writer:
    """Collects the lines of a program."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def op(self, name: str, inputs: Sequence[Value], spec: Spec, attributes: str = "", region: str = "") -> Value:
        """Adds an op, in MLIR's generic form, and returns its result.

        Args:
            name: With its dialect, or of StableHLO's.
            inputs: Its operands.
            spec: Of the result.
            attributes: As they stand in the text.
            region: The function of an op that takes one.
        """
        result = Value(f"%{len(self.lines)}", spec)
        operands, types = (
            ", ".join([value.name for value in inputs]),
            ", ".join([type_of(item.spec) for item in inputs]),
        )
        full = name if "." in name else f"stablehlo.{name}"
        options = f"{f' ({region})' if region else ''}{f' {{{attributes}}}' if attributes else ''}"
        self.lines.append(f'{result.name} = "{full}"({operands}){options} : ({types}) -> {type_of(spec)}')
        return result

    def constant(self, array: Any) -> Value:
        """Adds an array."""
        array = np.asarray(array)
        spec = Spec.of(array.shape, array.dtype)
        if not array.size:
            elements = ""
        elif array.dtype == bool:
            elements = str(array.tolist()).lower()
        else:
            little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.isbuiltin else array
            elements = f'"0x{np.ascontiguousarray(little).tobytes().hex().upper()}"'
        return self.op("constant", [], spec, f"value = dense<{elements}> : {type_of(spec)}")

    def filled(self, number: float, like: Value) -> Value:
        """Adds an array of one number, with the shape and dtype of a value."""
        return self.broadcast(self.constant(np.asarray(number, like.spec.dtype)), like.spec.shape)

    def broadcast(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Returns a value with another shape, by NumPy's rules."""
        if value.spec.shape == shape:
            return value
        axes = numbers(range(len(shape) - len(value.spec.shape), len(shape)))
        spec = Spec.of(shape, value.spec.dtype)
        return self.op("broadcast_in_dim", [value], spec, f"broadcast_dimensions = {axes}")

    def elementwise(self, name: str, *inputs: Value, dtype: np.dtype[Any] | None = None, attributes: str = "") -> Value:
        """Adds an op on elements; inputs are broadcast, and the result has the last one's dtype or `dtype`."""
        shape = np.broadcast_shapes(*[value.spec.shape for value in inputs])
        spec = Spec.of(shape, inputs[-1].spec.dtype if dtype is None else dtype)
        return self.op(name, [self.broadcast(value, shape) for value in inputs], spec, attributes)

    def folding(self, name: str, value: Value) -> tuple[Value, str]:
        """Returns what a reduction by an op starts with, and its region."""
        kind = np.dtype(value.spec.dtype)
        if name in ("add", "multiply"):
            start: Any = int(name == "multiply")
        elif kind.kind in "iu":
            start = np.iinfo(kind).min if name == "maximum" else np.iinfo(kind).max
        else:
            start = -np.inf if name == "maximum" else np.inf
        first = self.constant(np.asarray(start, kind))
        number = type_of(first.spec)
        region = (
            f'{{^bb0(%a: {number}, %b: {number}): %r = "stablehlo.{name}"(%a, %b) : ({number}, {number}) -> {number} '
            f'"stablehlo.return"(%r) : ({number}) -> ()}}'
        )
        return first, region
