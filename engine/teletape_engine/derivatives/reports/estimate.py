"""What a derivative would take: backward passes over specs, in which ops are counted and none is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from teletape_engine.catalogue.op import WorkKind
from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.backward import backward_pass
from teletape_engine.derivatives.jacobian import BOUND, check_examples
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.derivatives.reports.counting import Counter
from teletape_engine.derivatives.reports.speed import Speed
from teletape_engine.derivatives.walks import peak_bytes
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError
from teletape_engine.generators import driven
from teletape_engine.recording.cotangents import Operands
from teletape_engine.suggestions import with_nearest

QUESTIONS: Final = ("gradient", "jacobian", "batch_jacobian", "hessian", "hvp")  #: What can be estimated.


@dataclass(frozen=True)
class CostEstimate:
    """What a derivative would take.

    Attributes:
        question: Which derivative.
        rows: Cotangents that go through the tape: 1 for a gradient, with which a Hessian and an hvp begin.
        passes: Backward passes; a pass takes as many rows as fit into its memory.
        ops: Ops that all passes run.
        multiply_adds: Of products of matrices, convolutions and decompositions.
        elements: That the other ops compute.
        answer_bytes: Of the derivatives.
        peak_bytes: The most that there is at a time in addition to the tape, answer included. What an op needs while it
            runs counts with its bound.
        functions: Gradient functions of the program on the way: they are not counted.
        seconds: About how long it takes on the CPU; None: the host's speed is not known.
    """

    question: str
    rows: int
    passes: int
    ops: int
    multiply_adds: int
    elements: int
    answer_bytes: int
    peak_bytes: int
    functions: int
    seconds: float | None = None

    def facts(self) -> dict[str, Any]:
        """As JSON-able facts."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> CostEstimate:
        """The estimate that gave these facts."""
        return cls(**{name: facts[name] for name in cls.__dataclass_fields__})

    def __str__(self) -> str:
        parts = [
            f"{self.question}: {self.passes:,} pass{'es' if self.passes != 1 else ''} of {self.ops:,} ops in all",
            f"{self.multiply_adds:,} multiply-adds",
            f"{self.peak_bytes:,} bytes",
        ]
        return ", ".join(parts + ([] if self.seconds is None else [f"about {self.seconds:.2g} s"]))


def estimate(query: GradientQuery, question: str = "gradient", speed: Speed | None = None) -> CostEstimate:
    """What the answer to a question would take. Nothing is computed, and the tape stays as it is.

    Args:
        query: Its tape, targets, sources, and the bounds `max_bytes` and `chunk_size` of a Jacobian.
        question: One of QUESTIONS.
        speed: Of the host; None: the estimate has no seconds.

    Raises:
        InvalidArgumentError: Another question; targets or sources that it does not take.
        TapeConsumedError: The tape has answered before, and is not persistent.
        NoGradientRegisteredError: As the gradient itself.
    """
    if question not in QUESTIONS:
        raise InvalidArgumentError(
            with_nearest(f"question must be one of {', '.join(QUESTIONS)}, found {question!r}", question, QUESTIONS)
        )
    if query.tape.consumed:
        raise TapeConsumedError
    if question in ("hessian", "hvp"):
        cost = _second_order(query, question)
    else:
        cost, _ = _first_order(Counter(), query, question)
    seconds = None if speed is None else speed.seconds(cost.work, cost.written, cost.ops)
    return CostEstimate(
        question,
        cost.rows,
        cost.passes,
        cost.ops,
        cost.work[WorkKind.PRODUCTS] + cost.work[WorkKind.LOOPS],
        cost.work[WorkKind.ELEMENTS],
        cost.answer_bytes,
        cost.peak_bytes,
        cost.functions,
        seconds,
    )


