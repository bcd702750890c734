"""Jacobians: one backward pass over a stack of cotangents, in chunks whose memory stays under a bound.

`jacobian` starts from each element of a target, `batch_jacobian` from each element of an example for all examples at
once, `vjps` from cotangents that the caller gives. All work for arrays, for values that an outer tape records (so a
Jacobian is differentiable), and for specs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from teletape_engine.catalogue.binding import TapeCall
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import GradientKind, densify
from teletape_engine.derivatives.backward import backward
from teletape_engine.derivatives.batching import Rows
from teletape_engine.derivatives.gradient import answering
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.walks import peak_bytes
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.recording.cotangents import Algebra, Ct, Presence
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Uid, Variable
from teletape_engine.spec import DTYPES, Shape, Spec

BOUND: Final = 64 << 20  #: Bytes of cotangents that a chunk may take, by default.

#: From rows `first` to `last` (exclusive) to their cotangents [last - first, *target.shape].
Start: TypeAlias = Callable[[int, int], Recorded]


def jacobian(recorder: Recorder, query: GradientQuery) -> list[Recorded | None]:
    """For each source the derivative of each element of the one target: [*target.shape, *source.shape], dense.

    A target that the tape does not follow has no derivatives, not even with respect to itself. With `query.examples`
    see `examples_jacobian`.

    Args:
        recorder: The context of the question; outer tapes active there record how the answers are computed.
        query: The question.

    Raises:
        TapeConsumedError: A non-persistent tape has answered before.
        NoGradientRegisteredError: As `backward_pass`.
        ResourceExhaustedError: One row does not fit under the bound, or the answer into the session.
        CancelledError: Its caller wants it stopped.
    """
    if query.examples:
        return examples_jacobian(recorder, query)
    [target] = query.targets
    spec = target.spec
    units = _Units(recorder, spec.size, spec)
    starts = [(target, lambda first, last: units(first, last, spec.shape))] if _has_recorded(query.tape, target) else []
    into = [Spec.of((*spec.shape, *source.spec.shape), source.spec.dtype) for source in query.sources]
    return _stacks(recorder, query, starts, spec.size, into, partial(_reshaped, recorder))


def batch_jacobian(recorder: Recorder, query: GradientQuery) -> Recorded:
    """The Jacobian of each example: [b, *y, *x] for one target [b, *y] and one source [b, *x]; zeros if not connected.

    As many rows as one example of the target has elements, for all examples at once. That is right if target[i] depends
    on source[i] alone; otherwise, as in TensorFlow, the derivatives of all examples' targets are summed. As there, too,
    zeros have the target's dtype, unless `query.zeros`: then the source's.

    Args and errors as `jacobian`, and:

    Raises:
        InvalidArgumentError: Not both of rank 2 or more, with one first dimension.
    """
    [target], [source] = query.targets, query.sources
    check_examples(target.spec.shape, source.spec.shape)
    [derivative] = examples_jacobian(recorder, query)
    if derivative is not None:
        return derivative
    spec = target.spec
    return recorder.full(spec.with_shape((*spec.shape, *source.spec.shape[1:])), 0)


def examples_jacobian(recorder: Recorder, query: GradientQuery) -> list[Recorded | None]:
    """For each source the Jacobian of each example: [n, *y, *x] for one target [n, *y] and sources [n, *x].

    As many rows as one example of the target has elements, for all examples at once: see `batch_jacobian`.

    Args and errors as `jacobian`, and:

    Raises:
        InvalidArgumentError: Not all have the same number of examples.
    """
    [target] = query.targets
    spec = target.spec
    for source in query.sources:
        if not spec.shape or spec.shape[:1] != source.spec.shape[:1]:
            raise InvalidArgumentError(
                f"examples: axis 0 of the target {spec!r} and of the source {source.spec!r} must number the same "
                "examples"
            )
    examples, part = spec.shape[0], spec.shape[1:]
    rows = math.prod(part)
    units = _Units(recorder, rows, spec)

    def start(first: int, last: int) -> Recorded:
        return recorder.op(ops.broadcast_to, units(first, last, (1, *part)), shape=(last - first, examples, *part))

    def by_example(stack: Recorded, shape: Shape) -> Recorded:
        return _reshaped(recorder, recorder.op(ops.transpose, stack, perm=(1, 0, *range(2, stack.spec.ndim))), shape)

    starts = [(target, start)] if _has_recorded(query.tape, target) else []
    into = [Spec.of((*spec.shape, *source.spec.shape[1:]), source.spec.dtype) for source in query.sources]
    return _stacks(recorder, query, starts, rows, into, by_example)


def check_examples(target: Shape, source: Shape) -> None:
    """InvalidArgumentError unless both shapes have rank 2 or more and one first dimension; in TensorFlow's words."""
    check_rank(target)
    check_rank(source)
    if target[0] != source[0]:
        raise InvalidArgumentError(
            f"Need first dimension of target shape ({target}) and source shape ({source}) to match."
        )


