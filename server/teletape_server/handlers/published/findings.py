"""Facts about a function before it is published: the specs of its outputs, and whether its examples hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, CallFunction, CheckGradients, Command, Constant, Fetch, Id
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Facts, Fetched
from teletape_engine.errors import (
    InvalidArgumentError,
    NoGradientRegisteredError,
    TeletapeError,
    UnimplementedError,
    tree,
)
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec, dtype_of
from teletape_server.handlers.bodies import InvalidRequestError
from teletape_server.handlers.execution import executed
from teletape_server.handlers.methods import Request
from teletape_server.handlers.published.versions import FUNCTION, WEIGHT, Version, is_float
from teletape_server.models.published.contract import Axis, Declared, bind
from teletape_server.models.published.publications import PublishedExample

_ENTRIES: Final = 16  # elements of each input that the check of gradients compares
_MOST_ELEMENTS: Final = 10_000  # of an example with its outputs
_FIRST_LENGTH: Final = 2  # of a named axis where outputs' shapes are found out
_NO_DERIVATIVE: Final = (NoGradientRegisteredError, UnimplementedError)


def example_inputs(version: Version, example: PublishedExample, number: int) -> list[np.ndarray[Any, Any]]:
    """Returns the inputs of an example.

    Raises:
        InvalidRequestError: They are not those that are declared.
    """
    try:
        return version.call_inputs(example.inputs)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"examples[{number}]: {error.message}") from None


def outputs(version: Version, example: Sequence[np.ndarray[Any, Any]] | None) -> dict[str, Declared]:
    """Returns what the outputs are: from the specs of the inputs, with two lengths of each named axis.

    Raises:
        InvalidRequestError: The function does not take such inputs.
    """
    published = version.published
    names = list(
        dict.fromkeys(axis for item in published.inputs.values() for axis in item.shape if isinstance(axis, str))
    )
    lengths: list[dict[str, int]] = [
        {name: _FIRST_LENGTH + 2 * number + odd for number, name in enumerate(names)} for odd in (0, 1)
    ]
    if example is not None:
        first: dict[str, int] = {}
        for (name, item), array in zip(published.inputs.items(), example, strict=True):
            bind(first, name, item, array.shape)
        lengths = [first, {name: length + 1 for name, length in first.items()}]
    specs: list[Sequence[Spec]] = []
    for number, axes in enumerate(lengths):
        try:
            specs.append(_result_specs(version, axes))
        except InvalidArgumentError as error:
            if example is None or not number:
                sizes = ", ".join(f"{name} = {length}" for name, length in axes.items())
                raise InvalidRequestError(
                    f"function: it does not take the declared inputs{f' with {sizes}' if sizes else ''}: "
                    f"{error.message}"
                    + ("" if example is not None or not sizes else ". If it takes others, send an example of them")
                ) from None
            specs.append(specs[0])
    function = published.commands[-1]["outputs"]
    pairs = zip(function, *specs, strict=True)
    return {name: Declared(first.dtype.name, _axes(first, second, lengths)) for name, first, second in pairs}


def _result_specs(version: Version, axes: Mapping[str, int]) -> Sequence[Spec]:
    published = version.published
    of_inputs = [
        Spec.of(
            tuple([axes[axis] if isinstance(axis, str) else int(axis or 0) for axis in item.shape]),
            dtype_of(item.dtype),
        )
        for item in published.inputs.values()
    ]
    return version.session.result_specs(FUNCTION, [*of_inputs, *[WEIGHT + name for name in published.weights]])


def _axes(first: Spec, second: Spec, lengths: Sequence[Mapping[str, int]]) -> tuple[Axis, ...]:
    """Returns the axes of an output whose shape was found out for two sets of lengths."""
    if len(first.shape) != len(second.shape):
        return (None,) * len(first.shape)
    axes: list[Axis] = []
    for pair in zip(first.shape, second.shape, strict=True):
        fitting = [name for name in lengths[0] if (lengths[0][name], lengths[1][name]) == pair]
        if pair[0] == pair[1]:
            axes.append(pair[0])
        else:
            axes.append(fitting[0] if len(fitting) == 1 else None)
    return tuple(axes)


def checked_example(
    version: Version,
    request: Request,
    outputs: Mapping[str, Declared],
    example: PublishedExample,
    inputs: Sequence[np.ndarray[Any, Any]],
    number: int,
) -> Mapping[str, Any]:
    """Returns an example with its outputs.

    Raises:
        InvalidRequestError: They are not those that it has, or it is too large.
    """
    place = f"examples[{number}]"
    values = _called(version, request, inputs, list(outputs), place)
    if sum(array.size for array in (*inputs, *values)) > _MOST_ELEMENTS:
        raise InvalidRequestError(f"{place}: an example has at most {_MOST_ELEMENTS:,} elements with its outputs")
    by_name = dict(zip(outputs, values, strict=True))
    for name, expected in (example.outputs or {}).items():
        if name not in by_name:
            raise InvalidRequestError(f"{place}.outputs: the function has {', '.join(outputs)}; found {name!r}")
        computed = by_name[name]
        array = typed_array(expected, computed.dtype) if isinstance(expected, Literal) else expected
        if array.shape != computed.shape or not np.allclose(
            np.asarray(computed, np.complex128),
            np.asarray(array, np.complex128),
            example.rtol,
            example.rtol,
            equal_nan=True,
        ):
            raise InvalidRequestError(
                f"{place}.outputs.{name}: the function gives {_short(computed)}, and the example has {_short(array)}"
            )
    names = zip(version.published.inputs, inputs, strict=True)
    return {
        "inputs": {name: wire.tensor_to_json(array) for name, array in names},
        "outputs": {name: wire.tensor_to_json(array) for name, array in by_name.items()},
    }


def _short(array: np.ndarray[Any, Any]) -> str:
    return np.array2string(array, threshold=8, edgeitems=2, separator=", ").replace("\n", "")


def _called(
    version: Version, request: Request, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[str], place: str
) -> list[np.ndarray[Any, Any]]:
    ids: list[Id] = [f"output {number}" for number in range(len(outputs))]
    operands, commands = _bound(version, inputs)
    commands += [CallFunction(FUNCTION, tuple(operands), tuple(ids)), *[Fetch(id) for id in ids]]
    fetched = [
        result.array for result in results(version.session, request, commands, place) if isinstance(result, Fetched)
    ]
    return [array for array in fetched if isinstance(array, np.ndarray)]


def _bound(version: Version, inputs: Sequence[np.ndarray[Any, Any]]) -> tuple[list[Any], list[Command]]:
    """Returns the inputs of the whole function, and the commands that create them."""
    ids = [f"input {number}" for number in range(len(inputs))]
    commands: list[Command] = [Constant(id, array) for id, array in zip(ids, inputs, strict=True)]
    return [*ids, *[WEIGHT + name for name in version.published.weights]], commands


def check_of_gradients(
    version: Version, request: Request, inputs: Sequence[np.ndarray[Any, Any]]
) -> Mapping[str, Any] | None:
    """Returns the report of a check of the gradients; None: there is none by any input."""
    if not any(map(is_float, version.published.inputs.values())):
        return None
    operands, commands = _bound(version, inputs)
    commands.append(CheckGradients(FUNCTION, tuple(operands), {"entries": _ENTRIES}))
    try:
        report = results(version.session, request, commands, "check of gradients")[-1]
    except _NO_DERIVATIVE:
        return None
    assert isinstance(report, Facts)
    return report.facts


def results(session: Session, request: Request, commands: Sequence[Command], place: str) -> Sequence[Any]:
    """Runs commands of which nothing stays, and returns their results.

    Raises:
        TeletapeError: One of them fails.
    """
    created = tuple([id for item in commands for id in created_ids(item)])
    answer = executed(session, request, Batch(tuple(commands), temporaries=created))
    if answer.failure is not None:
        cls = tree().get(answer.failure.code, TeletapeError)
        raise cls(f"{place}: {answer.failure.message}", **answer.failure.details)
    return answer.results
