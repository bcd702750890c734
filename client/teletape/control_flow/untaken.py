"""What a function that is not called would have used: noted for explanations, since no op tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from teletape.sessions.current import current
from teletape.tensors import nest
from teletape.tensors.tensor import EagerTensor, Tensor
from teletape.variables.variable import Variable
from teletape_engine.recording.provenance import Event

T = TypeVar("T")


def unused(event: Event, function: Callable[..., Any], made: T) -> T:
    """Notes that `made` (tensors, nested) was made without `function` being called, and gives it back."""
    held = tuple([one.recorded.uid for one in _held(function)])
    if held:
        recorder = current().recorder()
        for one in nest.flatten(made):
            if isinstance(one, EagerTensor):
                recorder.note(event, held, one.recorded.uid)
    return made


def _held(function: Any) -> Iterator[Tensor | Variable]:
    """The tensors and variables in a function's closure, globals, defaults and bound arguments, and in its object."""
    found: list[Any] = [*(getattr(function, "__defaults__", None) or ())]
    if isinstance(function, partial):
        found += [*function.args, *function.keywords.values()]
        yield from _held(function.func)
    found += getattr(getattr(function, "__self__", None), "__dict__", {}).values()
    code = getattr(function, "__code__", None)
    if code is not None:
        found += [function.__globals__.get(name) for name in code.co_names]
        for cell in function.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                continue
    for one in found:
        yield from _leaves(one)


def _leaves(one: Any) -> Iterator[Tensor | Variable]:
    if isinstance(one, EagerTensor | Variable):
        yield one
    elif isinstance(one, list | tuple | dict):
        for part in one.values() if isinstance(one, dict) else one:
            yield from _leaves(part)
