"""A function that an expression was compiled to."""

from __future__ import annotations

from typing import Any, NamedTuple


class Compiled(NamedTuple):
    """A function: its inputs, the values that the text gives to them, its steps and outputs."""

    inputs: list[str]
    values: dict[str, Any]
    steps: list[dict[str, Any]]
    outputs: list[str]


def with_outputs(function: Compiled, outputs: list[str]) -> Compiled:
    """Returns the part of a function that computes these of its names: its other steps and inputs are left out."""
    needed = set(outputs)
    steps = []
    for step in reversed(function.steps):
        if needed & set(step["outputs"]):
            needed |= {operand for operand in step["inputs"] if isinstance(operand, str)}
            steps.append(step)
    inputs = [name for name in function.inputs if name in needed]
    values = {name: value for name, value in function.values.items() if name in needed}
    return Compiled(inputs, values, steps[::-1], outputs)
