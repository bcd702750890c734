"""Asking a tape for gradients: from targets, sources and seeds to answers, whatever the recorder computes with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from teletape_engine.catalogue.binding import Call
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.derivatives.backward import Stop, stops
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError, UnimplementedError
from teletape_engine.recording.cotangents import Operands
from teletape_engine.recording.custom import Custom, ProgramGradient
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Uid
from teletape_engine.spec import Shape, Spec, broadcast, shape_text

#: What a caller's function gives at a stop: a recorded value, a SlicesValue or None for each input of the call.
Answers: TypeAlias = Sequence[Recorded | None]


def gradient(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    *,
    seeds: Sequence[Recorded | None] | None = None,
    zeros: bool = False,
    no_gradient: Collection[str] = (),
    retain_tape: bool = False,
    registered: Collection[str] = (),
    custom: Callable[[Stop], Answers] | None = None,
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
        retain_tape: Whether another question follows: a tape that is not persistent can then still be asked.
        registered: Op types, without a gradient of their own, whose gradient `custom` makes.
        custom: Makes the cotangents where the gradient is the caller's own function; see `asking`.

    Raises:
        TapeConsumedError: A non-persistent tape asked again.
        InvalidArgumentError: A seed of another shape or dtype than its target; another count than the targets. What a
            function of the caller's gave does not fit its input.
        NoGradientRegisteredError: See `backward`.
        UnimplementedError: The targets come from a custom call, and `custom` is None.
    """
    walk = asking(
        recorder,
        tape,
        targets,
        sources,
        seeds=seeds,
        zeros=zeros,
        no_gradient=no_gradient,
        retain_tape=retain_tape,
        registered=registered,
    )
    try:
        stop = next(walk)
        while True:
            if custom is None:
                raise UnimplementedError(
                    f"the target comes from a custom call ({label(stop.bound)}), whose gradient is a function of its "
                    "caller's: ask with backward.begin, .to, .give and .end"
                )
            stop = walk.send(custom(stop))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is untyped
    finally:
        walk.close()


def asking(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    *,
    seeds: Sequence[Recorded | None] | None = None,
    zeros: bool = False,
    no_gradient: Collection[str] = (),
    retain_tape: bool = False,
    registered: Collection[str] = (),
) -> Generator[Stop, Answers, list[Recorded | None]]:
    """`gradient` as a generator, that stops where the gradient is the caller's own function.

    Yields:
        The stop; its cts are recorded values (or SlicesValues), zeros where nothing came. To be sent, for each input of
        the call, a recorded value, a SlicesValue or None. Closed early, it leaves the tape as a finished answer does.
    """
    if tape.consumed:
        raise TapeConsumedError
    given = _seeds(recorder, targets, seeds)
    odd: dict[Any, Spec] = {}
    with answering(recorder, tape, retain_tape=retain_tape):
        recorded = recorder.recorded
        algebra = Operands(recorder) if recorded else recorder.bare
        started = []
        for target, seed in zip(targets, given, strict=True):
            if not target.spec.differentiable:
                continue
            start = recorder.full(target.spec, 1) if seed is None else seed
            started.append((target.uid, _ct(recorder, start, recorded)))
        walk = stops(
            tape,
            started,
            {source.uid for source in sources},
            algebra,
            no_gradient=no_gradient,
            release=not tape.persistent and not retain_tape,
            registered=registered,
        )
        asked = {source.uid for source in sources}
        try:
            stop = next(walk)
            while True:
                received = [
                    recorder.full(spec, 0) if ct is None else _value(recorder, ct, spec, recorded)
                    for ct, spec in zip(stop.cts, stop.results, strict=True)
                ]
                first = stop.kept[0] if stop.kept else None
                if isinstance(first, ProgramGradient):
                    answers: Answers = first.run(recorder, [densely(recorder, one) for one in received], stop.kept[1:])
                else:
                    answers = yield stop._replace(cts=received)
                tape.declined.update([(stop.bound, i) for i, one in enumerate(answers) if one is None])
                fitted = _fitted(recorder, tape, stop, answers, asked, odd)
                stop = walk.send([None if one is None else _ct(recorder, one, recorded) for one in fitted])
        except StopIteration as done:
            cts = done.value
    finish = partial(_recorded_answer, recorder) if recorded else recorder.answer
    found: list[Recorded | None] = []
    for source in sources:
        ct = cts.get(source.uid)
        if ct is not None:
            found.append(finish(ct, odd.get(source.uid, source.spec)))
        else:
            found.append(recorder.full(source.spec, 0) if zeros else None)
    if not recorded:
        recorder.answered(targets, sources, found)
    return found


