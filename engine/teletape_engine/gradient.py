"""Asking a tape for gradients: from targets, sources and seeds to answers, whatever the recorder computes with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from teletape_engine.backward import Operands, backward
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError
from teletape_engine.graph import Tape, Variable
from teletape_engine.op import CATALOGUE, Operand, Slices
from teletape_engine.spec import Spec, broadcast, shape_text
from teletape_engine.tape import Recorded, Recorder, SlicesValue


def gradient(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    *,
    seeds: Sequence[Recorded | None] | None = None,
    zeros: bool = False,
    no_gradient: Collection[str] = (),
) -> list[Recorded | None]:
    """The cotangent of each source (a recorded value or a Variable), summed over the targets.

    Args:
        recorder: The context where it is asked; outer tapes active there record how the answers came about.
        tape: Asked; a non-persistent one stops recording and answers once.
        targets: Recorded values or variables; those of a dtype without gradients count for nothing.
        sources: Recorded values or variables.
        seeds: A cotangent for each target, None for ones; default ones.
        zeros: Whether an unconnected source gets zeros instead of None.
        no_gradient: Op types declared to have no gradient.

    Raises:
        TapeConsumedError: A non-persistent tape asked again.
        InvalidArgumentError: A seed of another shape or dtype than its target; another count than the targets.
        NoGradientRegisteredError: See `backward`.
    """
    if tape.consumed:
        raise TapeConsumedError
    given = _seeds(recorder, targets, seeds)
    if not tape.persistent:
        if tape in recorder.tapes:
            recorder.pause(tape)
        tape.consumed = True
    recorded = bool(recorder.tapes)
    algebra = Operands(recorder) if recorded else recorder.bare
    started = []
    for target, seed in zip(targets, given, strict=True):
        if not target.spec.differentiable or (isinstance(target, Variable) and not tape.watches(target)):
            continue
        start = recorder.full(target.spec, 1) if seed is None else seed
        started.append((target.uid, Operand(recorder, start) if recorded else recorder.ct(start)))
    try:
        cts = backward(
            tape,
            started,
            {source.uid for source in sources},
            algebra,
            no_gradient=no_gradient,
            release=not tape.persistent,
        )
    finally:
        if not tape.persistent:
            watched = tape.variables
            tape.clear()
            tape.variables = watched
    finish = partial(_recorded_answer, recorder) if recorded else recorder.answer
    found: list[Recorded | None] = []
    for source in sources:
        ct = cts.get(source.uid)
        if ct is not None:
            found.append(finish(ct, source.spec))
        else:
            found.append(recorder.full(source.spec, 0) if zeros else None)
    return found


def _seeds(recorder: Recorder, targets: Sequence[Any], seeds: Sequence[Any | None] | None) -> Sequence[Any | None]:
    if seeds is None:
        return [None] * len(targets)
    if len(seeds) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets, but {len(seeds)} output gradients: give one for each target, None for ones"
        )
    return [seed if seed is None else _seed(recorder, seed, one.spec) for one, seed in zip(targets, seeds, strict=True)]


def _seed(recorder: Recorder, seed: Recorded, spec: Spec) -> Recorded:
    if seed.spec is spec:
        return seed
    if seed.spec.dtype is not spec.dtype:
        raise InvalidArgumentError(
            f"an output gradient of dtype {seed.spec.dtype.name} for a target of {spec.dtype.name}: cast it"
        )
    if broadcast(seed.spec.shape, spec.shape) != spec.shape:
        raise InvalidArgumentError(f"Incompatible shapes: {shape_text(seed.spec.shape)} vs. {shape_text(spec.shape)}")
    op = CATALOGUE["broadcast_to"]
    return recorder.apply(op, (seed,), op.attrs({"shape": spec.shape}))


def _recorded_answer(recorder: Recorder, ct: Any, spec: Spec) -> Recorded:
    # An identity, so that each answer is a value of its own, even where two sources share a cotangent.
    if isinstance(ct, Slices):
        return SlicesValue(_own(recorder, ct.values), _own(recorder, ct.indices), ct.dense)
    return _own(recorder, ct)


def _own(recorder: Recorder, operand: Operand) -> Recorded:
    return recorder.apply(CATALOGUE["identity"], (operand.value,))
