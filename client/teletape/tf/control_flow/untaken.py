"""Notes the tensors of a branch that was not called, so that explanations can name them: no op records their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import EagerTensor
from teletape.core.variables.variable import Variable
from teletape_engine.recording.provenance import Event

T = TypeVar("T")


def unused(event: Event, function: Callable[..., Any], result: T) -> T:
    """Notes that `result` (tensors, nested) was computed without a call of `function`, and returns it."""
    uids = tuple([value.recorded.uid for value in _references(function)])
    if uids:
        recorder = current().recorder()
        for leaf in nest.flatten(result):
            if isinstance(leaf, EagerTensor):
                recorder.provenance.note(event, uids, leaf.recorded.uid)
    return result


def _references(function: Any) -> Iterator[EagerTensor | Variable]:
    """Yields the tensors and variables in a function's closure, globals, defaults, bound arguments and object."""
    values: list[Any] = [*(getattr(function, "__defaults__", None) or ())]
    if isinstance(function, partial):
        values += [*function.args, *function.keywords.values()]
        yield from _references(function.func)
    values += getattr(getattr(function, "__self__", None), "__dict__", {}).values()
    code = getattr(function, "__code__", None)
    if code is not None:
        values += [function.__globals__.get(name) for name in code.co_names]
        for cell in function.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                continue
    for value in values:
        yield from _leaves(value)


def _leaves(value: Any) -> Iterator[EagerTensor | Variable]:
    if isinstance(value, EagerTensor | Variable):
        yield value
    elif isinstance(value, list | tuple | dict):
        for element in value.values() if isinstance(value, dict) else value:
            yield from _leaves(element)