def _broadcasts(shape: Shape, to: Shape) -> bool:
    try:
        return broadcast(shape, to) == to
    except InvalidArgumentError:
        return False


def densely(recorder: Recorder, value: Recorded) -> Recorded:
    """Slices as one recorded array."""
    if not isinstance(value, SlicesValue):
        return value
    op = CATALOGUE["unsorted_segment_sum"]
    return recorder.apply(op, (value.values, value.indices), op.attrs({"num_segments": value.dense.shape[0]}))


def label(bound: Call) -> str:
    """What messages call the call at a stop."""
    return f"{bound.label!r}" if isinstance(bound, Custom) else f"op {bound.name!r}"


def _fitted(
    recorder: Recorder, tape: Tape, stop: Stop, answers: Answers, asked: Collection[Any], odd: dict[Any, Spec]
) -> list[Recorded | None]:
    """What the caller's function gave, as cotangents of the call's inputs.

    A source's own may have any shape and dtype, as in TensorFlow; what adds up or goes on backwards broadcasts to its
    input.

    Raises:
        InvalidArgumentError: Another count than the inputs; it does not broadcast.
    """
    specs = stop.bound.specs
    if len(answers) != len(specs):
        raise InvalidArgumentError(
            f"{label(stop.bound)} has {len(specs)} inputs, and its gradient function gave {len(answers)} cotangents"
        )
    fitted = []
    for i, (answer, spec, uid) in enumerate(zip(answers, specs, stop.inputs, strict=True)):
        if answer is not None and answer.spec is not spec:
            source = _passing_to(tape, uid, asked)
            if source is not None and source not in stop.held:
                odd[source] = answer.spec
            elif spec.differentiable:
                answer = _broadcast(recorder, answer, spec, f"the gradient of {label(stop.bound)} for input {i}")
        fitted.append(answer)
    return fitted


def _passing_to(tape: Tape, uid: Uid | None, asked: Collection[Any]) -> Uid | None:
    """The source to which a cotangent of `uid` goes as it is: itself, or the variable that it was read from."""
    for plan, inputs, output, _, _ in reversed(tape.nodes):
        if uid in asked:
            break
        if output == uid:
            if not plan.passes:
                return None
            uid = inputs[0]
    return uid if uid in asked else None


def _broadcast(recorder: Recorder, value: Recorded, spec: Spec, what: str) -> Recorded:
    if value.spec.dtype is not spec.dtype:
        raise InvalidArgumentError(f"{what} has dtype {value.spec.dtype.name}, the input {spec.dtype.name}: cast it")
    if isinstance(value, SlicesValue) or not _broadcasts(value.spec.shape, spec.shape):
        raise InvalidArgumentError(
            f"{what} has shape {shape_text(value.spec.shape)}, which does not broadcast to the input's "
            f"{shape_text(spec.shape)}"
        )
    op = CATALOGUE["broadcast_to"]
    return recorder.apply(op, (value,), op.attrs({"shape": spec.shape}))


def _ct(recorder: Recorder, value: Recorded, recorded: bool) -> Any:
    """A recorded value as a cotangent."""
    if isinstance(value, SlicesValue):
        values, indices = Operand(recorder, value.values), Operand(recorder, value.indices)
        return SparseGradient(values, indices, value.dense) if recorded else recorder.ct(value)
    return Operand(recorder, value) if recorded else recorder.ct(value)


def _value(recorder: Recorder, ct: Any, spec: Spec, recorded: bool) -> Recorded:
    """A cotangent as a recorded value."""
    if not recorded:
        return recorder.answer(ct, spec)
    return SlicesValue(ct.values.value, ct.indices.value, ct.dense) if isinstance(ct, SparseGradient) else ct.value


@contextmanager
def answering(recorder: Recorder, tape: Tape, *, retain_tape: bool = False) -> Iterator[None]:
    """A block in which the tape is asked: one that is not persistent stops recording, and is used up behind it.

    Raises:
        TapeConsumedError: It was used up before.
    """
    if tape.consumed:
        raise TapeConsumedError
    with recorder.standing():
        if tape.persistent:
            yield
            return
        if tape in recorder.tapes:
            recorder.pause(tape)
        if retain_tape:
            yield
            return
        tape.consume()
        try:
            yield
        finally:
            tape.free()


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
    if isinstance(ct, SparseGradient):
        return SlicesValue(_own(recorder, ct.values), _own(recorder, ct.indices), ct.dense)
    return _own(recorder, ct)


def _own(recorder: Recorder, operand: Operand) -> Recorded:
    return recorder.apply(CATALOGUE["identity"], (operand.value,))