def check_rank(shape: Shape) -> None:
    """InvalidArgumentError for a shape of rank 0 or 1, which has no examples with elements; in TensorFlow's words."""
    if len(shape) < 2:
        raise InvalidArgumentError(f"Shape {shape} must have rank at least 2")


def vjps(recorder: Recorder, query: GradientQuery) -> list[Recorded | None]:
    """The gradients for several cotangents at once: [k, *source.shape] for each source, dense.

    Args:
        recorder: As for `jacobian`.
        query: The question; its output gradients are stacks [k, *target.shape], None for ones, one at least not None.

    Errors as `jacobian`, and:

    Raises:
        InvalidArgumentError: A stack of another shape or dtype than its target's; stacks of different length, or none.
    """
    targets, stacks = query.targets, query.output_gradients or ()
    if len(stacks) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets, but {len(stacks)} stacks of output gradients: give one for each target, null for "
            "ones"
        )
    rows = next((stack.spec.shape[0] for stack in stacks if stack is not None and stack.spec.ndim), None)
    for stack, target in zip(stacks, targets, strict=True):
        wanted = target.spec.with_shape((rows or 0, *target.spec.shape))
        if stack is not None and stack.spec is not wanted:
            first = str(rows) if stack.spec.ndim == target.spec.ndim + 1 else "k"
            axes = ", ".join([first, *map(str, target.spec.shape)])
            raise InvalidArgumentError(
                f"a stack of output gradients {stack.spec!r} for a target {target.spec!r}: it must be "
                f"{target.spec.dtype.name}[{axes}], one leading axis of the same length for all targets and then the "
                "target's own"
            )
    if rows is None:
        raise InvalidArgumentError("no stack of output gradients is given: the number of cotangents is not known")
    starts = [
        (target, partial(_part, recorder, target.spec, stack))
        for target, stack in zip(targets, stacks, strict=True)
        if target.spec.differentiable
    ]
    into = [source.spec.with_shape((rows, *source.spec.shape)) for source in query.sources]
    return _stacks(recorder, query, starts, rows, into, partial(_reshaped, recorder))


# ------------------------------------------------------------------------------------------------------------ the pass
def _stacks(
    recorder: Recorder,
    query: GradientQuery,
    starts: Sequence[tuple[Any, Start]],
    rows: int,
    into: Sequence[Spec],
    arranged: Callable[[Recorded, Shape], Recorded],
) -> list[Recorded | None]:
    """For each source its stack [rows, *source.shape], arranged in the shape of `into`."""
    with answering(recorder, query):
        derivatives: list[Recorded | None]
        predicts = recorder.mode.predicts and not recorder.recorded
        if predicts or not rows:
            dense = [(target.uid, GradientKind.DENSE) for target, _ in starts]
            cts = _backward(recorder, query, dense, Presence(), query.release, 1)
            derivatives = [
                (recorder.answer(GradientKind.DENSE, spec) if predicts else recorder.full(spec, 0))
                if source.uid in cts
                else None
                for source, spec in zip(query.sources, into, strict=True)
            ]
        else:
            chunks = _chunks(recorder, query, [target.uid for target, _ in starts], rows, into)
            parts = (
                (first, last, _chunk(recorder, query, starts, first, last, query.release and last == rows))
                for first, last in _reported(recorder, chunks)
            )
            stacks = [source.spec.with_shape((rows, *source.spec.shape)) for source in query.sources]
            derivatives = [
                None if stack is None else arranged(stack, spec.shape)
                for stack, spec in zip(_collected(recorder, stacks, len(chunks), parts), into, strict=True)
            ]
    if query.zeros:
        derivatives = [
            recorder.full(spec, 0) if derivative is None else derivative
            for derivative, spec in zip(derivatives, into, strict=True)
        ]
    if not recorder.recorded:
        recorder.provenance.note_gradients([target for target, _ in starts], query.sources, derivatives)
    return derivatives


def _backward(
    recorder: Recorder,
    query: GradientQuery,
    starts: Sequence[tuple[Uid, Ct]],
    algebra: Algebra,
    release: bool,
    rows: int,
) -> dict[Uid, Ct]:
    def admit_work(call: TapeCall, rules: int) -> None:
        recorder.admit_work(call, rules * rows)

    return backward(
        query.tape,
        starts,
        query.source_uids,
        algebra,
        declarations=query.declarations,
        release=release,
        at_stop=query.at_stacked_stop,
        check_cancelled=recorder.check_cancelled,
        admit_work=None if recorder.recorded else admit_work,
    )


