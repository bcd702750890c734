"""From a function as a program has it to what an adapter asks, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from teletape.adapters.programs import Program
from teletape.adapters.questions import Array, Differentiable, Question
from teletape.adapters.services import ServiceFunction, is_service_function

#: What an adapter takes: a function of a service or of tensors, or what has the method `ask`.
Function: TypeAlias = Differentiable | Callable[..., Any]
#: Rows that one request has at most, unless the program says otherwise.
N_MAX: Final = 256


class Bounded:
    """A function that answers at most `n_max` rows in one request.

    Args:
        function: The function.
        n_max: Rows in one request; further rows are further requests.
    """

    def __init__(self, function: Differentiable, n_max: int = N_MAX) -> None:
        if n_max < 1:
            raise ValueError(f"n_max is the number of rows in one request, at least 1; found {n_max}")
        self.function, self.n_max, self.inputs = function, n_max, function.inputs

    def in_order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Returns the inputs of a call in the function's order.

        Raises:
            TypeError: Some are missing, or are none of the function's.
        """
        values = [*inputs]
        if self.inputs:
            values += [named[name] for name in self.inputs[len(values) :] if name in named]
        if len(values) != len(inputs) + len(named) or (self.inputs and len(values) != len(self.inputs)):
            names = ", ".join(self.inputs) or "inputs in order, without names"
            raise TypeError(
                f"the function takes {names}; found {len(inputs)} in order and {', '.join(named) or 'none'} by name"
            )
        return values

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
        if not rows:
            return self.function.ask(question, inputs, first, second)
        blocks = []
        for start in range(0, len(inputs[0]), self.n_max):
            part = slice(start, start + self.n_max)
            arrays = [[array[part] for array in stacks] for stacks in (inputs, first, second)]
            blocks.append(self.function.ask(question, *arrays, rows=True))
        return blocks[0] if len(blocks) == 1 else [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def wrapped(function: Function, fixed: dict[str, Any], n_max: int, targets: Sequence[str] | None) -> Bounded:
    """Returns what an adapter asks.

    Args:
        function: A published function or a session's function of `teletape.service`, a `tf.function`, a Python
            function of tensors, or anything that has the method `ask`.
        fixed: Inputs that the adapter does not give, by name.
        n_max: Rows in one request.
        targets: Names of outputs of a service's function; None: all.

    Raises:
        TypeError: It is none of them.
    """
    if isinstance(function, Bounded):
        return function
    if isinstance(function, Differentiable):
        return Bounded(function, n_max)
    if is_service_function(function):
        return Bounded(ServiceFunction(function, fixed, targets), n_max)
    if callable(function):
        if targets is not None:
            raise TypeError("targets are names of a service's outputs: a Python function returns what is asked for")
        return Bounded(Program(function, fixed), n_max)
    raise TypeError(
        f"an adapter takes a published function or a session's function of teletape.service, a tf.function or a Python "
        f"function of tensors; found {function!r}"
    )
