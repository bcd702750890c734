"""Functions of `teletape.service`: published ones, and those of a session.

A published function gets rows as calls at the same time, which the server computes together. A session's function gets
them as a map.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final

import numpy as np

from teletape.adapters.questions import Array, Question, sources_of, split
from teletape.core.errors import UnimplementedError

#: Rows of a published function that travel at the same time.
_AT_A_TIME: Final = 32
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
        self._known: dict[Any, Sequence[tuple[int, ...]]] = {}
        facts = function.get().version if is_published else function.facts or function.get()
        declared = [*facts.inputs]
        if is_published:
            self.inputs: Sequence[str] = [str(item.name) for item in declared if item.name not in fixed]
            self.dtypes: Sequence[np.dtype[Any]] = [np.dtype(item.dtype) for item in declared if item.name not in fixed]
            outputs = [str(item.name) for item in facts.outputs]
        else:
            if facts.assigns:
                raise ValueError(
                    f"function {function.id!r} assigns to {', '.join(facts.assigns)}: an adapter calls a function as "
                    "often as it needs, so it must change nothing"
                )
            self.inputs, self.dtypes = [name for name in declared if name not in fixed], ()
            outputs = list(facts.outputs)
        unknown = [name for name in targets or () if name not in outputs]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the function's outputs are {', '.join(outputs)}")
        self._targets = outputs if targets is None else list(targets)

    def ask(self, question: Question, inputs: Sequence[Array], others: Sequence[Array], *, rows: bool) -> list[Array]:
        """Returns the answer to a question; see `Differentiable.ask`."""
        if not rows:
            return self._ask(question, inputs, others)
        count = len(inputs)

        def ask(row: Sequence[Any]) -> list[Array]:
            arrays = [np.asarray(item) for item in row]
            return self._ask(question, arrays[:count], arrays[count:])

        answers = list(self._pool.map(ask, zip(*inputs, *others, strict=True)))
        return [np.stack(column) for column in zip(*answers, strict=True)]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="teletape adapter")

    def _ask(self, question: Question, inputs: Sequence[Array], others: Sequence[Array]) -> list[Array]:
        wrt = [self.inputs[position] for position in sources_of(inputs)]
        weights, vectors = split(question, others, len(wrt))
        named = self._fixed | dict(zip(self.inputs, inputs, strict=True))
        targets = self._targets
        common: dict[str, Any] = {"wrt": wrt, "targets": targets, "unconnected": "zero"}
        function = self._function
        match question:
            case "call":
                values = function.call(named, fetch=targets, **self._call_fields).values
                return [values[name] for name in targets]
            case "value_and_gradient":
                answer = function.value_and_gradient(named, fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in wrt]]
            case "value_and_jacobian":
                answer = function.jacobian(named, fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in wrt]]
            case "vjp":
                answer = function.vjp(named, output_gradients=list(weights), **common)
                return [answer[name] for name in wrt]
            case "jvp":
                answer = function.jvp(named, tangents=list(vectors), **common)
                return [answer[name] for name in targets]
            case "value_and_jvp":
                answer = function.jvp(named, tangents=list(vectors), fetch=targets, **common)
                return [*[answer.values[name] for name in targets], *[answer[name] for name in targets]]
            case "hvp":
                return self._hvp(named, common, weights, vectors)
            case "second_jvp":
                return self._second_jvp(named, common, weights, vectors)
            case "hessian":
                [name] = wrt
                return [function.hessian(named, **common)[name, name]]

    def _hvp(
        self, named: Mapping[str, Any], common: dict[str, Any], weights: Sequence[Array], vectors: Sequence[Array]
    ) -> list[Array]:
        self._refuse_arrays([weight.shape for weight in weights])
        answer = self._function.hvp(named, vectors=list(vectors), **common)
        return [answer[name] * weights[0] for name in common["wrt"]]

    def _second_jvp(
        self, named: Mapping[str, Any], common: dict[str, Any], tangents: Sequence[Array], vectors: Sequence[Array]
    ) -> list[Array]:
        self._refuse_arrays(self._shapes(named))
        answer = self._function.hvp(named, vectors=list(vectors), **common)
        products = [np.vdot(answer[name], tangent) for name, tangent in zip(common["wrt"], tangents, strict=True)]
        return [np.sum(products, axis=0)]

    def _shapes(self, named: Mapping[str, Any]) -> Sequence[tuple[int, ...]]:
        """Returns the shapes of the outputs, which follow from those of the inputs."""
        key = tuple([np.shape(value) for value in named.values()])
        if key not in self._known:
            values = self._function.call(named, fetch=self._targets, **self._call_fields).values
            self._known[key] = [values[name].shape for name in self._targets]
        return self._known[key]

    def _refuse_arrays(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Checks that there is one output, a number.

        Raises:
            UnimplementedError: There are others.
        """
        if list(shapes) != [()]:
            raise UnimplementedError(
                f"a service has second derivatives of one number, and the outputs have the shapes "
                f"{', '.join(map(str, shapes))}: name one with targets, or write the function with teletape"
            )
