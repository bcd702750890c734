"""A session on a server: ops are recorded here by their specs, and leave in batches when a value is needed.

The recording thread seals a batch; one sender thread delivers them in order, one in flight at a time, and recording
goes on meanwhile. A failed command poisons what was made since; its cause is raised once, at the next read.
"""

from __future__ import annotations

import atexit
import os
import queue
import secrets
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final, TypeAlias

import numpy as np

from teletape import logs, wire
from teletape.connection import Connection
from teletape.convert import HostArray
from teletape.errors import ConnectionFailed, SessionEndedError, TeletapeError, error_for
from teletape.session import Session
from teletape_engine import commands, describe
from teletape_engine.attrs import NO_ATTRS, Attrs
from teletape_engine.backward import Presence
from teletape_engine.commands import Batch, Command
from teletape_engine.errors import PoisonedError
from teletape_engine.graph import Literal, Tape, Variable, new_uid
from teletape_engine.op import Bound, Kind, Op, Slices
from teletape_engine.session import Answer, Fetched, Made, SlicesArrays
from teletape_engine.spec import INTEGER, DType, Spec
from teletape_engine.tape import Recorder, SlicesValue, translated

_MOST_COMMANDS: Final = 8192  #: A buffer of so many commands leaves without being asked.
_MOST_BYTES: Final = 64 << 20  #: Or one with so many bytes of tensors.
_FULL: Final = 512  #: At a step's end, a buffer of so many commands leaves if nothing is in flight.
_REMEMBERED: Final = 1024  #: Constants of so many bytes are kept here too, so that reading them asks nobody.
_JUDGED: Final = 1 << 20  #: Ops of a price up to so many bytes are tried here for values that they refuse.
_EXIT_PATIENCE: Final = 10.0  #: Seconds that the last batch gets when the program ends.

Where: TypeAlias = tuple[CodeType, int] | None


class Handle:
    """A value on the server: its spec, and its id there (None while nothing outside a rule has needed one).

    Attributes:
        uid: Which value it is to this side's tapes.
        wire: Its id in the session.
        host: The numbers, if they are known here.
    """

    __slots__ = ("host", "spec", "uid", "wire")

    def __init__(self, spec: Spec, wire: int | None = None, host: HostArray | None = None) -> None:
        self.spec, self.wire, self.host = spec, wire, host
        self.uid = new_uid()

    def alias(self, uid: int) -> Handle:
        """The same value under another uid."""
        made = Handle(self.spec, self.wire, self.host)
        made.uid = uid
        return made


class _Name:
    """Keeps an id alive on the server: when this is collected, the id goes into the next batch's releases."""

    __slots__ = ("_id", "_released")

    def __init__(self, wire_id: int, released: deque[int]) -> None:
        self._id, self._released = wire_id, released

    def __del__(self) -> None:
        self._released.append(self._id)


