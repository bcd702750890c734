"""Calls whose gradient is the caller's own function: how a tape notes them. The function itself never comes here.

A call of one output is one node. A call of several is a node under a uid of its own, and behind it one `Output` node
for each of them, so that every node of a tape makes one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from teletape_engine.catalogue.binding import Call, Plan
from teletape_engine.recording.tape import Node, Tape
from teletape_engine.recording.values import Literal, Uid, Variable, new_uid
from teletape_engine.spec import Spec


class Custom(Call):
    """A custom call on a tape.

    Attributes:
        outputs: Specs of the results.
        tag: What both sides of a wire know the call by.
        label: The function's name, for people.
    """

    __slots__ = ("label", "outputs", "tag")

    def __init__(self, specs: Sequence[Spec], outputs: Sequence[Spec], tag: Any, label: str) -> None:
        super().__init__("custom_gradient", "IdentityN", tuple(specs), outputs[0])
        self.outputs, self.tag, self.label = tuple(outputs), tag, label


class Function(Literal):
    """The caller's own function as what a node keeps: freed with it, and no more an array than a number is."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.array = function  # type: ignore[assignment]  # no number either


class ProgramGradient(Literal):
    """A program that makes the cotangents, as what a node keeps; behind it what else the program takes.

    Attributes:
        program: From a cotangent of each result, and what else it takes, to those that it gives.
        has_gradient: For which of the call's inputs.
    """

    __slots__ = ("has_gradient", "program")

    def __init__(self, program: Any, has_gradient: Sequence[bool]) -> None:
        self.array = program
        self.program, self.has_gradient = program, tuple(has_gradient)

    def run(self, recorder: Any, cts: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """A cotangent, or None, for each input of the call: recorded values."""
        found = iter(self.program.run(recorder, [*cts, *others], tie=False))
        given = [next(found) if has_gradient else None for has_gradient in self.has_gradient]
        return [recorder.as_value(one) for one in given]


class Output(Call):
    """One result of a custom call of several.

    Attributes:
        index: Which one.
        count: Of how many.
    """

    __slots__ = ("count", "index")

    def __init__(self, spec: Spec, index: int, count: int) -> None:
        super().__init__("custom_output", "Identity", (spec,), spec)
        self.index, self.count = index, count


def record_custom(
    tapes: Sequence[Tape],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    tag: Any,
    label: str,
    function: Callable[..., Any] | None = None,
    program: tuple[ProgramGradient, Sequence[Any]] | None = None,
    where: Any = None,
) -> bool:
    """Notes on each tape that follows one of `inputs` that `outputs` come from a custom call.

    What the tapes know of the outputs from before is overruled: whoever asks goes through the call.

    Args:
        tapes: The active ones.
        inputs: Recorded values of differentiable dtypes: arguments, then readings of variables.
        outputs: Recorded values of their own (each just made by an identity).
        tag: What both sides of a wire know the call by.
        label: The function's name, for people.
        function: The caller's own function where it lives in this process.
        program: Instead of a function, a program, and the recorded values that it takes behind the cotangents.
        where: The caller's line.

    Returns:
        Whether a tape noted it.
    """
    uids = tuple([one.uid for one in inputs])
    following = [one for one in tapes if not one.tracked.keys().isdisjoint(uids)]
    if not following or not outputs:
        return False
    plan = Plan.without_rules(Custom([one.spec for one in inputs], [one.spec for one in outputs], tag, label))
    kept: tuple[Any, ...] = () if function is None else (Function(function),)
    if program is not None:
        kept = (program[0], *program[1])
    if len(outputs) == 1:
        nodes: list[Node] = [(plan, uids, outputs[0].uid, kept, where)]
    else:
        group: Uid = new_uid()
        nodes = [(plan, uids, group, kept, where)]
        for i, one in enumerate(outputs):
            nodes.append((Plan.without_rules(Output(one.spec, i, len(outputs))), (group,), one.uid, (), where))
    for tape in following:
        for node in nodes:
            tape.nodes.append(node)
            tape.tracked[node[2]] = None
    return True


class Watcher(Tape):
    """Among a context's tapes, one that follows nothing, and notes in `variables` which trainable ones are read."""

    __slots__ = ()

    def watches(self, variable: Variable) -> bool:
        """False, whatever is read."""
        if variable.trainable:
            self.variables.setdefault(variable.uid, variable)
        return False
