"""A session on a server: ops are recorded here by their specs, and leave in batches when a value is needed.

The recording thread seals a batch; one sender thread delivers them in order, one in flight at a time, and recording
goes on meanwhile. A failed command poisons what was made since; its cause is raised once, at the next read.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from teletape import environment, logs
from teletape.call_site import Where, call_site_text, caller
from teletape.errors import ConnectionFailed, SessionEndedError, TeletapeError, error_for
from teletape.sessions import custom_backward, progress
from teletape.sessions.http import Connection
from teletape.sessions.programs import Programs
from teletape.sessions.recorder import Follower, Handle, Name, id_of, query_fields
from teletape.sessions.session import Session
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue import describe
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.checking.gradient_check import CONSUMED
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.commands.results import Answer, Fetched, Result, SlicesArrays, Told
from teletape_engine.derivatives.finite_differences import Report, Settings
from teletape_engine.derivatives.gradient import gradient_pass
from teletape_engine.derivatives.query import GradientFunction, GradientQuery, InputCotangents
from teletape_engine.errors import TapeStateError
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Outcome
from teletape_engine.ops.assign import change_of, check_places
from teletape_engine.programs.program import Program
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import ProgramGradient, record_custom
from teletape_engine.recording.memory import Footprint, ends
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable, kind_of
from teletape_engine.spec import Spec

_MOST_COMMANDS: Final = 8192  #: A buffer of so many commands leaves without being asked.
_MOST_BYTES: Final = 64 << 20  #: Or one with so many bytes of tensors.
_FULL: Final = 512  #: At a step's end, a buffer of so many commands leaves if nothing is in flight.
_REMEMBERED: Final = 1024  #: Constants of so many bytes are kept here too, so that reading them asks nobody.
_EXIT_PATIENCE: Final = 10.0  #: Seconds that the last batch gets when the program ends.


@dataclass(slots=True)
class _Sealed:
    """A batch on its way, and where in the program its commands were recorded."""

    batch: Batch
    wheres: list[Where]
    future: Future[Answer] = field(default_factory=Future)
    lost: bool = False  # the server could not be reached: the same bytes are to be sent again


class _Sender:
    """One thread that sends, so that recording goes on. Daemon: an executor's would be joined before atexit flushes."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[tuple[Future[Answer], Callable[[], Answer]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="teletape-sender", daemon=True).start()

    def submit(self, send: Callable[[], Answer]) -> Future[Answer]:
        """Sends after what was submitted before."""
        future: Future[Answer] = Future()
        self._todo.put((future, send))
        return future

    def stop(self) -> None:
        """Ends the thread once everything submitted is sent."""
        self._todo.put(None)

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            future, send = job
            try:
                future.set_result(send())
            except BaseException as error:  # the thread that waits for the answer raises it
                future.set_exception(error)


