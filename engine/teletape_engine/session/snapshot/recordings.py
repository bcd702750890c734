"""What records, as rows: calls, tapes with what they keep, accumulators, provenance logs; and the same read again.

A call is written as its op, specs and attributes, and its rules are bound again; a node as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.attributes import plain
from teletape_engine.catalogue.binding import Bound, CallPlan, Select, TapeCall, bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import UnimplementedError
from teletape_engine.functions.function import Function
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import (
    LENGTH,
    CallRecords,
    Event,
    LoopRecords,
    PlannedCall,
    PlannedLoop,
    Record,
    Records,
    Return,
    ValueRead,
    ValueReads,
)
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid
from teletape_engine.session.snapshot.values import ValueReader, ValueWriter, number_of, number_row, spec_of, spec_row
from teletape_engine.session.state import State

_TABLES: Final = ("texts", "calls", "plans", "templates", "logs", "tapes", "accumulators")


class RecordingWriter(ValueWriter):
    """Gives calls, tapes, accumulators and logs their rows, and everything in them its position."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.rows |= {table: [] for table in _TABLES}

    def _once(self, item: Any, table: str, row: Callable[[Any], Any]) -> int:
        """The position of an item in a table; its row is written when it is met first."""
        position = self.position(item, table)
        if position is None:
            position = self.meet(item, table)
            self.rows[table][position] = row(item)
        return position

    # ---------------------------------------------------------------------------------------------------------- calls
    def where(self, where: Any) -> Any:
        """A call site: a text by its identity, since its bytes are counted so; None stays."""
        if where is None:
            return None
        if isinstance(where, Return):
            return [self.where(where.left), self.where(where.back), where.common]
        return self._once(where, "texts", str)

    def call(self, call: TapeCall) -> int:
        """The position of a call."""
        return self._once(call, "calls", _call_row)

    def _plan(self, plan: CallPlan) -> int:
        return self._once(plan, "plans", lambda plan: [self.call(plan.bound), plan.mask, [*plan.picks]])

    def columns(self, nodes: Sequence[NodeTuple]) -> list[list[Any]]:
        """Nodes by column."""
        plan, uids, uid, operand, where = self._plan, self.uids, self.uid, self.operand, self.where
        return [
            [plan(node[0]) for node in nodes],
            [uids(node[1]) for node in nodes],
            [uid(node[2]) for node in nodes],
            [[operand(value) for value in node[3]] for node in nodes],
            [where(node[4]) for node in nodes],
        ]

    # ----------------------------------------------------------------------------------------------- tapes and the like
    def tape(self, tape: Tape) -> int:
        """The position of a tape."""
        return self._once(tape, "tapes", self._tape_row)

    def _tape_row(self, tape: Tape) -> dict[str, Any]:
        return {
            "persistent": tape.persistent,
            "watch_accessed": tape.watch_accessed,
            "replayable": tape.replayable,
            "structure": self.columns(tape.structure()) if tape.consumed else None,
            "nodes": self.columns(tape.nodes),
            "tracked": self.uids(tape.tracked),
            "leaves": self.uids(tape.leaves),
            "variables": [self.variable(variable) for variable in tape.variables.values()],
            "kinds": [tape.unregistered, tape.sparse, tape.heavy],
            "turns": [[how, self.uid(uid)] for how, uid in tape.turns],
            "declined": [[self.call(call), i] for call, i in tape.declined],
            "logs": [self._log(log) for log in tape.logs],
        }

    def accumulator(self, accumulator: Accumulator) -> int:
        """The position of an accumulator."""
        return self._once(accumulator, "accumulators", self._accumulator_row)

    def _accumulator_row(self, accumulator: Accumulator) -> list[Any]:
        return [
            [self.uid(uid), self.operand(tangent), self.operand(value)] for uid, tangent, value in accumulator.entries()
        ]

    def context(self, executor: Executor) -> list[Any]:
        """The row of a context: what is active there, what was read, its log."""
        context = executor.context
        opened = [
            ["tape", self.tape(entry)] if isinstance(entry, Tape) else ["accumulator", self.accumulator(entry)]
            for entry in context.opened()
        ]
        reads = [[self.uid(uid), version, self.value(value)] for uid, (version, value) in context.by_variable.items()]
        return [opened, reads, self._log(context.provenance.records)]

    # ----------------------------------------------------------------------------------------------------------- logs
    def _log(self, log: Records) -> int:
        return self._once(log, "logs", self._records)

    def _records(self, records: Iterable[Record]) -> list[Any]:
        return [
            [self._what(what), self.uids(inputs), self.uid(output), self.where(where)]
            for what, inputs, output, where in records
        ]

    def _what(self, what: Any) -> Any:
        if isinstance(what, TapeCall):
            return self.call(what)
        if isinstance(what, Event):
            return what.value
        template = self._once(what.template, "templates", self._template_row)
        names = [None if name is None else [self.uid(name[0]), self.where(name[1])] for name in what.variables]
        row = [template, self.uids(what.values), names, self.uids(what.new)]
        if isinstance(what, PlannedCall):
            return [*row, self._records(what.notes)]
        elements = [[number, self.uid(uid), self.call(cut)] for number, uid, cut in what.elements]
        return [*row, what.iterations, elements]

    def _template_row(self, template: CallRecords | LoopRecords) -> list[Any]:
        row = [self._records(template.records), self.uids(template.values), self.uids(template.variables)]
        if isinstance(template, CallRecords):
            return ["call", *row, self.uids(template.new), self.uid(template.first)]
        return ["loop", *row, self.uids(template.next)]

    def value_reads(self, reads: ValueReads) -> list[list[Any]]:
        """What was read, in order; of one element by the number, of more by size and hash."""
        numbers, arrays = reads.tables()
        return [
            [self._read(read) for read in reads.log],
            [[*number_row(number), *self._read(read)] for number, read in numbers.items()],
            [[*key, *self._read(read)] for key, read in arrays.items()],
        ]

    def _read(self, read: ValueRead) -> list[Any]:
        return [self.uid(read.uid), self.where(read.where), self.uid(read.at)]


