"""Saved functions: a closed list of op calls with named inputs and outputs. Data, never code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.attrs import Attrs
from teletape_engine.commands import Call
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.graph import Literal
from teletape_engine.op import CATALOGUE, Op


class Step(NamedTuple):
    """One call of a program, its op and attributes looked up."""

    op: Op
    inputs: tuple[Any, ...]
    attrs: Attrs
    output: str


class Program:
    """A checked program.

    Attributes:
        inputs: Names of the arguments.
        steps: The calls, in order.
        outputs: Names of the results, each an input or a step's output.
    """

    def __init__(self, inputs: Sequence[str], calls: Sequence[Call], outputs: Sequence[str]) -> None:
        """Checks names, ops and attributes; shapes are known only when it is called.

        Raises:
            InvalidArgumentError: A name used before it is made, made twice, or never made; an op, its count of
                inputs or an attribute wrong.
        """
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        known = set(self.inputs)
        if len(known) != len(self.inputs):
            raise InvalidArgumentError(f"program inputs {list(self.inputs)} name one twice")
        steps = []
        for at, call in enumerate(calls):
            op = CATALOGUE.named(call.op)
            op.check_count(len(call.inputs))
            for one in call.inputs:
                if not isinstance(one, Literal | np.ndarray) and one not in known:
                    raise InvalidArgumentError(
                        f"program call {at} ({call.op}): input {one!r} is neither a program input nor made before"
                    )
            if len(call.outputs) != 1:
                raise InvalidArgumentError(f"program call {at} ({call.op}): one output, found {len(call.outputs)}")
            output = str(call.outputs[0])
            if output in known:
                raise InvalidArgumentError(f"program call {at} ({call.op}): the name {output!r} is taken")
            known.add(output)
            steps.append(Step(op, call.inputs, op.attrs(call.attrs), output))
        for name in self.outputs:
            if name not in known:
                raise InvalidArgumentError(f"program output {name!r} is never made")
        self.steps = tuple(steps)

    def run(self, recorder: Any, arguments: Sequence[Any]) -> list[Any]:
        """The results for these recorded arguments; each step is recorded as if it stood in the caller's place.

        Raises:
            InvalidArgumentError: A wrong count of arguments, or what a step's op does not take.
        """
        if len(arguments) != len(self.inputs):
            raise InvalidArgumentError(
                f"the program takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), found {len(arguments)}"
            )
        made: dict[str, Any] = dict(zip(self.inputs, arguments, strict=True))
        for step in self.steps:
            inputs = [self._input(recorder, one, made) for one in step.inputs]
            made[step.output] = recorder.apply(step.op, inputs, step.attrs)
        return [made[name] for name in self.outputs]

    @staticmethod
    def _input(recorder: Any, given: Any, made: Mapping[str, Any]) -> Any:
        if isinstance(given, Literal):
            return given
        return recorder.constant(given) if isinstance(given, np.ndarray) else made[given]
