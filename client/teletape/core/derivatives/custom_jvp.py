"""Forward mode through a custom gradient: the tangents of its results, whose ops only outer tapes record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from teletape.core.sessions.session import Session
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.transpose import transposed_tangents
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import VariableReadLog
from teletape_engine.recording.tape import Tape


def set_tangents(
    owner: Session,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    function: Callable[[Sequence[Any]], Sequence[Any]],
) -> None:
    """Gives each accumulator the tangents of the results of a custom gradient.

    A result whose ops have computed a tangent already keeps that tangent, as in TensorFlow.

    Args:
        owner: The session.
        inputs: Recorded values: the call's arguments and variables.
        outputs: Recorded values: the call's results.
        function: From a cotangent of each result to one, or None, for each input.
    """
    recorder = owner.recorder()

    def full(value: Any, number: int) -> Any:
        return recorder.op(ops.ones_like if number else ops.zeros_like, value)

    def record(cts: Sequence[Any]) -> tuple[Tape, Sequence[Any]]:
        tape = Tape(persistent=False, watch_accessed=False)
        owner.open_tape(tape)
        try:
            owner.watch(tape, [ct for ct in cts if ct.spec.differentiable])
            return tape, function(cts)
        finally:
            owner.pause_tape(tape)

    for accumulator in tuple(recorder.context.accumulators):
        if not accumulator.mask(inputs):
            continue
        tangents = owner.jvp(accumulator, inputs)
        opened = recorder.context.opened()
        pairs: list[tuple[Any, Any]] = []
        with paused(owner, opened[opened.index(accumulator) :], {accumulator: pairs}):
            transposed = transposed_tangents(
                recorder, inputs, tangents, outputs, full=full, record=record, gradient=owner.gradient
            )
            pairs += [
                (value, tangent)
                for value, tangent in zip(outputs, transposed, strict=True)
                if tangent is not None and accumulator.tangent(value) is None
            ]


@contextlib.contextmanager
def paused(
    owner: Session,
    contexts: Sequence[Any],
    pairs: Mapping[Accumulator, Sequence[tuple[Any, Any]]] = MappingProxyType({}),
) -> Iterator[None]:
    """A block in which some active tapes and accumulators of this thread record nothing.

    After it all are active again, in the order in which they were opened.

    Args:
        owner: The session.
        contexts: Tapes and accumulators.
        pairs: (value, tangent) pairs that an accumulator of them gets after the block.
    """
    recorder = owner.recorder()
    opened = recorder.context.opened()
    rest = opened[min((opened.index(context) for context in contexts), default=len(opened)) :]
    for context in contexts:
        _pause(owner, context)
    try:
        yield
    finally:
        for context in rest:
            if context not in contexts:
                _pause(owner, context)
            if isinstance(context, VariableReadLog):
                recorder.context.open(context)
            elif isinstance(context, Tape):
                owner.open_tape(context)
            else:
                for value, tangent in pairs.get(context, ()):
                    context.watch(value, tangent)
                owner.open_accumulator(context, pairs.get(context, ()))


def _pause(owner: Session, context: Any) -> None:
    if isinstance(context, VariableReadLog):  # the session's own: no command pauses it on a server
        owner.recorder().context.pause(context)
    elif isinstance(context, Tape):
        owner.pause_tape(context)
    else:
        owner.close_accumulator(context)