@dataclass
class _Cost:
    """What passes take, as in `CostEstimate`; `work`: what they compute, by kind; `written`: all results' elements."""

    rows: int = 0
    passes: int = 0
    ops: int = 0
    work: dict[WorkKind, int] = field(default_factory=lambda: dict.fromkeys(WorkKind, 0))
    written: int = 0
    answer_bytes: int = 0
    peak_bytes: int = 0
    functions: int = 0

    def then(self, following: _Cost, nbytes: int) -> None:
        """Adds passes that follow while `nbytes` of the earlier ones stay."""
        self.rows += following.rows
        self.passes += following.passes
        self.ops += following.ops
        self.work = {kernel: amount + following.work[kernel] for kernel, amount in self.work.items()}
        self.written += following.written
        self.peak_bytes = max(self.peak_bytes, nbytes + following.peak_bytes)
        self.functions = max(self.functions, following.functions)


def _first_order(counter: Counter, query: GradientQuery, question: str) -> tuple[_Cost, dict[Any, Any]]:
    """The cost of a gradient or of a Jacobian, and the derivatives of one pass by the uids of the sources."""
    rows, answer = _rows(query, question)
    reached, functions = _pass(counter, query)
    if not reached:
        return _Cost(rows, functions=functions), reached
    answer_bytes = sum(nbytes for source, nbytes in zip(query.sources, answer, strict=True) if source.uid in reached)
    passes, peak = 1, max(counter.peak, answer_bytes)
    if question != "gradient":
        row = peak_bytes(query.tape, [target.uid for target in query.targets], query.source_uids)
        bound = BOUND if query.max_bytes is None else query.max_bytes
        size = max(1, min(rows, bound // row, rows if query.chunk_size is None else query.chunk_size))
        passes, peak = -(-rows // size), answer_bytes + size * row
    work = {kernel: amount * rows for kernel, amount in counter.work.items()}
    written = counter.written * rows
    return _Cost(rows, passes, counter.ops * passes, work, written, answer_bytes, peak, functions), reached


def _second_order(query: GradientQuery, question: str) -> _Cost:
    """The cost of the gradient, which the tape records, and of its derivatives: all rows of them, or their sum."""
    with query.tape.aside():
        counter = Counter(query.tape)
        cost, reached = _first_order(counter, query, "gradient")
        first = [densify(reached[source.uid]).value for source in query.sources if source.uid in reached]
        reached.clear()
        if question == "hvp":
            following, _ = _first_order(Counter(), query.gradient_of(first), "gradient")
            cost.then(following, counter.live)
            cost.answer_bytes = following.answer_bytes
            return cost
        cost.answer_bytes = 0
        for derivative in first:
            following, _ = _first_order(Counter(), query.gradient_of([derivative]), "jacobian")
            cost.then(following, counter.live + cost.answer_bytes)
            cost.answer_bytes += following.answer_bytes
        return cost


def _rows(query: GradientQuery, question: str) -> tuple[int, list[int]]:
    """How many cotangents go through the tape, and the bytes of each source's derivative."""
    if question == "gradient":
        return 1, [source.spec.nbytes for source in query.sources]
    if len(query.targets) != 1:
        raise InvalidArgumentError(f"a {question} has one target, found {len(query.targets)}")
    [target] = query.targets
    rows = target.spec.size
    if question == "batch_jacobian":
        if len(query.sources) != 1:
            raise InvalidArgumentError(f"a batch_jacobian has one source, found {len(query.sources)}")
        check_examples(target.spec.shape, query.sources[0].spec.shape)
        rows = rows // max(1, target.spec.shape[0])
    return rows, [rows * source.spec.nbytes for source in query.sources]


def _pass(counter: Counter, query: GradientQuery) -> tuple[dict[Any, Any], int]:
    """The derivatives of the sources that a pass reaches, and how many of the program's functions it meets."""
    starts = [(target.uid, counter.value(target.spec)) for target in query.targets if target.spec.differentiable]
    walk = backward_pass(query.tape, starts, query.source_uids, Operands(counter), declarations=query.declarations)
    stops: list[Stop] = []

    def answer(stop: Stop) -> InputCotangents:
        stops.append(stop)
        return [counter.value(spec) if spec.differentiable else None for spec in stop.bound.specs]

    return driven(walk, answer), len(stops)
