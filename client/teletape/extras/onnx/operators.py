"""The table of ONNX's operators: for each the functions of tensors that compute it, by name and first opset.

Positional parameters of such a function are the operator's inputs, keyword-only ones its attributes; what it has no
parameter for is refused when a graph is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

OLDEST: Final = 13  #: Opsets before it have other forms of many operators.
NEWEST: Final = 21

_TABLE: Final[dict[str, list[Operator]]] = {}


@dataclass(frozen=True, eq=False)
class Place:
    """Facts about a node that its operator may ask for, as the parameter `place`.

    Attributes:
        outputs: The number of results.
        open_axes: Axes of the first input that have another size in another call; None: any may have.
    """

    outputs: int
    open_axes: frozenset[int] | None


@dataclass(frozen=True, eq=False)
class Operator:
    """A form of an operator.

    Attributes:
        since: The first opset that has this form.
        compute: The function.
        attributes: The names of the attributes.
        required: Those of them that have no default.
        values: The values that an attribute, or each of its elements, may have; others are refused.
        hosts: Positions of inputs whose values shape the result: the function gets arrays.
        state: Positions of inputs that training does not change.
        absent: Positions of inputs that have no form here.
        most: The largest number of inputs; None: any.
        results: The largest number of outputs; None: any.
        takes_place: Whether the function has the parameter `place`.
    """

    since: int
    compute: Callable[..., Any]
    attributes: frozenset[str]
    required: frozenset[str]
    values: Mapping[str, Sequence[Any]]
    hosts: frozenset[int]
    state: frozenset[int]
    absent: Mapping[int, str]
    most: int | None
    results: int | None
    takes_place: bool


def operator(
    *names: str,
    since: int = OLDEST,
    hosts: Sequence[str] = (),
    state: Sequence[str] = (),
    absent: Sequence[str] = (),
    values: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    results: int | None = 1,
) -> Callable[[F], F]:
    """Decorates a function so that it is the form of operators from an opset on; inputs are named as its parameters."""

    def register(compute: F) -> F:
        parameters = inspect.signature(compute).parameters.values()
        inputs = [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
        options = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        position = {parameter.name: index for index, parameter in enumerate(inputs)}
        form = Operator(
            since,
            compute,
            frozenset(option.name for option in options) - {"place"},
            frozenset(option.name for option in options if option.default is option.empty) - {"place"},
            values,
            frozenset(position[name] for name in hosts),
            frozenset(position[name] for name in state),
            {position[name]: name for name in absent},
            None if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in inputs) else len(inputs),
            results,
            any(option.name == "place" for option in options),
        )
        for name in names:
            _TABLE.setdefault(name, []).append(form)
        return compute

    return register


def form_of(name: str, opset: int) -> Operator | None:
    """Returns the form of an operator in an opset; None: there is none."""
    forms = [form for form in _TABLE.get(name, ()) if form.since <= opset]
    return max(forms, key=lambda form: form.since, default=None)


def names() -> list[str]:
    """Returns the names of all operators in the table."""
    return sorted(_TABLE)
