"""Many cotangents at once: one backward pass over a stack of them, in chunks whose memory stays under a bound.

`jacobian` goes back from each element of a target, `batch_jacobian` from each element of an example for all examples at
once, `vjps` from cotangents that the caller gives. Alike for arrays, for values that an outer tape records (which makes
a Jacobian differentiable), and for specs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import GradientKind, densify
from teletape_engine.derivatives.backward import Shares, Stop, backward, reaching
from teletape_engine.derivatives.batching import Rows
from teletape_engine.derivatives.gradient import Answers, answering
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.recording.cotangents import Ct, Presence
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Uid, Variable
from teletape_engine.spec import DTYPES, Shape, Spec

BOUND: Final = 64 << 20  #: Bytes of cotangents that a chunk may take, if nobody says otherwise.

#: Makes the cotangents [last - first, *target.shape] of the rows from first up to last.
Seed: TypeAlias = Callable[[int, int], Recorded]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a tape is asked for stacks of cotangents.

    Attributes:
        zeros: Whether an unconnected source gets zeros instead of None.
        no_gradient: Op types declared to have no gradient.
        max_bytes: What the cotangents of one chunk of rows may take; None: `BOUND`, or what is left of the session's
            memory. Under an outer tape, which keeps what every row computes, it has no say.
        max_rows: Rows a chunk at most; None: as many as fit.
        retain_tape: Whether another question follows: a tape that is not persistent can then still be asked.
        registered: Op types whose gradient the caller has; see `backward`.
        custom: Answers where the pass stops, on operands of `Rows`; see `backward`.
        answer: Answers where one without rows does; see `gradient`.
    """

    zeros: bool = False
    no_gradient: Collection[str] = ()
    max_bytes: int | None = None
    chunk_size: int | None = None
    retain_tape: bool = False
    registered: Collection[str] = ()
    custom: Callable[[Stop], Shares] | None = None
    answer: Callable[[Stop], Answers] | None = None


DEFAULT: Final = Options()


def jacobian(
    recorder: Recorder, tape: Tape, target: Any, sources: Sequence[Any], options: Options = DEFAULT
) -> list[Recorded | None]:
    """For each source the derivative of each element of `target`: [*target.shape, *source.shape], dense.

    Args:
        recorder: The context where it is asked; outer tapes active there record how the answer came about.
        tape: Asked; a non-persistent one stops recording and answers once. A target that it does not follow has no
            derivatives, not even with respect to itself.
        target: A recorded value or a Variable.
        sources: Recorded values or variables.
        options: See there.

    Raises:
        TapeConsumedError: A non-persistent tape asked again.
        NoGradientRegisteredError: See `backward`.
        ResourceExhaustedError: One row does not fit under the bound, or the answer into the session.
        CancelledError: Between two chunks.
    """
    spec = target.spec
    units = _Units(recorder, spec.size, spec)
    started = [(target, lambda first, last: units(first, last, spec.shape))] if _has_recorded(tape, target) else []
    into = [Spec.of((*spec.shape, *one.spec.shape), one.spec.dtype) for one in sources]
    return _stacks(recorder, tape, started, spec.size, sources, into, options, partial(_reshaped, recorder))


