"""A session on a server: ops are recorded here by their specs, and sent in batches when a value is read.

Each method records on this side (specs, tapes) and emits the command for the server; `sending/channel.py` sends the
commands. Long because it has one method for each kind of command.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import ref

import numpy as np

from teletape.core.network.http import Connection
from teletape.core.network.options import ConnectOptions, check_timeout
from teletape.core.program.call_site import CallSite, caller
from teletape.core.program.read_counts import ReadCounts
from teletape.core.sessions import custom_backward
from teletape.core.sessions.custom_backward import name_all
from teletape.core.sessions.ending import read_last_values
from teletape.core.sessions.functions import RemoteFunctions
from teletape.core.sessions.predictions import as_answered, passes
from teletape.core.sessions.read_ahead import ReadAhead, used
from teletape.core.sessions.recorder import Handle, RemoteRecorder, foreign_handle, id_of, query_fields, without_strings
from teletape.core.sessions.sending.batch_buffer import Name
from teletape.core.sessions.sending.channel import LATE, Channel
from teletape.core.sessions.sending.event_loops import in_thread
from teletape.core.sessions.sending.strands import Place, strand_of
from teletape.core.sessions.sending.uploader import Uploader
from teletape.core.sessions.session import Session, SparseQuestion
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.checking.tape_check import CONSUMED
from teletape_engine.commands import Command, Id
from teletape_engine.commands.results import Facts, Fetched, Kinds, Result, SlicesArrays
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.gradient import gradient_pass
from teletape_engine.derivatives.query import GradientFunction, GradientQuery, InputCotangents
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.derivatives.reports.estimate import CostEstimate
from teletape_engine.derivatives.reports.statistics import Statistics, statistics
from teletape_engine.derivatives.walks import has_stops
from teletape_engine.errors import DeadlineExceededError, TapeStateError
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Outcome
from teletape_engine.functions.function import Function
from teletape_engine.locks import ReentrantLock
from teletape_engine.ops.assign import change_of, check_positions
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import CallerGradient, FunctionGradient, record_custom
from teletape_engine.recording.memory import Footprint, ends
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable, kind_of
from teletape_engine.spec import DTYPES, Spec

if TYPE_CHECKING:  # it is imported when it is used
    from teletape.core.profiling.pending import Pending
    from teletape.core.profiling.profile import Profile

_REMEMBERED: Final = 1024  #: The largest number of bytes of a constant that is stored here too, for reads.


class RemoteSession(Session):
    """A session on a server.

    Args:
        options: The server's address, and the options of the connection and of the session.

    Attributes:
        id: The session's id on the server.
        channel: Its way to the server.
    """

    local = False

    def __init__(self, options: ConnectOptions) -> None:
        super().__init__()
        self.channel = Channel(Connection(options))
        self.id = self.channel.session
        self._functions = RemoteFunctions(self.channel)
        self._reads = ReadCounts()
        self._read_ahead = ReadAhead(self.channel.failed, self.channel.strands.ended)
        self._uploader: Uploader | None = None
        self._uploader_lock = ReentrantLock()

    def recorder(self) -> RemoteRecorder:
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    def _new_recorder(self) -> RemoteRecorder:
        recorder = RemoteRecorder(self.channel, self._read_ahead)
        recorder.provenance.locate, recorder.provenance.value_reads = (
            caller if self.channel.call_sites else None,
            self.value_reads,
        )
        self.logs.append(recorder.provenance.records)
        return recorder

    # --------------------------------------------------------------------------------------------------------- values
    def constant(self, array: HostArray) -> Handle:
        spec = Spec.of(array.shape, array.dtype)
        if array.dtype == object:  # strings never leave the program
            return Handle(spec, None, array)
        recorder = self.recorder()
        name = recorder.new_name()
        recorder.emit(commands.Constant(name.id, array), array.nbytes)
        handle = Handle(spec, name, array if array.nbytes <= _REMEMBERED else None)
        recorder.provenance.note_constant(handle, array)
        return handle

    def sent_ahead(self, arrays: Sequence[HostArray]) -> list[Name]:
        uploader = self._uploader
        if uploader is None:
            with self._uploader_lock:
                if self._uploader is None:
                    self._uploader = Uploader(self.channel)
                uploader = self._uploader
        return uploader.send(arrays)

    def constant_ahead(self, array: HostArray, name: Name) -> Handle:
        handle = Handle(Spec.of(array.shape, array.dtype), name)
        self.recorder().provenance.note_constant(handle, array)
        return handle

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        if value.spec.dtype == object:  # strings never leave the program
            return Variable(Handle(value.spec, None, value.host), trainable=trainable, name=name)
        recorder = self.recorder()
        remote_name = recorder.new_name()
        recorder.emit(commands.MakeVariable(remote_name.id, value.name.id, trainable, name))
        variable = Variable(Handle(value.spec, remote_name, value.host), trainable=trainable, name=name)
        recorder.provenance.note_assignment(variable, value.uid, "set")
        self._read_ahead.continuations.note(remote_name.id, ref(variable))
        return variable

    def assign(self, variable: Variable, value: Any, mode: str, indices: Any = None) -> None:
        if variable.spec.dtype == object:
            variable.assign(Handle(variable.spec, None, self._changed_strings(variable, value, mode, indices)))
            return
        name: Name = variable.value.name
        sent = value if isinstance(value, Literal) else value.name.id
        index = None if indices is None else indices.name.id
        if indices is not None and indices.host is not None:  # if possible it is refused on the program's own line
            check_positions(np, indices.host, variable.spec.shape, mode)
        recorder = self.recorder()
        self._read_ahead.continuations.forget()
        # Its elements are unknown from here on: the assignment may be poisoned, or interrupted on the next line.
        variable.assign(Handle(variable.spec, name))
        recorder.emit(commands.Assign(name.id, sent, mode, index))
        variable.value = Handle(variable.spec, name)  # another thread may have read the old value since then
        self._read_ahead.note(variable, strand_of(recorder.place))
        recorder.provenance.note_assignment(variable, value.uid, mode)

    def _changed_strings(self, variable: Variable, value: Handle, mode: str, indices: Handle | None) -> HostArray:
        if indices is None:
            assert value.host is not None
            return value.host
        array = np.array(variable.value.host)
        change_of(np, array.shape, value.host, self.fetch(indices), mode)(array)
        return array

    def fetch(self, value: Any) -> HostArray:
        where = caller()
        if value.ahead is not None:
            used(value)
        if value.host is None:
            self._read([value], where)
        self.value_reads.note(value.uid, value.host, where if self.channel.call_sites else None)
        return value.host  # type: ignore[no-any-return]  # a host array

    def fetch_all(self, values: Sequence[Any]) -> list[HostArray]:
        unknown = list({value.name.id: value for value in values if value.host is None}.values())
        if len(unknown) > 1:
            self._read(unknown, caller())
        return super().fetch_all(values)

    def row_counts(self, where: CallSite) -> tuple[int, Callable[[int], None]]:
        site = self._reads.site(where)
        return site.rows, partial(setattr, site, "rows")

    def made_together(self, values: Sequence[Any]) -> None:
        self.recorder().note_together(values)

    async def fetch_later(self, values: Sequence[Any]) -> list[HostArray]:
        unknown = list({value.name.id: value for value in values if value.host is None}.values())
        if unknown:
            where = caller()
            read, place, fetches, expected = self._reading(unknown, where)
            self._note_read(read, place, await self.channel.ask_later(place, fetches, where, expected))
        return super().fetch_all(values)

    def _read(self, values: Sequence[Any], where: CallSite) -> None:
        """Fetches the elements of values in one round trip."""
        read, place, fetches, expected = self._reading(values, where)
        self._note_read(read, place, self.channel.ask(place, fetches, where, expected))

    def _reading(self, values: Sequence[Any], where: CallSite) -> tuple[list[Any], Place, list[Command], int]:
        """Returns the values that a read fetches, their place, the questions, and the expected bytes.

        The read is counted by the line of the program that reads.
        """
        recorder: RemoteRecorder = self._thread.recorder
        site, continuations = self._reads.note(where), self._read_ahead.continuations
        place = recorder.reading
        strand, foreseen = place if place.__class__ is int else strand_of(place), []
        if len(values) == 1 and not recorder.context.active:
            foreseen = continuations.foreseen(values[0], site, place, strand, self.channel, recorder.silent.new_value)
        else:
            continuations.leave(strand)
        read = [*values, *foreseen, *self._read_ahead.chosen(values, site.in_vain, strand)]
        fetches: list[Command] = [commands.Fetch(value.name.id) for value in read]
        return read, place, fetches, sum([value.spec.nbytes for value in read])

    def _note_read(self, values: Sequence[Any], place: Place, results: Sequence[Result]) -> None:
        for value, fetched in zip(values, results, strict=True):
            assert isinstance(fetched, Fetched)
            assert not isinstance(fetched.array, SlicesArrays)
            value.host = fetched.array
        if self._read_ahead.continuations.recorded:
            self._read_ahead.continuations.arrived(place)

    def slices_component(self, slices: SlicesValue, which: str) -> Handle:
        handle: Handle = slices.values if which == "values" else slices.indices
        if handle.name is None:
            recorder = self.recorder()
            handle.name = recorder.new_name()
            recorder.emit(commands.SlicesComponent(slices.name.id, which, handle.name.id))
        return handle

    def run_command(
        self, command: type[Command], functions: Sequence[Function], inputs: Sequence[Any], **fields: Any
    ) -> list[Any]:
        return self._functions.run(self.recorder(), command, functions, inputs, fields)

    def publish(
        self,
        name: str,
        function: Function,
        inputs: Sequence[str],
        weights: Mapping[str, Any],
        outputs: Mapping[str, int],
        facts: Mapping[str, Any],
    ) -> dict[str, Any]:
        return self._functions.publish(self.recorder(), name, function, inputs, weights, outputs, facts)

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open_tape(self, tape: Tape) -> None:
        if tape.name is not None:
            super().open_tape(tape)
            self.recorder().emit(commands.TapeResume(tape.name.id))
            return
        self._thread.enter_task()
        recorder = self.recorder()
        if not recorder.context.tapes:
            self.channel.step_ends()
        tape.name = recorder.new_name()
        try:
            recorder.context.open(tape)
            recorder.emit(commands.TapeOpen(tape.name.id, tape.persistent, tape.watch_accessed, tape.replayable))
        except BaseException:  # after an interrupt the program has no open tape, so none stays open
            tape.name = None
            if tape in recorder.context.tapes:
                super().pause_tape(tape)
            raise

    def watch(self, tape: Tape, values: Sequence[Any]) -> None:
        super().watch(tape, values)
        self.recorder().emit(commands.TapeWatch(tape.name.id, _ids(values)))

    def pause_tape(self, tape: Tape) -> None:
        super().pause_tape(tape)
        self.recorder().emit(commands.TapePause(tape.name.id))

    def reset_tape(self, tape: Tape) -> None:
        super().reset_tape(tape)
        self.recorder().emit(commands.TapeReset(tape.name.id))

    def gradient(self, query: GradientQuery) -> list[Any]:
        query = without_strings(query)
        recorder, is_asked = self.recorder(), passes(query.tape, self.channel.differing)
        walk = gradient_pass(recorder.silent, query)
        try:
            stop = next(walk)
        except StopIteration as end:
            derivatives: list[Any] = end.value
            tape, targets, sources, cotangents, unconnected, retain_tape = query_fields(query)

            def command(outputs: tuple[Id | None, ...], kinds: tuple[str, ...] | None) -> Command:
                return commands.Gradient(tape, targets, sources, outputs, cotangents, unconnected, kinds, retain_tape)

            specs = [source.spec for source in query.sources]
            derivatives = self._named(recorder, derivatives, command, specs, is_asked=is_asked)
        else:
            derivatives = custom_backward.run(recorder, walk, stop, query)
        self._answers_together(derivatives)
        return derivatives

    def gradient_statistics(self, query: GradientQuery) -> list[Statistics | None]:
        if has_stops(query.tape, self.declarations):  # the program's own gradient functions run here
            with np.errstate(all="ignore"):
                return [self._statistics_here(gradient) for gradient in self.gradient(query)]
        tape, targets, sources, cotangents, _, _ = query_fields(query)
        facts = self._facts(commands.GradientStatistics(tape, targets, sources, cotangents))["statistics"]
        return [None if entry["kind"] == "none" else Statistics.from_facts(entry) for entry in facts]

    def estimate(self, query: GradientQuery, question: str) -> CostEstimate:
        tape, targets, sources, _, _, _ = query_fields(query)
        command = commands.Estimate(tape, targets, sources, question, query.max_bytes, query.chunk_size)
        return CostEstimate.from_facts(self._facts(command))

    def _statistics_here(self, gradient: Any) -> Statistics | None:
        """Returns the statistics of a gradient whose elements are fetched."""
        if gradient is None:
            return None
        if isinstance(gradient, SlicesValue):
            values, indices = self.fetch_all([self.slices_component(gradient, part) for part in ("values", "indices")])
            return statistics(np, SparseGradient(values, indices, gradient.dense))
        return statistics(np, self.fetch(gradient))

    def run_question(
        self,
        tape: Tape,
        compute: Callable[[Recorder], list[Any]],
        command: Callable[[tuple[Any, ...], tuple[str, ...] | None], Command],
    ) -> list[Any]:
        recorder, is_asked = self.recorder(), passes(tape, self.channel.differing)
        answers = recorder.silently(compute)
        answers = self._named(recorder, answers, command, [None] * len(answers), is_asked=is_asked)
        self._answers_together(answers)
        return answers

    def _named(
        self,
        recorder: RemoteRecorder,
        derivatives: list[Any],
        command: Callable[[tuple[Any, ...], tuple[str, ...] | None], Command],
        specs: Sequence[Spec | None],
        *,
        is_asked: bool,
    ) -> list[Any]:
        """Emits the command that computes derivatives, and returns them with their names.

        Args:
            recorder: This thread's recorder.
            derivatives: This process's predictions.
            command: Returns the command for the ids of the derivatives and the predicted kinds; None: no prediction.
            specs: The specs of dense derivatives that were not predicted; None: not known.
            is_asked: Whether the server's answer decides about their kinds.
        """
        if not is_asked:
            outputs = name_all(recorder, derivatives)
            recorder.emit(command(outputs, tuple([kind_of(derivative).value for derivative in derivatives])))
            return derivatives
        names = [recorder.new_name() for _ in derivatives]
        answer = recorder.ask(command(tuple([name.id for name in names]), None))
        assert isinstance(answer, Kinds)
        return list(map(partial(as_answered, recorder), derivatives, specs, answer.kinds, names))

    def _answers_together(self, answers: Sequence[Any]) -> None:
        """Notes the dense derivatives of one question as values of one call."""
        self.made_together([answer for answer in answers if answer.__class__ is Handle])

    def sparse_derivative(self, question: SparseQuestion) -> tuple[list[Any], dict[str, Any]]:
        recorder = self.recorder()
        names = [recorder.new_name() for _ in range(3)] if recorder.silently(question.connected) else []
        answer = recorder.ask(question.command([name.id for name in names] or [None, None, None]))
        assert isinstance(answer, Facts)
        facts = answer.facts
        if facts["kind"] == "none":
            return [], facts
        entries, numbers = (facts["entries"],), DTYPES[facts["index_dtype"]]
        first = entries if question.format == "coo" else (facts["shape"][0] + 1,)
        parts = [
            recorder.silent.new_value(spec)
            for spec in (Spec.of(first, numbers), Spec.of(entries, numbers), question.source.with_shape(entries))
        ]
        for part, name in zip(parts, names, strict=True):
            part.name = name
        self.made_together(parts)
        return parts, facts

    # --------------------------------------------------------------------------------------------------- accumulators
    def open_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        super().open_accumulator(accumulator, pairs)
        recorder, command = self.recorder(), commands.AccumulatorResume
        if accumulator.name is None:
            accumulator.name, command = recorder.new_name(), commands.AccumulatorOpen
        recorder.emit(command(accumulator.name.id, *_pair_ids(pairs)))

    def close_accumulator(self, accumulator: Accumulator) -> None:
        super().close_accumulator(accumulator)
        self.recorder().emit(commands.AccumulatorClose(accumulator.name.id))

    def jvp(self, accumulator: Accumulator, targets: Sequence[Any]) -> list[Any]:
        recorder = self.recorder()
        tangents = super().jvp(accumulator, targets)
        asked_ids = []
        for target, tangent in zip(targets, tangents, strict=True):
            if tangent is not None and tangent.name is None and tangent.spec.dtype != object:
                tangent.name = recorder.new_name()
                asked_ids.append((id_of(target), tangent.name.id))
        if asked_ids:
            target_ids, outputs = zip(*asked_ids, strict=True)
            kinds = ("dense",) * len(asked_ids)
            recorder.emit(commands.Jvp(accumulator.name.id, target_ids, outputs, predicted=kinds))
            self._answers_together(tangents)
        return tangents

    # --------------------------------------------------------------------------------------------------- explanations
    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], explanations: list[Explanation]
    ) -> list[Explanation]:
        if tape.consumed:
            return [each.without_numbers() for each in explanations]
        connected = [i for i, each in enumerate(explanations) if each.outcome is Outcome.GRADIENT]
        if connected:
            source_ids = tuple([id_of(sources[i]) for i in connected])
            facts = self._facts(commands.Explain(tape.name.id, _ids(targets), source_ids))["explanations"]
            for i, numeric in zip(connected, map(Explanation.from_facts, facts), strict=True):
                node = numeric.node
                where = None if node is None or node >= len(tape.nodes) else tape.nodes[node][4]  # known only here
                explanations[i] = explanations[i].with_numbers(numeric, where)
        return explanations

    def diagram(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> dict[str, Any]:
        facts = super().diagram(tape, targets, sources, most)
        if tape.consumed:
            return facts | {"bytes": 0}
        remote = self._facts(commands.TapeGraph(tape.name.id, _ids(targets), _ids(sources), most))
        sizes = {node["id"]: node["bytes"] for node in remote["nodes"]}
        for node in facts["nodes"]:  # call sites and names are known here, bytes on the server
            node["bytes"] = sizes.get(node["id"], node["bytes"])
        return facts | {"bytes": remote["bytes"]}

    def drawer(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> Callable[[], str] | None:
        query = [("format", "svg"), ("nodes", most)]
        query += [("targets", name) for name in _ids(targets)] + [("sources", name) for name in _ids(sources)]
        path = f"/v1/sessions/{self.id}/tapes/{tape.name.id}/graph"
        return lambda: self.channel.http.text(path, query)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        if tape.consumed:
            raise TapeStateError(CONSUMED)
        fields = {name: value for name, value in settings._asdict().items() if value is not None}
        command = commands.TapeCheckGradients(tape.name.id, _ids(targets), _ids(sources), fields)
        return Report.from_facts(self._facts(command))

    def footprint(self, tape: Tape) -> Footprint:
        if tape.consumed:
            return Footprint(0, 0)
        self.sync()  # a running batch has references to the tensors in it
        # The tape's end also releases the names of values that only the tape refers to on this side.
        also_released = [end.id for end, in_use in ends(tape, _kept_alive) if not in_use and end.__class__ is Name]
        facts = self._facts(commands.TapeDescribe(tape.name.id, np.array(also_released, np.int64)))
        return Footprint(facts["bytes"], facts["frees"])

    def _facts(self, question: Command) -> Any:
        """Returns the facts in the server's answer to a question."""
        result = self.recorder().ask(question)
        assert isinstance(result, Facts)
        return result.facts

    # ----------------------------------------------------------------------------------------------- custom gradients
    def declare_no_gradient(self, op_type: str) -> None:
        super().declare_no_gradient(op_type)
        self.recorder().emit(commands.Declare(op_type))

    def register_gradient(self, op_type: str, function: GradientFunction) -> None:
        super().register_gradient(op_type, function)
        self.recorder().emit(commands.Declare(registered=op_type))

    def record_custom_call(
        self, inputs: Sequence[Any], outputs: Sequence[Any], label: str, function: Callable[..., InputCotangents]
    ) -> Sequence[Any]:
        recorder, tag = self.recorder(), self.channel.next_id()
        where = recorder.provenance.here()
        if record_custom(
            recorder.context.tapes,
            inputs,
            outputs,
            tag=tag,
            label=label,
            gradient=[CallerGradient(function)],
            where=where,
        ):
            ids = tuple([id_of(value) for value in inputs]), tuple([id_of(value) for value in outputs])
            recorder.emit(commands.Custom(*ids, tag, label))
        return outputs

    def replace_gradient(self, tag: Any, gradient: FunctionGradient, others: Sequence[Any]) -> Name:
        recorder = self.recorder()
        name, function = recorder.new_name(), self._functions.id(recorder, gradient.function)
        inputs = tuple([id_of(value) for value in others])
        recorder.emit(commands.CustomFunction(name.id, tag, function, inputs, gradient.has_gradient))
        return name

    # ------------------------------------------------------------------------------------------------------- lifetime
    @property
    def closed(self) -> str | None:
        """Why the session can no longer be used, or None."""
        return self.channel.closed

    @property
    def requests(self) -> int:
        """The number of HTTP requests answered so far."""
        return self.channel.http.requests

    @property
    def batches(self) -> int:
        """The number of batches sent so far."""
        return self.channel.batches

    def summary(self) -> str:
        """Returns the number of requests, and of reads by the program's lines."""
        lines = [f"session {self.id}: {self.requests} requests, {self.batches} batches"]
        lines += [f"  {count} reads at {where}" for where, count in self._reads.by_line()]
        return "\n".join(lines)

    def pending(self, *values: Any) -> Pending:
        from teletape.core.profiling.pending import Pending, Waiting  # when it is first used

        channel = self.channel
        recorded = [getattr(value.recorded, "value", value.recorded) for value in values]  # of a variable what it holds
        unknown = [value for value in recorded if value.host is None]
        coming, following = self._would_come(unknown) if unknown else ([], [])
        specs = [[value.spec for value in values] for values in (unknown, coming)]
        whys = "it is read", "it comes along", "it is computed and comes along, as the last time"
        reads = [
            Waiting(len(read), "fetch", sum(spec.nbytes for spec in read), why)
            for read, why in zip([*specs, following], whys, strict=True)
            if read
        ]
        return Pending(
            channel.buffer.waiting(), releases=len(channel.buffer.released), computes=channel.computes, reads=reads
        )

    def _would_come(self, values: Sequence[Any]) -> tuple[list[Any], list[Spec]]:
        """Returns the values that would come along with a read of some, and the specs of those computed for it."""
        recorder = self.recorder()
        following: list[Spec] = []
        if len(values) == 1 and not recorder.context.active:
            following = self._read_ahead.continuations.would_follow(values[0], recorder.place, self.channel)
        return self._read_ahead.would_come(values, strand_of(recorder.place)), following

    @contextmanager
    def profile(self) -> Iterator[Profile]:
        from teletape.core.profiling.profile import Profile  # when it is first used

        self.sync()
        profile, buffer = Profile(self.place), self.channel.buffer
        before, buffer.profile = buffer.profile, profile
        try:
            yield profile
            profile.ending = True
            self.sync()
        finally:
            buffer.profile = before
            profile.end()

    def facts(self) -> dict[str, str]:
        """Returns facts for people, by name, without a request."""
        channel = self.channel
        facts = {
            "session": self.id,
            "server": f"{self.url}, teletape {channel.server.get('version', '?')}",
            "device": channel.device,
        }
        if self.closed is not None:
            return facts | {"ended": self.closed}
        if channel.free_bytes is not None:
            facts["memory"] = f"{channel.free_bytes / 2**20:,.0f} MiB free"
        if channel.expires_at is not None:
            end = datetime.fromtimestamp(channel.expires_at, UTC).astimezone()
            then = ", then parked" if channel.lasts else ""
            facts["until"] = f"{end:%H:%M:%S}{then}, if it is not used"
        return facts | {"requests": f"{self.requests:,}"}

    def __repr__(self) -> str:
        state = "" if self.closed is None else f", ended: {self.closed}"
        facts = self.facts()
        more = "".join(f", {facts[name]}" for name in ("device", "memory") if name in facts)
        awake = "awake " if self.channel.lasts else ""
        until = f", {awake}until {facts['until'][:8]}" if "until" in facts else ""
        return f"<RemoteSession {self.id} at {self.url}{more}{until}, {self.requests} requests{state}>"

    def _repr_html_(self) -> str:
        rows = [f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in self.facts().items()]
        return f"<table>{''.join(rows)}</table>"

    @property
    def waits(self) -> bool:
        """Whether something that may fail was recorded and not computed."""
        return self.channel.waits

    def is_alive(self) -> bool:
        return self.closed is None and self.channel.answers()

    def sync(self) -> None:
        self.channel.sync()

    def cancel(self) -> None:
        """Stops the server's work for this session; the next read raises CancelledError."""
        self.channel.cancel()

    def close(self, timeout: float | None = None) -> None:
        """Sends waiting commands and ends the session on the server; raises the error of a failed command.

        Waiting summaries of the session are written first.

        Args:
            timeout: The time limit in seconds; then the server's work is stopped, waiting commands are dropped, and the
                session ends nevertheless. None: the timeout of a read.

        Raises:
            DeadlineExceededError: It took longer.
        """
        check_timeout("timeout", timeout)
        timeout = self.options.current_timeout if timeout is None else timeout
        with self.options.with_timeout(timeout):
            try:
                if self.closed is None:
                    read_last_values(self)
            finally:
                self._leave_uploader()
                self.channel.close()

    async def sync_later(self) -> None:
        await self.channel.sync_later()

    async def aclose(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # also of trio, and as of `close`
        check_timeout("timeout", timeout)
        timeout = self.options.current_timeout if timeout is None else timeout
        with self.options.with_timeout(timeout):
            try:
                if self.closed is None and self.waits:
                    await self.channel.finish_later()
            except Exception as error:
                late = isinstance(error, DeadlineExceededError)
                await in_thread(partial(self.channel.abandon, LATE) if late else self.close)
                raise
            except BaseException:  # the task was cancelled
                await self._abandon_later()
                raise
            await in_thread(self.close)

    def abandon(self) -> None:
        self._leave_uploader()
        self.channel.abandon()

    async def _abandon_later(self) -> None:
        try:
            await in_thread(self.abandon)
        except BaseException:  # it is cancelled again: without the event loop it takes two seconds at most
            self.abandon()
            raise

    def detach(self) -> None:
        """Sends waiting commands and leaves a session with a name, which goes on; raises failures."""
        if self.closed is None:
            read_last_values(self)
        self._leave_uploader()
        if self.channel.closed is None:
            self.channel.detach()

    def _leave_uploader(self) -> None:
        uploader, self._uploader = self._uploader, None
        if uploader is not None:  # its tensors are not needed any more
            uploader.leave()

    @property
    def joined(self) -> bool:
        """Whether the session existed before this program connected to it."""
        return self.channel.joined

    @property
    def url(self) -> str:
        return self.channel.http.url

    @property
    def options(self) -> ConnectOptions:
        return self.channel.http.options

    @property
    def device_name(self) -> str:
        job = urlsplit(self.channel.http.url).netloc or "unix"
        kind, _, number = self.channel.device.partition(":")
        return f"/job:{job}/replica:0/task:0/device:{kind.upper()}:{number or 0}"

    @property
    def place(self) -> str:
        """The address of the session, for messages."""
        ended = "" if self.closed is None else f", which has ended ({self.closed})"
        client = f" (client {self.channel.client})" if self.channel.stays else ""
        return f"session {self.id}{client} at {self.channel.http.url}{ended}"

    def variables(self) -> list[Any]:
        """Returns the variables that other programs of this session made, as `tf.Variable`s, oldest first.

        After `tf.connect(url, session="mine")` in a restarted notebook these are the variables of the notebook before.
        They stay on the server when this program drops them.
        """
        return [
            Session.as_variable(Variable(foreign_handle(fact), trainable=fact["trainable"], name=fact["name"]), self)
            for fact in self.channel.foreign("variables")
        ]

    def tensors(self) -> list[Any]:
        """Returns the tensors that other programs of this session made and still use, as `tf.Tensor`s, oldest first."""
        return [Session.as_tensor(foreign_handle(fact), self) for fact in self.channel.foreign("tensors")]


def _ids(values: Sequence[Any]) -> tuple[Id, ...]:
    """Returns the ids of handles and variables, except strings, which are not on the server."""
    return tuple([id_of(value) for value in values if value.spec.dtype != object])


def _pair_ids(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the ids of primals and of their tangents."""
    ids = [(id_of(primal), id_of(tangent)) for primal, tangent in pairs if primal.spec.dtype != object]
    return tuple([primal for primal, _ in ids]), tuple([tangent for _, tangent in ids])


def _kept_alive(value: Any) -> Any:
    """Returns the object that a handle or a variable keeps alive on this side: its name."""
    if value.__class__ is Handle:
        return value.name
    return value.value if value.__class__ is Variable else None