class RemoteSession(Session):
    """A session on a server.

    Args:
        url: The server's address.
        api_key: Your key there.
        device: Where the session computes; None: the server's default.
        lazy: Whether commands wait until a value is read.
        connection: Instead of one made from url and key.

    Attributes:
        id: The session's id on the server.
        lazy: As given.
    """

    local = False

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        device: str | None = None,
        lazy: bool = True,
        connection: Connection | None = None,
    ) -> None:
        super().__init__()
        self._http = connection or Connection(url, api_key)
        self._compare_catalogues()
        made = self._http.json("POST", "/v1/sessions", {} if device is None else {"device": device})
        self.id: str = made["id"]
        attached = self._http.json("POST", f"/v1/sessions/{self.id}/attach")
        self._client: int = attached["client"]
        self._seq: int = attached["seq"]
        self.next_id: Callable[[], int] = itertools.count(attached["first_id"]).__next__
        self.lazy = lazy
        self._programs = Programs()
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._buffer: list[Command] = []
        self._wheres: list[Where] = []
        self._nbytes = 0
        self._context: Follower | None = None
        self._released: deque[int] = deque()
        self._flight: _Sealed | None = None
        self._sender = _Sender()
        self._poisoned: dict[Id, TeletapeError] = {}
        self._failure: TeletapeError | None = None
        self._where = environment.call_sites()
        self._reads: Counter[str] = Counter()
        self.batches = 0
        atexit.register(self._at_exit)

    def _compare_catalogues(self) -> None:
        """Warns when the server's ops are not these: what is foreseen here may then be refused there, never wrong."""
        info = self._http.json("GET", "/v1/info")
        if info["catalogue"] != describe.digest():
            logs.get_logger().warning(
                "the server's ops (version %s, catalogue %s) are not this SDK's (catalogue %s): gradients that differ "
                "in structure are refused as structure_mismatch; install the same version on both sides",
                info["version"],
                info["catalogue"],
                describe.digest(),
            )

    # ------------------------------------------------------------------------------------------------------ recording
    def new_name(self) -> Name:
        """An id that this session has never used, released when the name is no longer held."""
        return Name(self.next_id(), self._released)

    def recorder(self) -> Follower:
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    def _new_recorder(self) -> Follower:
        made = Follower(self)
        made.locate, made.departures = caller if self._where else None, self.departures
        self.trails.append(made.trail)
        return made

    def emit(self, recorder: Follower, command: Command, nbytes: int = 0, where: Where = None) -> None:
        """Writes down one command; the buffer leaves when it has grown too large, or at once without laziness."""
        self._check_open()
        with self._lock:
            if self._poisoned and (cause := self._poison_in(command)) is not None:
                self._poison(command, cause)
                return
            self._record(recorder, command, where)
            self._nbytes += nbytes
            if not self.lazy:
                self.sync()
            elif len(self._buffer) >= _MOST_COMMANDS or self._nbytes >= _MOST_BYTES:
                self._land()
                self._seal()

    def _record(self, recorder: Follower, command: Command, where: Where = None) -> None:
        if self._context is not recorder:
            self._context = recorder
            self._append(commands.ContextSwitch(recorder.id), None)
        self._append(command, (caller() if where is None else where) if self._where else None)

    def _append(self, command: Command, where: Where) -> None:
        self._buffer.append(command)
        self._wheres.append(where)

    def _poison_in(self, command: Command) -> TeletapeError | None:
        """Why a value command is not sent: it uses what was never made, and what it makes is not made either."""
        if command.structural:
            return None
        return next((self._poisoned[one] for one in commands.mentions(command) if one in self._poisoned), None)

    def _poison(self, command: Command, cause: TeletapeError) -> None:
        for one in commands.outputs(command):
            self._poisoned[one] = cause

    def constant(self, array: HostArray) -> Handle:
        spec = Spec.of(array.shape, array.dtype)
        if array.dtype == object:  # strings never leave the program
            return Handle(spec, None, array)
        name = self.new_name()
        recorder = self.recorder()
        self.emit(recorder, commands.Constant(name.id, array), array.nbytes)
        handle = Handle(spec, name, array if array.nbytes <= _REMEMBERED else None)
        recorder.arrived(handle, array)
        return handle

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        if value.spec.dtype == object:  # strings never leave the program
            return Variable(Handle(value.spec, None, value.host), trainable=trainable, name=name)
        made = self.new_name()
        self.emit(self.recorder(), commands.MakeVariable(made.id, value.name.id, trainable, name))
        variable = Variable(Handle(value.spec, made, value.host), trainable=trainable, name=name)
        self.recorder().assigned(variable, value.uid, "set")
        return variable

    def assign(self, variable: Variable, value: Any, mode: str, indices: Any = None) -> None:
        if variable.spec.dtype == object:
            variable.assign(Handle(variable.spec, None, self._changed_strings(variable, value, mode, indices)))
            return
        name: Name = variable.value.name
        given = value if isinstance(value, Literal) else value.name.id
        at = None if indices is None else indices.name.id
        if indices is not None and indices.host is not None:  # refused on the program's own line where that is possible
            check_places(np, indices.host, variable.spec.shape, mode)
        self.emit(self.recorder(), commands.Assign(name.id, given, mode, at))
        variable.assign(Handle(variable.spec, name))  # its numbers are not known here: the assignment may be dropped
        self.recorder().assigned(variable, value.uid, mode)

    def _changed_strings(self, variable: Variable, value: Handle, mode: str, indices: Handle | None) -> HostArray:
        if indices is None:
            assert value.host is not None
            return value.host
        array = np.array(variable.value.host)
        change_of(np, array.shape, value.host, self.fetch(indices), mode)(array)
        return array

    def flow(
        self, command: type[Command], programs: Sequence[Program], inputs: Sequence[Any], **fields: Any
    ) -> list[Any]:
        return self._programs.run(self, command, programs, inputs, fields)

    def failed(self, name: Id) -> bool:
        """Whether what was to be made under this id was not."""
        return name in self._poisoned

    def part(self, slices: SlicesValue, which: str) -> Handle:
        handle: Handle = slices.values if which == "values" else slices.indices
        if handle.name is None:
            handle.name = self.new_name()
            self.emit(self.recorder(), commands.SlicesComponent(slices.name.id, which, handle.name.id))
        return handle

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open_tape(self, tape: Tape) -> None:
        recorder = self.recorder()
        if not recorder.tapes:
            self._step_ends()
        recorder.open(tape)
        tape.name = self.new_name()
        self.emit(recorder, commands.TapeOpen(tape.name.id, tape.persistent, tape.watch_accessed, tape.replayable))

    def watch(self, tape: Tape, values: Sequence[Any]) -> None:
        super().watch(tape, values)
        ids = tuple([id_of(value) for value in values if value.spec.dtype != object])
        self.emit(self.recorder(), commands.TapeWatch(tape.name.id, ids))

    def pause_tape(self, tape: Tape) -> None:
        super().pause_tape(tape)
        self.emit(self.recorder(), commands.TapePause(tape.name.id))

    def resume_tape(self, tape: Tape) -> None:
        super().resume_tape(tape)
        self.emit(self.recorder(), commands.TapeResume(tape.name.id))

    def reset_tape(self, tape: Tape) -> None:
        super().reset_tape(tape)
        self.emit(self.recorder(), commands.TapeReset(tape.name.id))

    def _step_ends(self) -> None:
        """Where an outermost tape opens a step begins: a well-filled buffer leaves, if nothing is under way."""
        with self._lock:
            if len(self._buffer) >= _FULL and (self._flight is None or self._flight.future.done()):
                self._land()
                self._seal()

    def gradient(self, query: GradientQuery) -> list[Any]:
        query = _numeric(query)
        recorder = self.recorder()
        walk = gradient_pass(recorder, query)
        try:
            with recorder.inside():
                stop = next(walk)
        except StopIteration as done:
            return self._gradient(recorder, query, done.value)
        return custom_backward.run(self, recorder, walk, stop, query)

    def _gradient(self, recorder: Follower, query: GradientQuery, derivatives: list[Any]) -> list[Any]:
        tape, targets, sources, seeds, unconnected, more = query_fields(query)
        outputs = self._named(derivatives)
        kinds = tuple([kind_of(derivative).value for derivative in derivatives])
        self.emit(recorder, commands.Gradient(tape, targets, sources, outputs, seeds, unconnected, kinds, more))
        return derivatives

    def _named(self, derivatives: Sequence[Any]) -> tuple[Id | None, ...]:
        """Gives a new id to each derivative that there is."""
        for derivative in derivatives:
            if derivative is not None:
                derivative.name = self.new_name()
        return tuple([None if derivative is None else id_of(derivative) for derivative in derivatives])

    def question(
        self,
        compute: Callable[[Recorder], list[Any]],
        command: Callable[[Sequence[Any], Sequence[str]], Command],
    ) -> list[Any]:
        recorder = self.recorder()
        with recorder.inside():
            found = compute(recorder)
        outputs = self._named(found)
        self.emit(recorder, command(outputs, [kind_of(one).value for one in found]))
        return found

    def open_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]]) -> None:
        recorder = self.recorder()
        recorder.accumulate(accumulator)
        accumulator.name = self.new_name()
        self.emit(recorder, commands.AccumulatorOpen(accumulator.name.id, *_ids(pairs)))

    def close_accumulator(self, accumulator: Accumulator) -> None:
        super().close_accumulator(accumulator)
        self.emit(self.recorder(), commands.AccumulatorClose(accumulator.name.id))

    def resume_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        super().resume_accumulator(accumulator, pairs)
        self.emit(self.recorder(), commands.AccumulatorResume(accumulator.name.id, *_ids(pairs)))

    def jvp(self, accumulator: Accumulator, targets: Sequence[Any]) -> list[Any]:
        found = super().jvp(accumulator, targets)
        asked = []
        for target, one in zip(targets, found, strict=True):
            if one is not None and one.name is None and one.spec.dtype != object:
                one.name = self.new_name()
                asked.append((id_of(target), one.name.id))
        if asked:
            names, made = zip(*asked, strict=True)
            kinds = ("dense",) * len(asked)
            self.emit(self.recorder(), commands.Jvp(accumulator.name.id, names, made, predicted=kinds))
        return found

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], found: list[Explanation]
    ) -> list[Explanation]:
        open_ = [i for i, one in enumerate(found) if one.outcome is Outcome.GRADIENT]
        if tape.consumed:
            return [one.without_numbers() for one in found]
        if open_:
            targets = [one for one in targets if one.spec.dtype != object]
            names = tuple([id_of(one) for one in targets]), tuple([id_of(sources[i]) for i in open_])
            told = self.ask(self.recorder(), commands.Explain(tape.name.id, *names))
            assert isinstance(told, Told)
            nodes = tape.nodes
            for i, facts in zip(open_, told.facts["explanations"], strict=True):
                numeric = Explanation.from_facts(facts)  # the server knows no call sites and no names
                node = numeric.node
                where = None if node is None or node >= len(nodes) else nodes[node][4]
                found[i] = found[i].with_numbers(numeric, where)
        return found

    def diagram(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> dict[str, Any]:
        facts = super().diagram(tape, targets, sources, most)
        if tape.consumed:
            return facts | {"bytes": 0}
        told = self.ask(self.recorder(), commands.TapeGraph(tape.name.id, *_names(targets, sources), most))
        assert isinstance(told, Told)
        theirs = {one["id"]: one for one in told.facts["nodes"]}
        for node in facts["nodes"]:  # lines and names are this side's, bytes the server's
            node["bytes"] = theirs.get(node["id"], node)["bytes"]
        return facts | {"bytes": told.facts["bytes"]}

    def drawer(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> Callable[[], str] | None:
        asked = zip(("target", "source"), _names(targets, sources), strict=True)
        query = [("format", "svg"), ("nodes", most), *((kind, name) for kind, names in asked for name in names)]
        path = f"/v1/sessions/{self.id}/tapes/{tape.name.id}/graph"
        return lambda: self._http.text(path, query)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        if tape.consumed:
            raise TapeStateError(CONSUMED)
        given = {name: value for name, value in settings._asdict().items() if value is not None}
        command = commands.TapeCheckGradients(tape.name.id, *_names(targets, sources), given)
        told = self.ask(self.recorder(), command)
        assert isinstance(told, Told)
        return Report.from_facts(told.facts)

    def footprint(self, tape: Tape) -> Footprint:
        if tape.consumed:
            return Footprint(0, 0)
        self.sync()  # a batch that is being executed holds the tensors that came with it
        # What only the tape holds on this side has names on the other, which the tape's end releases too.
        also_released = [one.id for one, held in ends(tape, _named) if not held and one.__class__ is Name]
        told = self.ask(self.recorder(), commands.TapeDescribe(tape.name.id, np.array(also_released, np.int64)))
        assert isinstance(told, Told)
        return Footprint(told.facts["bytes"], told.facts["frees"])

    def declare_no_gradient(self, op_type: str) -> None:
        super().declare_no_gradient(op_type)
        self.emit(self.recorder(), commands.Declare(op_type))

    def register_gradient(self, op_type: str, function: GradientFunction) -> None:
        super().register_gradient(op_type, function)
        self.emit(self.recorder(), commands.Declare(registered=op_type))

    def custom(
        self, inputs: Sequence[Any], outputs: Sequence[Any], label: str, function: Callable[..., InputCotangents]
    ) -> Sequence[Any]:
        recorder, tag = self.recorder(), self.next_id()
        where = recorder.here()
        if record_custom(recorder.tapes, inputs, outputs, tag=tag, label=label, function=function, where=where):
            names = tuple([id_of(one) for one in inputs]), tuple([id_of(one) for one in outputs])
            self.emit(recorder, commands.Custom(*names, tag, label))
        return outputs

    def stand_in(self, tag: Any, gradient: ProgramGradient, others: Sequence[Any]) -> Name:
        held, program = self.new_name(), self._programs.id(self, gradient.program)
        names = tuple([id_of(one) for one in others])
        self.emit(self.recorder(), commands.CustomFunction(held.id, tag, program, names, gradient.has_gradient))
        return held

    # -------------------------------------------------------------------------------------------------------- reading
    def fetch(self, value: Any) -> HostArray:
        if value.host is not None:
            self.departures.note(value.uid, value.host, caller() if self._where else None)
            return value.host  # type: ignore[no-any-return]  # a host array
        where = caller()
        self._reads[call_site_text(where)] += 1
        found = self.ask(self.recorder(), commands.Fetch(value.name.id))
        assert isinstance(found, Fetched)
        assert not isinstance(found.array, SlicesArrays)
        value.host = found.array
        self.departures.note(value.uid, found.array, where if self._where else None)
        return found.array

    def fetch_all(self, values: Sequence[Any]) -> list[HostArray]:
        unknown = list({one.name.id: one for one in values if one.host is None}.values())
        if len(unknown) > 1:
            self._reads[call_site_text(caller())] += 1
            found = self.ask_all(self.recorder(), [commands.Fetch(one.name.id) for one in unknown])
            for one, fetched in zip(unknown, found, strict=True):
                assert isinstance(fetched, Fetched)
                assert not isinstance(fetched.array, SlicesArrays)
                one.host = fetched.array
        return super().fetch_all(values)

    def ask(self, recorder: Follower, command: Command) -> Result:
        """Sends all that is recorded and the command behind it, and waits for what it gives."""
        return self.ask_all(recorder, [command])[-1]

    def ask_all(self, recorder: Follower, questions: Sequence[Command]) -> Sequence[Result]:
        """As `ask`, of several commands that give one result each."""
        self._check_open()
        with self._lock:
            self._land()
            self._raise_failure()
            for command in questions:
                cause = self._poison_in(command)
                if cause is not None:
                    self._poison(command, cause)
                    raise cause.surfaced()
            for command in questions:
                self._record(recorder, command)
            self._seal()
            answer = self._land()
            self._raise_failure()
        assert answer is not None
        return answer.results[-len(questions) :]

    def sync(self) -> None:
        with self._lock:
            self._check_open()
            self._land()
            if self._buffer or self._released:
                self.round_trip()
            self._raise_failure()

    def round_trip(self) -> None:
        """Sends what there is, also nothing, and waits for the answer."""
        with self._lock:
            self._check_open()
            self._land()
            self._seal()
            self._land()
            self._raise_failure()

    def summary(self) -> str:
        """What this session has asked of the server: requests, and the reads by the line that made them."""
        lines = [f"session {self.id}: {self._http.requests} requests, {self.batches} batches"]
        lines += [f"  {count} reads at {where}" for where, count in self._reads.most_common()]
        return "\n".join(lines)

    @property
    def requests(self) -> int:
        """HTTP requests answered so far."""
        return self._http.requests

    # -------------------------------------------------------------------------------------------------------- sending
    def _seal(self) -> None:
        """Closes the buffer as a batch and hands it to the sender. Nothing may be in flight."""
        releases = []
        while self._released:
            releases.append(self._released.popleft())
            self._poisoned.pop(releases[-1], None)
        batch = Batch(tuple(self._buffer), tuple(releases), self._client, self._seq, secrets.token_bytes(16))
        self._flight = _Sealed(batch, self._wheres)
        self._buffer, self._wheres, self._nbytes, self._context = [], [], 0, None
        self._seq += 1
        self.batches += 1
        self._fly(self._flight)

    def _fly(self, sealed: _Sealed) -> None:
        sealed.lost = True  # until it is on its way: an interrupt may come between any two lines
        sealed.future = self._sender.submit(lambda: self._send(sealed.batch))
        sealed.lost = False

    def _send(self, batch: Batch) -> Answer:
        frame = wire.encode_batch(batch)
        body = self._http.frame(f"/v1/sessions/{self.id}/batch", frame.buffers, frame.length, wire.FRAME_TYPE)
        try:
            answer, _ = wire.decode_answer(memoryview(body))
        except wire.WireError as error:  # executed all the same: it is not to be taken for a refusal
            raise ConnectionFailed(f"the server's answer cannot be read: {error}") from error
        return answer

    def _land(self) -> Answer | None:
        """Waits for the batch in flight, and takes in what it says.

        An interrupt, or a server that does not answer, leaves the batch in flight: the next call asks again for it.
        """
        sealed = self._flight
        if sealed is None:
            return None
        if sealed.lost:
            self._fly(sealed)
        try:
            answer = progress.wait(sealed.future, self._far)
        except TeletapeError as error:
            if isinstance(error, ConnectionFailed | wire.CorruptFrameError):
                sealed.lost = True
                raise
            self._flight = None
            self._refused(error, sealed)
            return None
        except Exception:  # a defect here or in a library: what the server has done is not known
            sealed.lost = True
            raise
        self._flight = None
        if answer.failure is not None:
            failure = answer.failure
            at = sealed.wheres[failure.index]
            told = [f"op {failure.op!r}"] if failure.op else []
            told += [f"recorded at {call_site_text(at)}"] if at else []
            text = failure.message + ("\n  " + ", ".join(told) if told else "")
            cause = error_for(failure.code, text, op=failure.op, **failure.details)
            self._fail(cause, sealed, failure.index)
        return answer

    def _far(self) -> Mapping[str, Any] | None:
        """How far the batch in flight is."""
        facts = self._http.look(f"/v1/sessions/{self.id}")
        return None if facts is None else facts.get("running")

    def cancel(self) -> None:
        """Stops what the server computes for this session; the next read raises CancelledError."""
        self._check_open()
        self._http.json("POST", f"/v1/sessions/{self.id}/cancel")

    def _refused(self, error: TeletapeError, sealed: _Sealed) -> None:
        """The server took nothing of the batch: its number is free again, and what opens and closes is sent anew."""
        if isinstance(error, SessionEndedError):
            self.closed = error.message
        self._fail(error, sealed, 0)
        self._seq = sealed.batch.seq
        structural = [
            (command, where)
            for command, where in zip(sealed.batch.commands, sealed.wheres, strict=True)
            if command.structural
        ]
        self._buffer[:0] = [command for command, _ in structural]
        self._wheres[:0] = [where for _, where in structural]
        self._released.extend(one for one in sealed.batch.releases if isinstance(one, int))

    def _fail(self, cause: TeletapeError, sealed: _Sealed, index: int) -> None:
        """Poisons what was made from the failed command on, and drops what was to make more."""
        for command in sealed.batch.commands[index:]:
            if not command.structural:
                self._poison(command, cause)
        recorded = list(zip(self._buffer, self._wheres, strict=True))
        self._buffer, self._wheres = [], []
        for command, where in recorded:
            if command.structural:
                self._append(command, where)
            else:
                self._poison(command, cause)
        for one in sealed.batch.releases:  # nobody can ask for these any more
            self._poisoned.pop(one, None)
        if self._failure is None:
            self._failure = cause

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure.surfaced()

    def _check_open(self) -> None:
        if self.closed is not None:
            raise SessionEndedError(f"this session has ended: {self.closed}; tf.connect makes a new one")
        if os.getpid() != self._pid:
            raise SessionEndedError("this session belongs to the parent process: connect again in the child")

    def close(self) -> None:
        """Delivers what is left and ends the session on the server; raises what failed meanwhile."""
        if os.getpid() != self._pid:
            return
        try:
            if self.closed is None:
                self.sync()
        finally:
            try:
                if self.closed is None and self._flight is None:  # else it has ended, or cannot be reached
                    with contextlib.suppress(SessionEndedError):
                        self._http.json("DELETE", f"/v1/sessions/{self.id}")
            finally:
                self.closed = self.closed or "it was closed by the program"
                self._sender.stop()
                self._http.close()
                atexit.unregister(self._at_exit)

    def _at_exit(self) -> None:
        if self.closed is None and os.getpid() == self._pid:
            closing = threading.Thread(target=self._close_quietly, daemon=True)
            closing.start()
            closing.join(_EXIT_PATIENCE)

    def _close_quietly(self) -> None:
        try:
            self.close()
        except Exception as error:
            logs.get_logger().error("the last commands were not delivered: %s", error)


def _names(targets: Sequence[Any], sources: Sequence[Any]) -> tuple[tuple[Id, ...], tuple[Id, ...]]:
    """The ids of handles and variables; strings are not on the server."""
    first, second = (tuple([id_of(one) for one in many if one.spec.dtype != object]) for many in (targets, sources))
    return first, second


def _named(thing: Any) -> Any:
    """What a handle or a variable of this side keeps alive: in the end its name."""
    if thing.__class__ is Handle:
        return thing.name
    return thing.value if thing.__class__ is Variable else None


def _ids(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The server's ids of primals and of their tangents."""
    known = [(id_of(primal), id_of(tangent)) for primal, tangent in pairs if primal.spec.dtype != object]
    return tuple([primal for primal, _ in known]), tuple([tangent for _, tangent in known])


def _numeric(query: GradientQuery) -> GradientQuery:
    """Without the targets that are strings: these are not on the server."""
    numeric = [i for i, target in enumerate(query.targets) if target.spec.dtype != object]
    if len(numeric) == len(query.targets):
        return query
    weights = query.output_gradients
    return replace(
        query,
        targets=[query.targets[i] for i in numeric],
        output_gradients=None if weights is None else [weights[i] for i in numeric],
    )