def batch_jacobian(recorder: Recorder, tape: Tape, target: Any, source: Any, options: Options = DEFAULT) -> Recorded:
    """The Jacobian of each example: [b, *y, *x] for a target [b, *y] and a source [b, *x]; zeros if not connected.

    As many rows as one example of the target has elements, for all examples at once. That is right where target[i]
    depends on source[i] alone; otherwise, as in TensorFlow, the derivatives of all examples' targets are summed. As
    there, too, zeros have the target's dtype, unless `options.zeros` asks for them: then the source's.

    Args and errors as `jacobian`, and:

    Raises:
        InvalidArgumentError: Not both of rank 2 or more, with one first dimension.
    """
    spec, by = target.spec, source.spec
    check_examples(spec.shape, by.shape)
    examples, part = spec.shape[0], spec.shape[1:]
    rows = math.prod(part)
    units = _Units(recorder, rows, spec)

    def seed(first: int, last: int) -> Recorded:
        one = units(first, last, (1, *part))
        return _applied(recorder, "broadcast_to", one, shape=(last - first, examples, *part))

    def by_example(found: Recorded, shape: Shape) -> Recorded:
        behind = range(2, found.spec.ndim)
        return _reshaped(recorder, _applied(recorder, "transpose", found, perm=(1, 0, *behind)), shape)

    started = [(target, seed)] if _has_recorded(tape, target) else []
    into = [Spec.of((*spec.shape, *by.shape[1:]), by.dtype)]
    [found] = _stacks(recorder, tape, started, rows, [source], into, options, by_example)
    return recorder.full(into[0].with_dtype(spec.dtype), 0) if found is None else found


def check_examples(target: Shape, source: Shape) -> None:
    """InvalidArgumentError unless both shapes have rank 2 or more and one first dimension; in TensorFlow's words."""
    check_rank(target)
    check_rank(source)
    if target[0] != source[0]:
        raise InvalidArgumentError(
            f"Need first dimension of target shape ({target}) and source shape ({source}) to match."
        )


def check_rank(shape: Shape) -> None:
    """InvalidArgumentError for the shape of what has no examples with elements; in TensorFlow's words."""
    if len(shape) < 2:
        raise InvalidArgumentError(f"Shape {shape} must have rank at least 2")


def vjps(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    seeds: Sequence[Recorded | None],
    options: Options = DEFAULT,
) -> list[Recorded | None]:
    """The gradients for several cotangents at once: [k, *source.shape] for each source, dense.

    Args:
        recorder: As for `jacobian`.
        tape: As for `jacobian`.
        targets: Recorded values or variables, whose sum is differentiated.
        sources: Recorded values or variables.
        seeds: For each target its k cotangents [k, *target.shape]; None: ones. One at least is given.
        options: See there.

    Errors as `jacobian`, and:

    Raises:
        InvalidArgumentError: A stack of another shape or dtype than its target's; stacks of different length, or none.
    """
    if len(seeds) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets, but {len(seeds)} stacks of output gradients: give one for each target, null for "
            "ones"
        )
    rows = next((one.spec.shape[0] for one in seeds if one is not None and one.spec.ndim), None)
    for seed, target in zip(seeds, targets, strict=True):
        wanted = target.spec.with_shape((rows or 0, *target.spec.shape))
        if seed is not None and seed.spec is not wanted:
            first = str(rows) if seed.spec.ndim == target.spec.ndim + 1 else "k"
            axes = ", ".join([first, *map(str, target.spec.shape)])
            raise InvalidArgumentError(
                f"a stack of output gradients {seed.spec!r} for a target {target.spec!r}: it must be "
                f"{target.spec.dtype.name}[{axes}], one leading axis of the same length for all targets and then the "
                "target's own"
            )
    if rows is None:
        raise InvalidArgumentError("no stack of output gradients is given: nothing tells how many cotangents there are")
    started = [
        (target, partial(_part, recorder, target.spec, seed))
        for target, seed in zip(targets, seeds, strict=True)
        if target.spec.differentiable
    ]
    into = [one.spec.with_shape((rows, *one.spec.shape)) for one in sources]
    return _stacks(recorder, tape, started, rows, sources, into, options, partial(_reshaped, recorder))