def _reported(recorder: Recorder, chunks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The chunks; before each, progress is reported and a cancel takes effect."""
    for k, chunk in enumerate(chunks):
        if len(chunks) > 1:
            recorder.iteration(k, len(chunks))
        yield chunk


def _chunk(
    recorder: Recorder,
    query: GradientQuery,
    starts: Sequence[tuple[Any, Start]],
    first: int,
    last: int,
    release: bool,
) -> list[Any | None]:
    """For each source the cotangents [last - first, *source.shape] as an array or the recorder's operand."""
    recorded = recorder.recorded
    rows = Rows(recorder if recorded else None)
    stacked = []
    for target, start in starts:
        stack = start(first, last)
        stacked.append((target.uid, rows.stack(Operand(recorder, stack) if recorded else recorder.ct(stack))))
    cts = _backward(recorder, query, stacked, rows, release, last - first)
    return [
        rows.unstack(densify(cts[source.uid]), last - first) if source.uid in cts else None for source in query.sources
    ]


def _collected(
    recorder: Recorder, specs: Sequence[Spec], count: int, chunks: Iterator[tuple[int, int, list[Any | None]]]
) -> list[Recorded | None]:
    """The chunks of each source as one recorded value of its own."""
    if recorder.recorded:
        columns = zip(*[parts for _, _, parts in chunks], strict=True)
        joined = ops.concat
        return [
            None if parts[0] is None else (joined(*parts, axis=0) if count > 1 else ops.identity(parts[0])).value
            for parts in columns
        ]
    out: list[Recorded | None] = [None] * len(specs)
    for first, last, parts in chunks:
        for i, (part, spec) in enumerate(zip(parts, specs, strict=True)):
            if part is None:
                continue
            if count == 1:
                out[i] = recorder.answer(part, spec)
                continue
            whole = out[i] = recorder.full(spec, 0) if out[i] is None else out[i]
            whole.array[first:last] = part  # type: ignore[union-attr]  # a Value of this function alone: no second copy
    return out


# ----------------------------------------------------------------------------------------------------------- the price
def _chunks(
    recorder: Recorder, query: GradientQuery, targets: Sequence[Uid], rows: int, into: Sequence[Spec]
) -> list[tuple[int, int]]:
    """(first, last) of each chunk, its memory admitted.

    Raises:
        ResourceExhaustedError: Not even one row fits.
    """
    size = rows if query.chunk_size is None else query.chunk_size
    # What is recorded is admitted op by op, and stays: of it `max_bytes` alone bounds the chunks.
    answer = 0 if recorder.recorded else sum([spec.nbytes for spec in into])
    room = math.inf if recorder.recorded else recorder.room() - answer
    default = math.inf if recorder.recorded else BOUND
    bound = min(default if query.max_bytes is None else query.max_bytes, room)
    if bound < math.inf:
        row = peak_bytes(query.tape, targets, query.source_uids)
        if row > bound:
            by_session = query.max_bytes is None or room < query.max_bytes
            raise ResourceExhaustedError(
                f"one of the {rows:,} rows takes about {row:,} bytes of cotangents, and the answer {answer:,}; "
                + (
                    f"{max(0, int(room + answer)):,} are left in the session: release values or tapes, or ask for less"
                    if by_session
                    else f"max_bytes is {query.max_bytes:,}: raise it"
                ),
                needed=row,
                answer=answer,
                bound=max(0, int(bound)),
            )
        size = min(size, int(bound // row))
        if not recorder.recorded:
            size = recorder.admit_pieces(answer, row, max(1, min(size, rows)), "the cotangents' stack")
    size = max(1, size)
    return [(first, min(first + size, rows)) for first in range(0, rows, size)]


# ---------------------------------------------------------------------------------------------------------- the starts
class _Units:
    """Rows of the identity matrix, each in the shape of what is differentiated."""

    def __init__(self, recorder: Recorder, size: int, spec: Spec) -> None:
        self.recorder, self.size, self.dtype = recorder, size, spec.dtype

    def __call__(self, first: int, last: int, shape: Shape) -> Recorded:
        recorder = self.recorder
        rows = recorder.op(ops.range, start=first, limit=last, dtype=DTYPES["int64"])
        flat = recorder.op(ops.one_hot, rows, depth=self.size, dtype=self.dtype)
        return _reshaped(recorder, flat, (last - first, *shape))


def _part(recorder: Recorder, spec: Spec, stack: Recorded | None, first: int, last: int) -> Recorded:
    """Rows of a stack that the caller gave; ones for None."""
    if stack is None:
        return recorder.full(spec.with_shape((last - first, *spec.shape)), 1)
    if (first, last) == (0, stack.spec.shape[0]):
        return stack
    return recorder.op(ops.strided_slice, stack, index=((first, last, None),))


def _has_recorded(tape: Tape, target: Any) -> bool:
    """Whether the tape follows a target: unlike a gradient's, a Jacobian's target must have been recorded."""
    if not target.spec.differentiable:
        return False
    return tape.watches(target) if isinstance(target, Variable) else target.uid in tape.tracked


def _reshaped(recorder: Recorder, value: Recorded, shape: Shape) -> Recorded:
    return value if value.spec.shape == shape else recorder.op(ops.reshape, value, shape=shape)