class Follower(Recorder):
    """A thread's recorder on this side: runs nothing, follows specs, and writes commands."""

    bare = Presence()

    def __init__(self, session: RemoteSession) -> None:
        super().__init__()
        self.session = session
        self.id = session.next_id()
        self._inside = False  # inside a rule or a composite: the server does the same by itself

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Handle:
        if bound.op.refuses:
            _judge(bound, inputs)
        return Handle(bound.spec)

    def number(self, number: Literal, dtype: DType) -> Handle:
        return Handle(Spec.of((), dtype))

    def full(self, spec: Spec, number: int) -> Handle:
        return Handle(spec)

    def ct(self, value: Any) -> Kind:
        return Kind.DENSE

    def answer(self, ct: Any, spec: Spec) -> Any:
        if isinstance(ct, Slices):
            return SlicesValue(Handle(ct.values), Handle(ct.indices), ct.dense)
        return Handle(spec)

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        if self._inside:
            return super().apply(op, inputs, attrs, where)
        self._inside = True
        try:
            result = super().apply(op, inputs, attrs, where)
        finally:
            self._inside = False
        result.wire = self.session.next_id()
        names = tuple([one if one.__class__ is Literal else one.wire for one in inputs])
        self.session.emit(self, commands.Call(op.name, names, (result.wire,), attrs))
        if op.dynamic:
            result.spec = self.session.made_spec()
        return result

    def gradient(
        self,
        tape: Tape,
        targets: Sequence[Any],
        sources: Sequence[Any],
        *,
        seeds: Sequence[Any] | None = None,
        zeros: bool = False,
        no_gradient: Any = (),
    ) -> list[Any]:
        numeric = [i for i, one in enumerate(targets) if one.spec.dtype != object]  # strings are not on the server
        targets = [targets[i] for i in numeric]
        seeds = None if seeds is None else [seeds[i] for i in numeric]
        self._inside = True
        try:
            found = super().gradient(tape, targets, sources, seeds=seeds, zeros=zeros, no_gradient=no_gradient)
        finally:
            self._inside = False
        outputs: list[int | None] = []
        kinds = []
        for one in found:
            outputs.append(None if one is None else self.session.next_id())
            if isinstance(one, SlicesValue):
                one.name = outputs[-1]
                kinds.append("slices")
            else:
                kinds.append("none" if one is None else "dense")
                if one is not None:
                    one.wire = outputs[-1]
        self.session.emit(
            self,
            commands.Gradient(
                tape.name,
                tuple([name_of(one) for one in targets]),
                tuple([name_of(one) for one in sources]),
                tuple(outputs),
                None if seeds is None else tuple([None if one is None else name_of(one) for one in seeds]),
                "zero" if zeros else "none",
                tuple(kinds),
            ),
        )
        return found


def _judge(bound: Bound, inputs: Sequence[Any]) -> None:
    """Raises what the server would raise for values that are known here, on the program's own line.

    The forward itself judges, with zeros of no memory for the inputs that are not known.
    """
    arrays = [one.array if isinstance(one, Literal) else one.host for one in inputs]
    integers = [i for i in bound.op.refuses if bound.specs[i].dtype in INTEGER]
    if not integers or bound.price > _JUDGED or any(arrays[i] is None for i in integers):
        return
    for i, spec in enumerate(bound.specs):
        if arrays[i] is None:
            arrays[i] = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
    try:
        with np.errstate(all="ignore"):
            bound.forward(np, *arrays)
    except Exception as error:
        raise translated(error, bound) from None