# ------------------------------------------------------------------------------------------------------------ the pass
def _stacks(
    recorder: Recorder,
    tape: Tape,
    started: Sequence[tuple[Any, Seed]],
    rows: int,
    sources: Sequence[Any],
    into: Sequence[Spec],
    options: Options,
    arranged: Callable[[Recorded, Shape], Recorded],
) -> list[Recorded | None]:
    """For each source what its stack [rows, *source.shape] gives in the shape of `into`."""
    with answering(recorder, tape, retain_tape=options.retain_tape):
        uids, wanted = [target.uid for target, _ in started], {source.uid for source in sources}
        free = not tape.persistent and not options.retain_tape
        ask = partial(
            backward,
            tape,
            sources=wanted,
            no_gradient=options.no_gradient,
            registered=options.registered,
            custom=options.custom,
        )
        found: list[Recorded | None]
        predicts = recorder.bare.shadowed and not recorder.recorded
        if predicts or not rows:
            cts = ask([(uid, GradientKind.DENSE) for uid in uids], algebra=Presence(), release=free)
            found = [
                (recorder.answer(GradientKind.DENSE, spec) if predicts else recorder.full(spec, 0))
                if one.uid in cts
                else None
                for one, spec in zip(sources, into, strict=True)
            ]
        else:
            chunks = _chunks(recorder, tape, uids, rows, sources, into, options)
            parts = (
                (first, last, _chunk(recorder, ask, started, first, last, sources, free and last == rows))
                for first, last in _told(recorder, chunks)
            )
            stacks = [one.spec.with_shape((rows, *one.spec.shape)) for one in sources]
            found = [
                None if one is None else arranged(one, spec.shape)
                for one, spec in zip(_collected(recorder, stacks, len(chunks), parts), into, strict=True)
            ]
    if options.zeros:
        found = [recorder.full(spec, 0) if one is None else one for one, spec in zip(found, into, strict=True)]
    if not recorder.recorded:
        recorder.answered([target for target, _ in started], sources, found)
    return found


