"""Functions of `teletape.service`: published ones, and those of a session.

Rows are a map over the inputs, one request.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape.adapters.questions import Array, Question, sources_of
from teletape.core.errors import UnimplementedError

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
                return self._hvp(named, common, first, second, rows=rows)
            case "second_jvp":
                return self._second_jvp(named, common, first, second, rows=rows)
            case "hessian":
                [name] = wrt
                return [function.hessian(named, **common)[name, name]]

    def _declared(self, names: Sequence[str], arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays for inputs or outputs in the dtypes that these declare; there may be no arrays."""
        named = zip(names, arrays, strict=True) if arrays else ()
        return [array.astype(self._dtypes.get(name, array.dtype), copy=False) for name, array in named]

    def _hvp(
        self,
        named: Mapping[str, Any],
        common: dict[str, Any],
        cotangents: Sequence[Array],
        vectors: Sequence[Array],
        *,
        rows: bool,
    ) -> list[Array]:
        self._refuse_arrays([cotangent.shape[rows:] for cotangent in cotangents])
        answer = self._function.hvp(named, vectors=vectors, **common)
        [weight] = cotangents
        products = [answer[name] for name in common["wrt"]]
        return [product * weight.reshape(*weight.shape, *[1] * (product.ndim - rows)) for product in products]

    def _second_jvp(
        self,
        named: Mapping[str, Any],
        common: dict[str, Any],
        tangents: Sequence[Array],
        vectors: Sequence[Array],
        *,
        rows: bool,
    ) -> list[Array]:
        self._refuse_arrays([shape[rows:] for shape in self._shapes(named, common.get("map"))])
        answer = self._function.hvp(named, vectors=vectors, **common)
        products = [answer[name] * tangent for name, tangent in zip(common["wrt"], tangents, strict=True)]
        inner = [product.sum(axis=tuple(range(rows, product.ndim))) for product in products]
        return [np.sum(inner, axis=0)]

    def _shapes(self, named: Mapping[str, Any], axes: Mapping[str, int] | None) -> Sequence[tuple[int, ...]]:
        """Returns the shapes of the outputs, which follow from those of the inputs."""
        key = (axes is None, *[np.shape(value) for value in named.values()])
        if key not in self._known:
            values = self._function.call(named, fetch=self._targets, map=axes, **self._call_fields).values
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