def name_of(one: Any) -> int:
    """The id that the server knows a handle or a variable by."""
    return one.value.wire if isinstance(one, Variable) else one.wire  # type: ignore[no-any-return]  # ids are integers


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
        self._counter: int = attached["first_id"]
        self.lazy = lazy
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._buffer: list[Command] = []
        self._wheres: list[Where] = []
        self._nbytes = 0
        self._context: Follower | None = None
        self._released: deque[int] = deque()
        self._flight: _Sealed | None = None
        self._sender = _Sender()
        self._poisoned: dict[int, TeletapeError] = {}
        self._failure: TeletapeError | None = None
        self._where = os.environ.get("TELETAPE_WHERE", "1") != "0"
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
    def next_id(self) -> int:
        """An id that this session has never used."""
        with self._lock:
            self._counter += 1
            return self._counter

    def recorder(self) -> Follower:
        try:
            return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped
        except AttributeError:
            self._thread.recorder = made = Follower(self)
            return made

    def emit(self, recorder: Follower, command: Command, nbytes: int = 0) -> None:
        """Writes down one command; the buffer leaves when it has grown too large, or at once without laziness."""
        with self._lock:
            self._check_open()
            if self._poisoned and self._touches_poison(command):
                return
            if self._context is not recorder:
                self._context = recorder
                self._append(commands.ContextSwitch(recorder.id), None)
            self._append(command, _caller() if self._where else None)
            self._nbytes += nbytes
            if not self.lazy:
                self.sync()
            elif len(self._buffer) >= _MOST_COMMANDS or self._nbytes >= _MOST_BYTES:
                self._land()
                self._seal()

    def _append(self, command: Command, where: Where) -> None:
        self._buffer.append(command)
        self._wheres.append(where)

    def _touches_poison(self, command: Command) -> bool:
        """A value command that uses a poisoned id is not sent: what it would make is poisoned too."""
        if command.structural:
            return False
        cause = next((self._poisoned[one] for one in commands.mentions(command) if one in self._poisoned), None)
        if cause is None:
            return False
        self._poison(command, cause)
        return True

    def _poison(self, command: Command, cause: TeletapeError) -> None:
        for one in commands.outputs(command):
            assert isinstance(one, int)
            self._poisoned[one] = cause

    def constant(self, array: HostArray) -> Handle:
        spec = Spec.of(array.shape, array.dtype)
        if array.dtype == object:  # strings never leave the program
            return Handle(spec, None, array)
        handle = Handle(spec, self.next_id(), array if array.nbytes <= _REMEMBERED else None)
        assert handle.wire is not None
        self.emit(self.recorder(), commands.Put(handle.wire, array), array.nbytes)
        return handle

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        handle = Handle(value.spec, self.next_id(), value.host)
        assert handle.wire is not None
        self.emit(self.recorder(), commands.MakeVariable(handle.wire, value.wire, trainable, name))
        return Variable(handle, trainable=trainable, name=name)

    def assign(self, variable: Variable, value: Any, mode: str) -> None:
        given = value if isinstance(value, Literal) else value.wire
        self.emit(self.recorder(), commands.Assign(variable.value.wire, given, mode))
        known = value.host if mode == "set" and not isinstance(value, Literal) else None
        variable.assign(Handle(variable.spec, variable.value.wire, known))

    def keep(self, value: Any) -> _Name | None:
        wire_id = value.name if isinstance(value, SlicesValue) else name_of(value)
        return None if wire_id is None else _Name(wire_id, self._released)

    def part(self, slices: SlicesValue, which: str) -> Handle:
        handle: Handle = slices.values if which == "values" else slices.indices
        if handle.wire is None:
            handle.wire = self.next_id()
            self.emit(self.recorder(), commands.Part(slices.name, which, handle.wire))
        return handle

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open_tape(self, tape: Tape) -> _Name:
        recorder = self.recorder()
        if not recorder.tapes:
            self._step_ends()
        recorder.open(tape)
        tape.name = self.next_id()
        self.emit(recorder, commands.TapeOpen(tape.name, tape.persistent, tape.watch_accessed))
        return _Name(tape.name, self._released)

    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        recorder = self.recorder()
        if event == "watch":
            recorder.watch(tape, values)
            names = tuple(name_of(one) for one in values if one.spec.dtype != object)
            self.emit(recorder, commands.TapeWatch(tape.name, names))
            return
        act, command = {
            "pause": (recorder.pause, commands.TapePause),
            "resume": (recorder.open, commands.TapeResume),
            "reset": (recorder.reset, commands.TapeReset),
        }[event]
        act(tape)
        self.emit(recorder, command(tape.name))

    def _step_ends(self) -> None:
        """Where an outermost tape opens a step begins: a well-filled buffer leaves, if nothing is under way."""
        with self._lock:
            if len(self._buffer) >= _FULL and (self._flight is None or self._flight.future.done()):
                self._land()
                self._seal()

    def declare_no_gradient(self, op_type: str) -> None:
        super().declare_no_gradient(op_type)
        self.emit(self.recorder(), commands.Declare(op_type))

    # -------------------------------------------------------------------------------------------------------- reading
    def fetch(self, value: Any) -> HostArray:
        if value.host is not None:
            return value.host  # type: ignore[no-any-return]  # a host array
        with self._lock:
            self._check_open()
            where = place(_caller())
            self._reads[where] += 1
            self._land()
            self._raise_failure()
            if value.wire in self._poisoned:
                raise self._poisoned[value.wire]
            self._append(commands.Fetch(value.wire), _caller() if self._where else None)
            self._seal()
            answer = self._land()
            self._raise_failure()
        assert answer is not None
        found = next(one for one in answer.results if isinstance(one, Fetched) and one.id == value.wire)
        assert not isinstance(found.array, SlicesArrays)
        value.host = found.array
        return found.array

    def made_spec(self) -> Spec:
        """The spec of the result of the last command, which only its values tell."""
        with self._lock:
            self._land()
            self._seal()
            answer = self._land()
            self._raise_failure()
        assert answer is not None
        return next(one for one in reversed(answer.results) if isinstance(one, Made)).specs[0]

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
        batch = Batch(tuple(self._buffer), tuple(releases), self._client, self._seq, secrets.token_bytes(16))
        self._flight = _Sealed(batch, self._wheres)
        self._buffer, self._wheres, self._nbytes, self._context = [], [], 0, None
        self._seq += 1
        self.batches += 1
        self._fly(self._flight)

    def _fly(self, sealed: _Sealed) -> None:
        sealed.lost = False
        sealed.future = self._sender.submit(lambda: self._send(sealed.batch))

    def _send(self, batch: Batch) -> Answer:
        frame = wire.encode_batch(batch)
        body = self._http.frame(f"/v1/sessions/{self.id}/batch", frame.buffers, frame.length, wire.FRAME_TYPE)
        answer, _ = wire.decode_answer(memoryview(body))
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
            answer = sealed.future.result()
        except ConnectionFailed:
            sealed.lost = True
            raise
        except TeletapeError as error:
            self._flight = None
            self._refused(error, sealed)
            return None
        self._flight = None
        if answer.failure is not None:
            failure = answer.failure
            at = sealed.wheres[failure.index]
            text = failure.message + (f"\n  recorded at {place(at)}" if at else "")
            cause = error_for(failure.code, text, op=failure.op, **failure.details)
            self._fail(cause, sealed, failure.index)
        return answer

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
        surfaced = cause.surfaced()
        error = surfaced if isinstance(surfaced, TeletapeError) else cause
        for command in sealed.batch.commands[index:]:
            if not command.structural:
                self._poison(command, error)
        recorded = list(zip(self._buffer, self._wheres, strict=True))
        self._buffer, self._wheres = [], []
        for command, where in recorded:
            if command.structural:
                self._append(command, where)
            else:
                self._poison(command, error)
        if self._failure is None and not isinstance(cause, PoisonedError):
            self._failure = error

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
        """Delivers what is left and ends the session on the server."""
        if self.closed is None and os.getpid() == self._pid:
            try:
                self.sync()
                self._http.json("DELETE", f"/v1/sessions/{self.id}")
            finally:
                self.closed = "it was closed by the program"
                self._sender.stop()
                self._http.close()

    def _at_exit(self) -> None:
        if self.closed is None and os.getpid() == self._pid:
            closing = threading.Thread(target=self._close_quietly, daemon=True)
            closing.start()
            closing.join(_EXIT_PATIENCE)

    def _close_quietly(self) -> None:
        try:
            self.close()
        except TeletapeError as error:
            logs.get_logger().error("the last commands were not delivered: %s", error)


_HERE: Final = os.path.dirname(os.path.abspath(__file__))
_ENGINE: Final = os.path.dirname(os.path.abspath(commands.__file__))


def _caller() -> Where:
    """The program's own code that is recording: (code, instruction). Turned into a line only when it is told."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_HERE, _ENGINE)):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def place(where: Where) -> str:
    """The file and line of recorded code; relative where it lies below the working directory."""
    if where is None:
        return "an unknown line (TELETAPE_WHERE=0)"
    code, offset = where
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    path = os.path.relpath(code.co_filename) if code.co_filename.startswith(os.getcwd()) else code.co_filename
    return f"{path}:{line}, in {code.co_name}"