def _told(recorder: Recorder, chunks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The chunks; between them it can be seen how far it is, and stopped."""
    for k, chunk in enumerate(chunks):
        if len(chunks) > 1:
            recorder.iteration(k, len(chunks))
        yield chunk


def _chunk(
    recorder: Recorder,
    ask: Callable[..., dict[Uid, Ct]],
    started: Sequence[tuple[Any, Seed]],
    first: int,
    last: int,
    sources: Sequence[Any],
    release: bool,
) -> list[Any | None]:
    """For each source the cotangents [last - first, *source.shape] as an array or the recorder's operand."""
    recorded = recorder.recorded
    rows = Rows(recorder if recorded else None)
    seeds = []
    for target, seed in started:
        made = seed(first, last)
        seeds.append((target.uid, rows.stack(Operand(recorder, made) if recorded else recorder.ct(made))))
    cts = ask(seeds, algebra=rows, release=release)
    return [rows.unstack(densify(cts[one.uid]), last - first) if one.uid in cts else None for one in sources]


def _collected(
    recorder: Recorder, specs: Sequence[Spec], count: int, chunks: Iterator[tuple[int, int, list[Any | None]]]
) -> list[Recorded | None]:
    """The chunks of each source as one recorded value of its own."""
    if recorder.recorded:
        parts = [found for _, _, found in chunks]
        joined = CATALOGUE["concat"]
        return [
            None if one[0] is None else (joined(*one, axis=0) if count > 1 else CATALOGUE["identity"](one[0])).value
            for one in zip(*parts, strict=True)
        ]
    out: list[Recorded | None] = [None] * len(specs)
    for first, last, found in chunks:
        for i, (part, spec) in enumerate(zip(found, specs, strict=True)):
            if part is None:
                continue
            if count == 1:
                out[i] = recorder.answer(part, spec)
                continue
            whole = out[i] = recorder.full(spec, 0) if out[i] is None else out[i]
            whole.array[first:last] = part  # type: ignore[union-attr]  # a Value; nobody has seen it yet: no second copy
    return out


# ----------------------------------------------------------------------------------------------------------- the price
def _chunks(
    recorder: Recorder,
    tape: Tape,
    uids: Collection[Uid],
    rows: int,
    sources: Sequence[Any],
    into: Sequence[Spec],
    options: Options,
) -> list[tuple[int, int]]:
    """(first, last) of each chunk, its memory admitted.

    Raises:
        ResourceExhaustedError: Not even one row fits.
    """
    most = rows if options.chunk_size is None else options.chunk_size
    if not recorder.recorded:
        answer = sum([spec.nbytes for spec in into])
        each = row_bytes(tape, uids, {one.uid for one in sources})
        room = recorder.room() - answer
        bound = min(BOUND if options.max_bytes is None else options.max_bytes, room)
        if each > bound:
            by_session = options.max_bytes is None or room < options.max_bytes
            raise ResourceExhaustedError(
                f"one of the {rows:,} rows takes about {each:,} bytes of cotangents, and the answer {answer:,}; "
                + (
                    f"{max(0, int(room + answer)):,} are left in the session: release values or tapes, or ask for less"
                    if by_session
                    else f"max_bytes is {options.max_bytes:,}: raise it"
                ),
                needed=each,
                answer=answer,
                bound=max(0, int(bound)),
            )
        most = min(most, int(bound // each))
        recorder.admit(answer + min(most, rows) * each, "the cotangents' stack")
    most = max(1, most)
    return [(first, min(first + most, rows)) for first in range(0, rows, most)]


def row_bytes(tape: Tape, targets: Collection[Uid], sources: Collection[Uid]) -> int:
    """About the most bytes that the cotangents of one row take at a time while a backward pass goes over the tape."""
    through = reaching(tape, set(sources), ())
    live: dict[Uid | None, int] = dict.fromkeys(targets, 0)
    total = most = 0
    for plan, inputs, output, _, _ in reversed(tape.nodes):
        if output not in live:
            continue
        held = plan.bound.spec.nbytes
        if output not in sources:
            total -= live.pop(output)
        for i, _ in plan.structural:
            if through is None or inputs[i] in through:
                share = plan.bound.specs[i].nbytes
                most = max(most, total + held + 2 * share)  # the share, and what its rule has on the way
                if inputs[i] not in live:
                    live[inputs[i]] = share
                    total += share
        if not plan.structural:  # a function of the caller's: what it makes is counted where it goes on
            live.update((uid, 0) for uid in inputs if uid not in live)
    return max(most, total, 1)


# ----------------------------------------------------------------------------------------------------------- the seeds
class _Units:
    """Rows of the identity matrix, each in the shape of what is differentiated."""

    def __init__(self, recorder: Recorder, size: int, spec: Spec) -> None:
        self.recorder, self.size, self.dtype = recorder, size, spec.dtype

    def __call__(self, first: int, last: int, shape: Shape) -> Recorded:
        recorder, count = self.recorder, CATALOGUE["range"]
        places = recorder.apply(count, (), count.attrs({"start": first, "limit": last, "dtype": DTYPES["int64"]}))
        flat = _applied(recorder, "one_hot", places, depth=self.size, dtype=self.dtype)
        return _reshaped(recorder, flat, (last - first, *shape))


def _part(recorder: Recorder, spec: Spec, stack: Recorded | None, first: int, last: int) -> Recorded:
    """Rows of a stack that the caller gave; ones for None."""
    if stack is None:
        return recorder.full(spec.with_shape((last - first, *spec.shape)), 1)
    if (first, last) == (0, stack.spec.shape[0]):
        return stack
    return _applied(recorder, "strided_slice", stack, index=((first, last, None),))


def _has_recorded(tape: Tape, target: Any) -> bool:
    """Whether the tape follows a target: unlike a gradient, a Jacobian's target has to have been seen."""
    if not target.spec.differentiable:
        return False
    return tape.watches(target) if isinstance(target, Variable) else target.uid in tape.tracked


def _reshaped(recorder: Recorder, value: Recorded, shape: Shape) -> Recorded:
    return value if value.spec.shape == shape else _applied(recorder, "reshape", value, shape=shape)


def _applied(recorder: Recorder, name: str, value: Recorded, **attrs: Any) -> Recorded:
    op = CATALOGUE[name]
    return recorder.apply(op, (value,), op.attrs(attrs))
