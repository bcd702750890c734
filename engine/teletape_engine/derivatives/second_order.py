"""Second derivatives of one tape: Hessians and Hessian-vector products, without an outer tape.

The tape records how its own gradient is computed, as a persistent tape does inside its own context. It then computes
the derivatives of this gradient, and removes the nodes that it recorded for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.gradient import answering, gradient
from teletape_engine.derivatives.jacobian import jacobian
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded


def hessian(recorder: Recorder, query: GradientQuery) -> list[list[Recorded | None]]:
    """The second derivatives of the targets' sum: for each source a row with a block for each source.

    Args:
        recorder: The context of the question; outer tapes active there record how the answers are computed.
        query: The question; its bounds are those of each row of blocks.

    Returns:
        Block (i, j): [*source i, *source j], the gradient of source i differentiated by source j. None: not connected.
        With `query.examples`, for sources [n, *x]: [n, *x i, *x j].

    Raises:
        TapeConsumedError: A non-persistent tape has answered before.
        NoGradientRegisteredError: As `backward_pass`.
        ResourceExhaustedError: One row does not fit under the bound, or the answer into the session.
    """
    sources = query.sources
    with _recording_itself(recorder, query) as recording:
        first = _first_derivatives(recorder, query, recording)
        rows: list[list[Recorded | None]] = []
        for derivative, source in zip(first, sources, strict=True):
            if derivative is not None:
                rows.append(jacobian(recorder, query.gradient_of([derivative], zeros=query.zeros, retain_tape=True)))
            elif query.zeros:
                shapes = [(*source.spec.shape, *other.spec.shape[query.examples :]) for other in sources]
                rows.append([recorder.full(source.spec.with_shape(shape), 0) for shape in shapes])
            else:
                rows.append([None] * len(sources))
        if query.observer is not None:
            query.observer(first, [block for row in rows for block in row])
    return rows


def hvp(recorder: Recorder, query: GradientQuery) -> list[Recorded | None]:
    """The Hessian of the targets' sum times a vector: for each source [*source.shape], dense.

    It costs about two gradients, and never computes the Hessian. With output gradients the sum is that of the targets
    times them.

    Args:
        recorder: As for `hessian`.
        query: The question, with its vectors; its bounds have no effect.

    Errors as `hessian`, and:

    Raises:
        InvalidArgumentError: Another count, shape or dtype.
    """
    sources, vectors = query.sources, query.vectors
    if len(vectors) != len(sources):
        raise InvalidArgumentError(f"{len(sources)} sources, but {len(vectors)} vectors: give one for each")
    for number, (source, vector) in enumerate(zip(sources, vectors, strict=True)):
        if vector.spec is not source.spec:
            raise InvalidArgumentError(
                f"a vector {vector.spec!r} for a source {source.spec!r}, number {number} from 0: it must have the "
                "source's shape and dtype"
            )
    with _recording_itself(recorder, query) as recording:
        first = _first_derivatives(recorder, query, recording)
        recorder.admit(sum([source.spec.nbytes for source in sources]), "the products")
        pairs = [pair for pair in zip(first, vectors, strict=True) if pair[0] is not None]
        second = query.gradient_of(
            [derivative for derivative, _ in pairs], [vector for _, vector in pairs], zeros=query.zeros
        )
        products = [densify(product, recorder) for product in gradient(recorder, second)]
        if query.observer is not None:
            query.observer(first, products)
    return products


def _first_derivatives(
    recorder: Recorder, query: GradientQuery, recording: AbstractContextManager[None]
) -> list[Recorded | None]:
    """The gradient, dense, recorded on the tape itself."""
    weights = query.output_gradients
    if weights is not None:  # constants: a tape that is not active does not follow what they were computed from
        weights = [
            recorder.op(ops.identity, weight) if weight is not None and weight.uid in query.tape.tracked else weight
            for weight in weights
        ]
    first = query.gradient_of(query.targets, weights)
    with recording:
        return [densify(derivative, recorder) for derivative in gradient(recorder, first)]


@contextmanager
def _recording_itself(recorder: Recorder, query: GradientQuery) -> Iterator[AbstractContextManager[None]]:
    """A block in which the tape can answer twice; yields the block in which it records.

    A tape that is active already goes on recording all of it, and keeps it: for still higher derivatives.
    """
    tape = query.tape
    with answering(recorder, query.gradient_of(query.targets, retain_tape=True)):
        active = tape in recorder.context.tapes
        persistent, tape.persistent = tape.persistent, True
        try:
            with nullcontext() if active else tape.aside():
                yield nullcontext() if active else _open(recorder, tape)
        finally:
            tape.persistent = persistent
            if not persistent and not query.retain_tape:
                tape.consume()
                tape.free()


@contextmanager
def _open(recorder: Recorder, tape: Tape) -> Iterator[None]:
    recorder.context.open(tape)
    try:
        yield
    finally:
        recorder.context.pause(tape)
