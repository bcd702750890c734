"""Forward mode through a custom_gradient: the program gives the way back, and its transpose is the way forward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from teletape.derivatives.tape import GradientTape
from teletape.ops import dispatch
from teletape.sessions import session
from teletape.tensors.indexed_slices import wrap
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import Watcher
from teletape_engine.recording.tape import Tape


def push(
    owner: session.Session,
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
            ones = [dispatch.call(CATALOGUE["ones_like"], (EagerTensor(one, owner),)) for one in outputs]
            with GradientTape() as tape:
                tape.watch([one for one in ones if one.recorded.spec.differentiable])
                grads = [wrap(one, owner) for one in function([one.operand() for one in ones])]
            given = [
                (dispatch.as_tensor(g), t, x) for g, t, x in zip(grads, tangents, inputs, strict=True) if g is not None
            ]
            seeds = [
                dispatch.call(CATALOGUE["zeros_like"], (EagerTensor(x, owner),)) if t is None else EagerTensor(t, owner)
                for _, t, x in given
            ]
            found = tape.gradient([g for g, _, _ in given], ones, output_gradients=seeds)
            for value, tangent in zip(outputs, found, strict=True):
                if tangent is not None and accumulator.tangent(value) is None:
                    pairs.append((value, dispatch.as_tensor(tangent).operand()))


@contextlib.contextmanager
def _beneath(owner: session.Session, accumulator: Accumulator) -> Iterator[list[tuple[Any, Any]]]:
    """A block that only those see that became active before an accumulator; behind it that follows what it is given."""
    recorder = owner.recorder()
    opened = recorder.opened()
    inner = opened[opened.index(accumulator) :]
    for one in inner:
        if isinstance(one, Watcher):  # the session's own, which a server knows nothing of
            recorder.pause(one)
        elif isinstance(one, Tape):
            owner.pause_tape(one)
        else:
            owner.close_accumulator(one)
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
                owner.resume_tape(one)
            else:
                owner.resume_accumulator(one, pairs if one is accumulator else ())
