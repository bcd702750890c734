"""Forward mode through a custom_gradient: the program gives the way back, and its transpose is the way forward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from teletape import calling, sessions
from teletape.slices import wrap
from teletape.tape import GradientTape
from teletape.tensor import EagerTensor
from teletape_engine.custom import Watcher
from teletape_engine.forward import Accumulator
from teletape_engine.graph import Tape
from teletape_engine.op import CATALOGUE


def push(
    owner: sessions.Session,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    function: Callable[[Sequence[Any]], Sequence[Any]],
) -> None:
    """Has each accumulator follow a call by its gradient function, linear in the cotangents: its transpose is the jvp.

    As in TensorFlow, a result that has a tangent by the ops that made it keeps that one.

    Args:
        owner: The session.
        inputs: Recorded values: the call's arguments and variables.
        outputs: What it gave.
        function: From a cotangent of each output to one, or None, for each input.
    """
    for accumulator in tuple(owner.recorder().accumulators):
        if not accumulator.mask(inputs):
            continue
        tangents = owner.jvp(accumulator, inputs)
        with _beneath(owner, accumulator) as pairs:
            ones = [calling.call(CATALOGUE["ones_like"], (EagerTensor(one, owner),)) for one in outputs]
            with GradientTape() as tape:
                tape.watch([one for one in ones if one._v.spec.differentiable])
                grads = [wrap(one, owner) for one in function([one._operand() for one in ones])]
            given = [
                (calling.as_tensor(g), t, x) for g, t, x in zip(grads, tangents, inputs, strict=True) if g is not None
            ]
            seeds = [
                calling.call(CATALOGUE["zeros_like"], (EagerTensor(x, owner),)) if t is None else EagerTensor(t, owner)
                for _, t, x in given
            ]
            found = tape.gradient([g for g, _, _ in given], ones, output_gradients=seeds)
            for value, tangent in zip(outputs, found, strict=True):
                if tangent is not None and accumulator.tangent(value) is None:
                    pairs.append((value, calling.as_tensor(tangent)._operand()))


@contextlib.contextmanager
def _beneath(owner: sessions.Session, accumulator: Accumulator) -> Iterator[list[tuple[Any, Any]]]:
    """A block that only those see that became active before an accumulator; behind it that follows what it is given."""
    recorder = owner.recorder()
    opened = recorder.opened()
    inner = opened[opened.index(accumulator) :]
    for one in inner:
        if isinstance(one, Watcher):  # the session's own, which a server knows nothing of
            recorder.pause(one)
        elif isinstance(one, Tape):
            owner.tape_event("pause", one)
        else:
            owner.accumulator_event("close", one)
    pairs: list[tuple[Any, Any]] = []
    try:
        yield pairs
    finally:
        for value, tangent in pairs:
            accumulator.watch(value, tangent)
        for one in inner:
            if isinstance(one, Watcher):
                recorder.open(one)
            elif isinstance(one, Tape):
                owner.tape_event("resume", one)
            else:
                owner.accumulator_event("resume", one, pairs if one is accumulator else ())
