"""Second derivatives of one tape: Hessians and Hessian-vector products, without an outer tape.

The gradient is recorded on the tape that it is asked of, as a persistent tape records it inside its own context; then
the tape is asked for the gradient's own derivatives; then what it recorded meanwhile is forgotten.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.derivatives.gradient import answering, gradient
from teletape_engine.derivatives.jacobian import DEFAULT, Options, jacobian
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded


def hessian(
    recorder: Recorder, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], options: Options = DEFAULT
) -> list[list[Recorded | None]]:
    """The second derivatives of the targets' sum: for each source a row with a block for each source.

    Args:
        recorder: The context where it is asked; outer tapes active there record how the answer came about.
        tape: Asked; one that is not persistent answers once.
        targets: Recorded values or variables.
        sources: Recorded values or variables.
        options: See there; the bound is that of each row of blocks.

    Returns:
        Block (i, j): [*source i, *source j], the gradient of source i differentiated by source j. None: not connected.

    Raises:
        TapeConsumedError: A non-persistent tape asked again.
        NoGradientRegisteredError: See `backward`.
        ResourceExhaustedError: One row does not fit under the bound, or the answer into the session.
    """
    with _recording_itself(recorder, tape, retain_tape=options.retain_tape) as record:
        with record:
            first = _gradients(recorder, tape, targets, sources, options)
        asked = dataclasses.replace(options, retain_tape=True)
        rows: list[list[Recorded | None]] = []
        for one, source in zip(first, sources, strict=True):
            if one is not None:
                rows.append(jacobian(recorder, tape, one, sources, asked))
            elif options.zeros:
                shapes = [(*source.spec.shape, *other.spec.shape) for other in sources]
                rows.append([recorder.full(source.spec.with_shape(shape), 0) for shape in shapes])
            else:
                rows.append([None] * len(sources))
    return rows


def hvp(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    vectors: Sequence[Recorded],
    options: Options = DEFAULT,
) -> list[Recorded | None]:
    """The Hessian of the targets' sum times a vector: for each source [*source.shape], dense.

    It costs about two gradients, and never makes the Hessian.

    Args:
        recorder: As for `hessian`.
        tape: As for `hessian`.
        targets: Recorded values or variables.
        sources: Recorded values or variables.
        vectors: For each source its part of the vector, of its shape and dtype.
        options: See there; its bounds have no say.

    Errors as `hessian`, and:

    Raises:
        InvalidArgumentError: Another count, shape or dtype.
    """
    if len(vectors) != len(sources):
        raise InvalidArgumentError(f"{len(sources)} sources, but {len(vectors)} vectors: give one for each")
    for source, vector in zip(sources, vectors, strict=True):
        if vector.spec is not source.spec:
            raise InvalidArgumentError(
                f"a vector {vector.spec!r} for a source {source.spec!r}: it must have the source's shape and dtype"
            )
    with _recording_itself(recorder, tape, retain_tape=options.retain_tape) as record:
        with record:
            first = _gradients(recorder, tape, targets, sources, options)
        recorder.admit(sum([one.spec.nbytes for one in sources]), "the products")
        pairs = [(one, vector) for one, vector in zip(first, vectors, strict=True) if one is not None]
        found = gradient(
            recorder,
            tape,
            [one for one, _ in pairs],
            sources,
            seeds=[vector for _, vector in pairs],
            zeros=options.zeros,
            no_gradient=options.no_gradient,
            registered=options.registered,
            custom=options.answer,
        )
        return [_dense(recorder, one) for one in found]


def _gradients(
    recorder: Recorder, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], options: Options
) -> list[Recorded | None]:
    found = gradient(
        recorder,
        tape,
        targets,
        sources,
        no_gradient=options.no_gradient,
        registered=options.registered,
        custom=options.answer,
    )
    return [_dense(recorder, one) for one in found]


def _dense(recorder: Recorder, found: Recorded | None) -> Recorded | None:
    if not isinstance(found, SlicesValue):
        return found
    op = CATALOGUE["unsorted_segment_sum"]
    return recorder.apply(op, (found.values, found.indices), op.attrs({"num_segments": found.dense.shape[0]}))


@contextmanager
def _recording_itself(recorder: Recorder, tape: Tape, *, retain_tape: bool) -> Iterator[Any]:
    """A block in which the tape can be asked twice; gives the block in which it records.

    A tape that is active already goes on recording all of it, and keeps it: for still higher derivatives.
    """
    with answering(recorder, tape, retain_tape=True):
        active = tape in recorder.tapes
        persistent, tape.persistent = tape.persistent, True
        try:
            with nullcontext() if active else tape.aside():
                yield nullcontext() if active else _open(recorder, tape)
        finally:
            tape.persistent = persistent
            if not persistent and not retain_tape:
                tape.consume()
                tape.free()


@contextmanager
def _open(recorder: Recorder, tape: Tape) -> Iterator[None]:
    recorder.open(tape)
    try:
        yield
    finally:
        recorder.pause(tape)