class RecordingReader(ValueReader):
    """Makes calls, tapes, accumulators and logs of their rows."""

    def __init__(
        self,
        state: State,
        buffers: Sequence[HostArray],
        facts: Mapping[str, Any],
        functions: Mapping[str, Function],
    ) -> None:
        super().__init__(state, buffers, facts, functions)
        self._texts: list[str] = facts["texts"]
        self._calls = [_call_of(*row) for row in facts["calls"]]
        self._plans = [_plan_of(self._calls[call], mask, picks) for call, mask, picks in facts["plans"]]
        self._templates: list[Any] = []
        self._templates += [self._template(*row) for row in facts["templates"]]
        self._logs = [self._log(rows) for rows in facts["logs"]]
        self.tapes = [self._tape(**row) for row in facts["tapes"]]
        self.accumulators = [self._accumulator(rows) for rows in facts["accumulators"]]

    def where(self, row: Any) -> Any:
        """The call site of a row."""
        if row.__class__ is list:
            left, back, common = row
            return Return(self.where(left), self.where(back), common)
        return None if row is None else self._texts[row]

    def nodes(self, columns: Sequence[Sequence[Any]]) -> list[NodeTuple]:
        """The nodes of `columns`."""
        plans, operand, where = self._plans, self.operand, self.where
        return [
            (plans[plan], tuple(inputs), output, tuple([operand(value) for value in residuals]), where(site))
            for plan, inputs, output, residuals, site in zip(*columns, strict=True)
        ]

    def _tape(
        self,
        *,
        persistent: bool,
        watch_accessed: bool,
        replayable: bool,
        structure: Sequence[Sequence[Any]] | None,
        nodes: Sequence[Sequence[Any]],
        tracked: Sequence[Uid],
        leaves: Sequence[Uid],
        variables: Sequence[int],
        kinds: tuple[bool, int, bool],
        turns: Sequence[tuple[str, Uid]],
        declined: Sequence[tuple[int, int]],
        logs: Sequence[int],
    ) -> Tape:
        tape = Tape(persistent=persistent, watch_accessed=watch_accessed, replayable=replayable)
        if structure is not None:
            tape.nodes = self.nodes(structure)
            tape.consume()
        tape.nodes = self.nodes(nodes)
        tape.tracked, tape.leaves = dict.fromkeys(tracked), {*leaves}
        tape.variables = {self.variables[at].uid: self.variables[at] for at in variables}
        tape.unregistered, tape.sparse, tape.heavy = kinds
        tape.turns = [(how, uid) for how, uid in turns]
        tape.declined = {(self._calls[call], i) for call, i in declined}
        tape.logs = [self._logs[log] for log in logs]
        return tape

    def _accumulator(self, rows: Iterable[tuple[Uid, Any, Any]]) -> Accumulator:
        accumulator = Accumulator(self._state.declarations.no_gradient)
        accumulator.restore([(uid, self.operand(tangent), self.operand(value)) for uid, tangent, value in rows])
        return accumulator

    def context(self, executor: Executor, row: Sequence[Any]) -> None:
        """Makes a context that has nothing what is written of one."""
        opened, reads, log = row
        both: dict[str, Sequence[Any]] = {"tape": self.tapes, "accumulator": self.accumulators}
        executor.context.restore(
            [both[kind][at] for kind, at in opened],
            [(uid, version, self.values[value]) for uid, version, value in reads],
        )
        executor.provenance.records = self._logs[log]

    # ----------------------------------------------------------------------------------------------------------- logs
    def _log(self, rows: Iterable[Any]) -> Records:
        log = Records(maxlen=LENGTH)
        log.extend(self._records(rows))
        return log

    def _records(self, rows: Iterable[Any]) -> list[Record]:
        what, where = self._what, self.where
        return [(what(each), tuple(inputs), output, where(site)) for each, inputs, output, site in rows]

    def _what(self, row: Any) -> Any:
        if row.__class__ is int:
            return self._calls[row]
        if row.__class__ is str:
            return Event(row)
        template, values, names, new, *rest = row
        variables = tuple([None if name is None else (name[0], self.where(name[1])) for name in names])
        parts = (self._templates[template], tuple(values), variables, tuple(new))
        if len(rest) == 1:
            return PlannedCall(*parts, tuple(self._records(rest[0])))
        iterations, elements = rest
        return PlannedLoop(*parts, iterations, tuple([(i, uid, self._calls[cut]) for i, uid, cut in elements]))

    def _template(
        self, kind: str, records: Iterable[Any], values: Any, variables: Any, new: Any, *first: Uid
    ) -> CallRecords | LoopRecords:
        """A template: its own records are those of an interpreted run, and need no other one."""
        parts = (tuple(self._records(records)), tuple(values), tuple(variables), tuple(new))
        return CallRecords(*parts, *first) if kind == "call" else LoopRecords(*parts)

    def value_reads(self, reads: ValueReads, rows: Sequence[Sequence[Any]]) -> None:
        """Adds what was read."""
        numbers, arrays = reads.tables()
        log, by_number, by_hash = rows
        reads.log.extend([self._read(*row) for row in log])
        numbers.update({number_of(kind, text): self._read(*row) for kind, text, *row in by_number})
        arrays.update({(size, checksum): self._read(*row) for size, checksum, *row in by_hash})

    def _read(self, uid: Uid, where: Any, at: Uid) -> ValueRead:
        return ValueRead(uid, self.where(where), at)


