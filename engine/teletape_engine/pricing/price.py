"""The price of a batch: what it would need, compute and answer, in a session or in one that has nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Batch, Command, FieldKind, Id, OnFailure, schema
from teletape_engine.commands.results import Failure
from teletape_engine.pricing.copying import hollow_copy
from teletape_engine.pricing.handlers import PRICED
from teletape_engine.pricing.state import PricingState
from teletape_engine.recording.progress import TimeBudget, no_progress
from teletape_engine.recording.values import Literal, Value, Variable
from teletape_engine.session.batches import run_batch
from teletape_engine.session.state import State
from teletape_engine.spec import Spec

_UNNAMED: Final = "a value that has no id"


@dataclass(frozen=True)
class PricedResult:
    """What a command makes under an id.

    Attributes:
        index: The position of the command in the batch.
        id: The id.
        kind: tensor, variable or slices.
        spec: Its shape and dtype; of a sparse gradient those of the dense array.
        rows: Of a sparse gradient, else None.
        exact: Whether the shape is certain; else it is the largest that it can be.
    """

    index: int
    id: Id
    kind: str
    spec: Spec
    rows: int | None
    exact: bool


@dataclass(frozen=True)
class Doubt:
    """Something that depends on values that are not known.

    Attributes:
        index: The position of the command in the batch.
        on: The id of the value, or what it is.
        what: What depends on it.
    """

    index: int
    on: str
    what: str


@dataclass(frozen=True)
class Price:
    """What a batch would take.

    Attributes:
        used: Bytes in use before it, as a session counts them.
        peak: The most bytes of arrays that there are at a time, in addition to those before: results, what tapes keep,
            what ops need while they run. An upper bound.
        after: Bytes in use after it.
        limit: Bytes that may be in use; None: there is no limit.
        ops: Ops that run, those of gradients and loops too.
        work: What they compute, by kernel.
        written: Elements of their results.
        up: Bytes of the tensors that the commands have.
        down: Bytes of the tensors that are fetched.
        results: What the commands make, in their order.
        doubts: What depends on values.
        failure: What the batch would fail with; None: it would not.
    """

    used: int
    peak: int
    after: int
    limit: int | None
    ops: int
    work: Mapping[WorkKind, int]
    written: int
    up: int
    down: int
    results: tuple[PricedResult, ...]
    doubts: tuple[Doubt, ...]
    failure: Failure | None

    @property
    def is_known(self) -> bool:
        """Whether it is certain what becomes of the batch."""
        failure = self.failure
        return failure is None or (failure.details.get("priced", True) and not self.doubts)


def price(
    state: State,
    batch: Batch,
    *,
    budget: TimeBudget | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Price:
    """Returns the price of a batch in a session, which stays as it is.

    Its tensors may be `SpecArray`s: shape and dtype alone.

    Args:
        state: Of the session.
        batch: What is priced.
        budget: The time that a request has: an op that takes longer is a failure. None: there is no limit.
        cancelled: Called between the commands; once it returns true, the price is that of a batch that fails so.
    """
    copy = hollow_copy(state)
    taker = _Notes(copy)
    used, live = copy.memory.exact, copy.ledger.live
    copy.ledger.peak = live
    batch = replace(batch, client=0, seq=0, on_failure=OnFailure.FREE)
    with copy.backend.quiet():
        copy.monitor.begin(cancelled, no_progress, len(batch.commands), budget)
        answer = run_batch(copy, batch, cancelled, handlers=taker.handlers)
    ledger = copy.ledger
    return Price(
        used,
        ledger.peak - live,
        copy.bytes_in_use(),
        copy.memory.limit,
        ledger.ops,
        ledger.work,
        ledger.written,
        sum(map(_sent, batch.commands)),
        copy.fetched,
        tuple(taker.results),
        tuple(taker.doubts),
        answer.failure,
    )


class _Notes:
    """Notes what each command has made, and what of it depends on values.

    Args:
        state: In which the commands run.

    Attributes:
        handlers: What each command does, and what of it is noted.
        results: What the commands have made.
        doubts: What depends on values.
    """

    def __init__(self, state: PricingState) -> None:
        self.results: list[PricedResult] = []
        self.doubts: list[Doubt] = []
        self._state = state
        self.handlers = {kind: self._noting(handler) for kind, handler in PRICED.items()}

    def _noting(self, handler: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def run(state: PricingState, command: Command) -> None:
            handler(state, command)
            if state.ledger.doubts:
                self._note_doubts(command)
            index, entries, results = state.index, state.entries, self.results
            for name in commands.outputs(command):
                entry = entries.get(name)
                if entry.__class__ is Value:
                    results.append(PricedResult(index, name, "tensor", entry.spec, None, entry.array.exact))
                elif isinstance(entry, Variable):
                    results.append(PricedResult(index, name, "variable", entry.spec, None, entry.value.array.exact))
                elif isinstance(entry, SlicesValue):
                    rows, exact = entry.indices.spec.size, entry.indices.array.exact
                    results.append(PricedResult(index, name, "slices", entry.dense, rows, exact))

        return run

    def _note_doubts(self, command: Command) -> None:
        """Names the values that something depends on."""
        state = self._state
        named = {getattr(entry, "uid", None): name for name, entry in state.entries.items()}
        named |= {entry.value.uid: name for name, entry in state.entries.items() if isinstance(entry, Variable)}
        for uid, what in state.ledger.doubts:
            doubt = Doubt(state.index, str(named.get(uid, _UNNAMED)), what)
            if doubt not in self.doubts:
                self.doubts.append(doubt)
        state.ledger.doubts.clear()


#: By verb the fields in which a command can have tensors.
_TENSORS: Final = {
    verb: [name for name, field in fields.items() if field.kind in (FieldKind.INPUT, FieldKind.TENSOR, FieldKind.STEP)]
    for verb, fields in schema.FIELDS.items()
}


def _sent(command: Command) -> int:
    """Bytes of the tensors that a command has."""
    return sum([_bytes_of(getattr(command, name)) for name in _TENSORS[command.verb]])


def _bytes_of(value: Any) -> int:
    kind = value.__class__
    if kind is tuple:
        return sum([_bytes_of(each) for each in value if each.__class__ not in (str, int)])
    if kind is Literal:
        return value.array.nbytes if value.spec.shape else 0
    if isinstance(value, np.ndarray):
        return value.nbytes
    return _sent(value) if isinstance(value, Command) else 0  # a step of a function
