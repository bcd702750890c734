"""Functions of `teletape.service`: published ones, and those of a session.

Rows are a map over the inputs, one request.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape.adapters.questions import Array, Question, sources_of

_ASKED: Final = ("call", "value_and_gradient", "vjp", "jvp", "hvp")


def is_service_function(function: Any) -> bool:
    """Whether it is a published function, or a session's function, of the client for threads.

    Raises:
        TypeError: It is one of the client for event loops.
    """
    if not all(callable(getattr(function, name, None)) for name in _ASKED):
        return False
    if inspect.iscoroutinefunction(function.call):
        raise TypeError("an adapter waits for answers: take the function from Client, not from AsyncClient")
    return True


class ServiceFunction:
    """A published function, or a function of a session.

    Args:
        function: The function.
        fixed: Inputs by name, for each call the same: arrays, numbers, or in a session ids.
        targets: Names of outputs; None: all.
    """

    def __init__(self, function: Any, fixed: Mapping[str, Any], targets: Sequence[str] | None) -> None:
        self._function, self._fixed = function, dict(fixed)
        is_published = hasattr(function, "publish")
        #: A session keeps results unless they are scratch.
        self._call_fields: dict[str, Any] = {} if is_published else {"scratch": True}
        facts = function.get().version if is_published else function.facts or function.get()
        names, outputs = list(facts.inputs), list(facts.outputs)
        #: The dtypes that a published function declares, by name; others take what they get.
        self._dtypes: dict[str, np.dtype[Any]] = {}
        if is_published:
            self._dtypes = {item.name: np.dtype(item.dtype) for item in (*names, *outputs)}
            names, outputs = [item.name for item in names], [item.name for item in outputs]
        elif facts.assigns:
            raise ValueError(
                f"function {function.id!r} assigns to {', '.join(facts.assigns)}: an adapter calls a function as often "
                "as it needs, so it must change nothing"
            )
        self.inputs: Sequence[str] = [name for name in names if name not in fixed]
        unknown = [name for name in targets or () if name not in outputs]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the function's outputs are {', '.join(outputs)}")
        self._targets = outputs if targets is None else list(targets)

    def ask(
        self,
        question: Question,
        inputs: Sequence[Array],
        first: Sequence[Array] = (),
        second: Sequence[Array] = (),
        *,
        rows: bool = False,
    ) -> list[Array]:
        """Returns the answer to a question; see `Differentiable.ask`."""
        wrt = [self.inputs[position] for position in sources_of(inputs)]
        targets = self._targets
        first = self._declared(targets if question in ("vjp", "hvp") else wrt, first)
        second = self._declared(wrt, second)
        named = self._fixed | dict(zip(self.inputs, self._declared(self.inputs, inputs), strict=True))
        axes = {"map": dict.fromkeys(self.inputs, 0)} if rows else {}
        common: dict[str, Any] = {"wrt": wrt, "targets": targets, "unconnected": "zero", **axes}
        function = self._function
        match question:
            case "call":
                values = function.call(named, fetch=targets, **axes, **self._call_fields).values
                return [values[name] for name in targets]
            case "value_and_gradient":
                answer = function.value_and_gradient(named, fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in wrt]]
            case "value_and_jacobian":
                answer = function.jacobian(named, fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in wrt]]
            case "vjp":
                answer = function.vjp(named, output_gradients=first, **common)
                return [answer[name] for name in wrt]
            case "jvp":
                answer = function.jvp(named, tangents=first, **common)
                return [answer[name] for name in targets]
            case "value_and_jvp":
                answer = function.jvp(named, tangents=first, fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in targets]]
            case "hvp":
                answer = function.hvp(named, vectors=second, output_gradients=first, **common)
                return [answer[name] for name in wrt]
            case "second_jvp":
                answer = function.jvp(named, tangents=first, vectors=second, **common)
                return [answer[name] for name in targets]
            case "hessian":
                [name] = wrt
                return [function.hessian(named, **common)[name, name]]

    def _declared(self, names: Sequence[str], arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays for inputs or outputs in the dtypes that these declare; there may be no arrays."""
        named = zip(names, arrays, strict=True) if arrays else ()
        return [array.astype(self._dtypes.get(name, array.dtype), copy=False) for name, array in named]