def _call_row(call: TapeCall) -> list[Any]:
    if isinstance(call, CustomTapeCall):
        specs, outputs = map(spec_row, call.specs), map(spec_row, call.outputs)
        return ["custom", [*specs], [*outputs], call.tag, call.label]
    if isinstance(call, Select):
        return ["select", _call_row(call.call), call.index]
    attrs = {name: plain(value) for name, value in call.attrs.items()}
    return ["op", call.name, [spec_row(spec) for spec in call.specs], attrs]


def _call_of(kind: str, *row: Any) -> TapeCall:
    if kind == "custom":
        specs, outputs, tag, label = row
        return CustomTapeCall([spec_of(spec) for spec in specs], [spec_of(spec) for spec in outputs], tag, label)
    if kind == "select":
        selected_from, index = row
        return Select(_call_of(*selected_from), index)
    name, specs, attrs = row
    op = CATALOGUE.named(name)
    return bind(op, tuple([spec_of(spec) for spec in specs]), op.attrs(attrs))


def _plan_of(call: TapeCall, mask: int, picks: Sequence[int]) -> CallPlan:
    """The plan of a call.

    Raises:
        UnimplementedError: Its rules need other values than the tape has kept.
    """
    plan = call.plan(mask) if isinstance(call, Bound) else CallPlan.without_rules(call)
    if plan.picks != tuple(picks):
        raise UnimplementedError(
            f"a tape was recorded by another version of Teletape, which keeps other values for the gradient of op "
            f"{call.name!r}: end the tape with that version"
        )
    return plan
