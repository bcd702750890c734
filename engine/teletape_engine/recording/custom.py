"""Calls whose gradient is not made of rules: how a tape notes them, and what computes their gradient.

A call of one output is one node; one of several is noted as an op's of several results is, see `tape.record`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from teletape_engine.catalogue.binding import CallPlan, Select, TapeCall
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Recorded, Uid, Unrecorded, Variable, new_uid
from teletape_engine.spec import Spec

if TYPE_CHECKING:
    from teletape_engine.recording.recorder import Recorder


class CustomTapeCall(TapeCall):
    """A custom call on a tape. Its node's first residual computes the gradient, if that is in this process.

    Attributes:
        tag: The id of the call on both sides of a wire.
        label: The function's name, for messages.
    """

    __slots__ = ("label", "tag")

    def __init__(self, specs: Sequence[Spec], outputs: Sequence[Spec], tag: Any, label: str) -> None:
        super().__init__("custom_gradient", "IdentityN", tuple(specs), tuple(outputs))
        self.tag, self.label = tag, label


class CallerGradient(Unrecorded):
    """The caller's own gradient function as a residual: freed with its node.

    Attributes:
        function: From the cotangent of each output to one, or None, for each input.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


class FunctionGradient(Unrecorded):
    """A saved function that computes the cotangents, as a residual. The residuals after it are its further inputs.

    Attributes:
        function: From a cotangent of each output, and its further inputs, to the cotangents.
        has_gradient: For each input of the call whether there is one.
    """

    __slots__ = ("function", "has_gradient")

    def __init__(self, function: Any, has_gradient: Sequence[bool]) -> None:
        self.function, self.has_gradient = function, tuple(has_gradient)

    def run(self, recorder: Recorder, cts: Sequence[Recorded], others: Sequence[Any]) -> list[Recorded | None]:
        """A cotangent, or None, for each input of the call."""
        shares = iter(self.function.run(recorder, [*cts, *others], tie=False))
        return [recorder.as_value(next(shares)) if present else None for present in self.has_gradient]


def record_custom(
    tapes: Sequence[Tape],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    tag: Any,
    label: str,
    gradient: Sequence[Any] = (),
    where: Any = None,
) -> bool:
    """Notes on each tape that follows one of `inputs` that `outputs` come from a custom call.

    It replaces what the tapes noted of the outputs before.

    Args:
        tapes: The active ones.
        inputs: Recorded values of differentiable dtypes: arguments, then readings of variables.
        outputs: Recorded values of their own (each just made by an identity).
        tag: The id of the call on both sides of a wire.
        label: The function's name, for messages.
        gradient: A `CallerGradient`, or a `FunctionGradient` and the recorded values that are its further inputs; empty
            if the gradient function is in another process.
        where: The call site.

    Returns:
        Whether a tape noted it.
    """
    uids = tuple([value.uid for value in inputs])
    following = [tape for tape in tapes if not tape.tracked.keys().isdisjoint(uids)]
    if not following or not outputs:
        return False
    call = CustomTapeCall([value.spec for value in inputs], [value.spec for value in outputs], tag, label)
    plan, residuals = CallPlan.without_rules(call), tuple(gradient)
    if len(outputs) == 1:
        nodes: list[NodeTuple] = [(plan, uids, outputs[0].uid, residuals, where)]
    else:
        group: Uid = new_uid()
        nodes = [(plan, uids, group, residuals, where)]
        for i, value in enumerate(outputs):
            nodes.append((CallPlan.without_rules(Select(call, i)), (group,), value.uid, (), where))
    for tape in following:
        for node in nodes:
            tape.note(*node)
    return True


class VariableReadLog(Tape):
    """A tape that follows nothing, and notes in `variables` which trainable variables are read in its context."""

    __slots__ = ()

    def watches(self, variable: Variable) -> bool:
        """False, whatever is read."""
        if variable.trainable:
            self.variables.setdefault(variable.uid, variable)
        return False
