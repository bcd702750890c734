"""Reads values together: if Keras reads several tensors one after another, one round trip brings all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from teletape.core.program.tracebacks import reports
from teletape.core.sessions.current import current
from teletape.core.tensors.tensor import EagerTensor
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable


@reports
def read_together(tensors: Iterable[Any]) -> None:
    """Fetches the tensors and variables among `tensors`: reading one of them needs no further request."""
    owner = current()
    if owner.tracing:
        return
    values = []
    for tensor in map(unwrapped, tensors):
        if isinstance(tensor, Variable) and tensor.session is owner:
            values.append(tensor.recorded.value)
        elif isinstance(tensor, EagerTensor) and tensor.session is owner:
            values.append(tensor.recorded)
    if values:
        owner.fetch_all(values)


def get_weights(self: Any) -> list[Any]:
    """`Layer.get_weights`: the values of all weights."""
    weights = self.weights
    read_together(weights)
    return [weight.numpy() for weight in weights]


def pythonify_logs(module: ModuleType) -> Callable[[Any], Any]:
    """Returns `pythonify_logs` of Keras's module python_utils, which raises the error of a failed step.

    Keras's own function reads each metric and ignores every exception.
    """
    original = module.__dict__["pythonify_logs"]

    @functools.wraps(original)
    def pythonify(logs: Any) -> Any:
        read_together(_leaves(logs or {}))
        return original(logs)

    return pythonify


def _leaves(logs: Any) -> Iterable[Any]:
    for value in logs.values():
        yield from _leaves(value) if isinstance(value, dict) else (value,)


def batch_end(module: ModuleType, name: str) -> Callable[..., None]:
    """Returns a method of Keras's CallbackList, which reads a batch's logs if a callback has a method that uses them.

    Args:
        module: Keras's module callback_list.
        name: The name of a method of callbacks, such as "on_train_batch_end".
    """
    original = getattr(module.__dict__["CallbackList"], f"_{name}")
    is_default = module.__dict__["utils"].is_default

    @functools.wraps(original)
    def end(self: Any, batch: Any, logs: Any = None) -> None:
        if not all(
            is_default(getattr(callback, name)) and is_default(callback.on_batch_end) for callback in self.callbacks
        ):
            original(self, batch, logs)

    return end


def save_state(module: ModuleType) -> Callable[..., None]:
    """Returns `_save_state` of Keras's module saving_lib: all values of a model are read in one round trip."""
    original = module.__dict__["_save_state"]

    @functools.wraps(original)
    def save(saveable: Any, weights_store: Any, assets_store: Any, inner_path: Any, visited_saveables: Any) -> None:
        if not visited_saveables:
            parts = (saveable, getattr(saveable, "optimizer", None))
            read_together([variable for part in parts for variable in getattr(part, "variables", ())])
        original(saveable, weights_store, assets_store, inner_path, visited_saveables)

    return save
