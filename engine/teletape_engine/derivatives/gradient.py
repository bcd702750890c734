"""The gradient of a tape: from a question to recorded answers, whatever the recorder computes with."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from teletape_engine.arrays import runs_already
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient, densify
from teletape_engine.derivatives.backward import backward_pass
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.derivatives.walks import source_passed_to
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError
from teletape_engine.generators import driven
from teletape_engine.recording.cotangents import Operands
from teletape_engine.recording.custom import FunctionGradient
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Recorded, Uid
from teletape_engine.spec import Shape, Spec, broadcast, shape_text


def gradient(recorder: Recorder, query: GradientQuery, *, as_ops: bool = False) -> list[Recorded | None]:
    """The cotangent of each source, summed over the targets.

    Args:
        recorder: The context of the question; outer tapes active there record how the answers are computed.
        query: The question.
        as_ops: Whether the pass is made of ops of the recorder also if nothing records it: plans see those alone.

    Returns:
        For each source a recorded value or SlicesValue of its shape and dtype; None, or zeros, if no target depends on
        it.

    Raises:
        TapeConsumedError: A non-persistent tape has answered before.
        InvalidArgumentError: An output gradient of another shape or dtype than its target; another count than the
            targets; a function of the caller's returned what does not fit its inputs.
        NoGradientRegisteredError: As `backward_pass`.
        UnimplementedError: The pass stops at a function that is in another process.
    """
    walk, at_stop = gradient_pass(recorder, query, as_ops=as_ops), query.at_stop or query.declarations.gradient_at
    try:
        call = recorder.pass_call
        if call is None or recorder.recorded or as_ops:
            return driven(walk, at_stop)
        try:  # the rules run outside every kernel, and the caller's functions outside the pass
            stop = call(next, walk)
        except RuntimeError as error:
            if not runs_already(error):
                raise
            call = recorder.backend.kernel_call()
            stop = call(next, walk)
        while True:
            stop = call(walk.send, at_stop(stop))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is untyped
    finally:
        walk.close()


def gradient_pass(
    recorder: Recorder, query: GradientQuery, *, as_ops: bool = False
) -> Generator[Stop, InputCotangents, list[Recorded | None]]:
    """`gradient` as a generator, that stops where the gradient is the caller's own function.

    Yields:
        The stop; its cts are recorded values (or SlicesValues), zeros if none reached it. To be sent, for each input of
        the call, a recorded value, a SlicesValue or None. Closed early, it leaves the tape as a finished answer does.
    """
    tape = query.tape
    if tape.consumed:
        raise TapeConsumedError
    output_gradients = _output_gradients(recorder, query)
    unusual: dict[Any, Spec] = {}  # specs of sources' cotangents that have another shape or dtype than the source
    with answering(recorder, query):
        recorded = recorder.recorded or as_ops
        starts = []
        for target, weight in zip(query.targets, output_gradients, strict=True):
            if target.spec.differentiable:
                start = recorder.full(target.spec, 1) if weight is None else weight
                starts.append((target.uid, _ct(recorder, start, recorded)))
        walk = backward_pass(
            tape,
            starts,
            query.source_uids,
            Operands(recorder) if recorded else recorder.bare,
            declarations=query.declarations,
            release=query.release,
            check_cancelled=recorder.check_cancelled,
            admit_work=None if recorded else recorder.admit_work,
        )
        try:
            stop = next(walk)
            while True:
                cts = [
                    recorder.full(spec, 0) if ct is None else _value(recorder, ct, spec, recorded)
                    for ct, spec in zip(stop.cts, stop.results, strict=True)
                ]
                function = stop.residuals[0] if stop.residuals else None
                if isinstance(function, FunctionGradient):
                    shares: InputCotangents = function.run(
                        recorder, [densify(ct, recorder) for ct in cts], stop.residuals[1:]
                    )
                else:
                    shares = yield stop._replace(cts=cts)
                tape.declined.update([(stop.bound, i) for i, share in enumerate(shares) if share is None])
                fitted = _fitted(recorder, query, stop, shares, unusual)
                stop = walk.send([None if share is None else _ct(recorder, share, recorded) for share in fitted])
        except StopIteration as done:
            cotangents: dict[Uid, Any] = done.value
    finish = partial(_recorded_answer, recorder) if recorded else recorder.answer
    derivatives: list[Recorded | None] = []
    for source in query.sources:
        ct = cotangents.get(source.uid)
        if ct is not None:
            derivatives.append(finish(ct, unusual.get(source.uid, source.spec)))
        else:
            derivatives.append(recorder.full(source.spec, 0) if query.zeros else None)
    if not recorded:
        recorder.provenance.note_gradients(query.targets, query.sources, derivatives)
    return derivatives


@contextmanager
def answering(recorder: Recorder, query: GradientQuery) -> Iterator[None]:
    """A block in which a tape answers: one that is not persistent stops recording, and is used up after the block.

    Raises:
        TapeConsumedError: It was used up before.
    """
    tape = query.tape
    if tape.consumed:
        raise TapeConsumedError
    provenance = recorder.provenance
    before, provenance.where = provenance.where, provenance.here()  # as `at_call_site`, without a second generator
    try:
        if tape.persistent:
            yield
            return
        if tape in recorder.context.tapes:
            recorder.context.pause(tape)
        if query.retain_tape:
            yield
            return
        tape.consume()
        try:
            yield
        finally:
            tape.free()
    finally:
        provenance.where = before


# ---------------------------------------------------------------------------------------------------- output gradients
def _output_gradients(recorder: Recorder, query: GradientQuery) -> Sequence[Recorded | None]:
    targets, weights = query.targets, query.output_gradients
    if weights is None:
        return [None] * len(targets)
    if len(weights) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets, but {len(weights)} output gradients: give one for each target, None for ones"
        )
    return [
        None if weight is None else _output_gradient(recorder, number, weight, target.spec)
        for number, (target, weight) in enumerate(zip(targets, weights, strict=True))
    ]


def _output_gradient(recorder: Recorder, number: int, weight: Recorded, spec: Spec) -> Recorded:
    if weight.spec is spec:
        return weight
    if weight.spec.dtype is not spec.dtype:
        raise InvalidArgumentError(
            f"an output gradient of dtype {weight.spec.dtype.name} for a target of {spec.dtype.name}, number {number} "
            "from 0: cast it"
        )
    try:
        fits = broadcast(weight.spec.shape, spec.shape) == spec.shape
    except InvalidArgumentError:
        fits = False
    if not fits:
        shapes = f"{shape_text(weight.spec.shape)} vs. {shape_text(spec.shape)}"
        raise InvalidArgumentError(
            f"Incompatible shapes: {shapes}: an output gradient has the shape of its target, number {number} from 0"
        )
    return recorder.op(ops.broadcast_to, weight, shape=spec.shape)


# --------------------------------------------------------------------------------------------- the caller's cotangents
def _fitted(
    recorder: Recorder, query: GradientQuery, stop: Stop, shares: InputCotangents, unusual: dict[Any, Spec]
) -> list[Recorded | None]:
    """What the caller's function returned, as cotangents of the call's inputs.

    A source's own may have any shape and dtype, as in TensorFlow; what adds up or goes on backwards broadcasts to its
    input.

    Raises:
        InvalidArgumentError: Another count than the inputs; it does not broadcast.
    """
    specs = stop.bound.specs
    if len(shares) != len(specs):
        raise InvalidArgumentError(
            f"{stop.label} has {len(specs)} inputs, and its gradient function gave {len(shares)} cotangents"
        )
    sources = query.source_uids
    fitted = []
    for i, (share, spec, uid) in enumerate(zip(shares, specs, stop.inputs, strict=True)):
        if share is not None and share.spec is not spec:
            source = source_passed_to(query.tape, uid, sources)
            if source is not None and source not in stop.pending:
                unusual[source] = share.spec
            elif spec.differentiable:
                share = _broadcast(recorder, share, spec, f"the gradient of {stop.label} for input {i}")
        fitted.append(share)
    return fitted


def _broadcast(recorder: Recorder, value: Recorded, spec: Spec, what: str) -> Recorded:
    if value.spec.dtype is not spec.dtype:
        raise InvalidArgumentError(f"{what} has dtype {value.spec.dtype.name}, the input {spec.dtype.name}: cast it")
    if isinstance(value, SlicesValue) or not _broadcasts(value.spec.shape, spec.shape):
        raise InvalidArgumentError(
            f"{what} has shape {shape_text(value.spec.shape)}, which does not broadcast to the input's "
            f"{shape_text(spec.shape)}"
        )
    return recorder.op(ops.broadcast_to, value, shape=spec.shape)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    try:
        return broadcast(shape, to) == to
    except InvalidArgumentError:
        return False


# -------------------------------------------------------------------------------------- recorded values and cotangents
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


def _recorded_answer(recorder: Recorder, ct: Any, spec: Spec) -> Recorded:
    # An identity, so that each answer is a value of its own, even if two sources share a cotangent.
    if isinstance(ct, SparseGradient):
        return SlicesValue(_own(recorder, ct.values), _own(recorder, ct.indices), ct.dense)
    return _own(recorder, ct)


def _own(recorder: Recorder, operand: Operand) -> Recorded:
    return recorder.op(ops.identity, operand.value)
