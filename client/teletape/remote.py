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
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final, TypeAlias

from teletape import logs, wire
from teletape.connection import Connection
from teletape.convert import HostArray
from teletape.errors import ConnectionFailed, SessionEndedError, TeletapeError, error_for
from teletape.follower import Follower, Handle, Name, id_of
from teletape.session import Session
from teletape_engine import commands, describe
from teletape_engine.answers import Answer, Fetched, Result, SlicesArrays
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.graph import Literal, Tape, Variable
from teletape_engine.spec import Spec
from teletape_engine.tape import SlicesValue, kind_of

_MOST_COMMANDS: Final = 8192  #: A buffer of so many commands leaves without being asked.
_MOST_BYTES: Final = 64 << 20  #: Or one with so many bytes of tensors.
_FULL: Final = 512  #: At a step's end, a buffer of so many commands leaves if nothing is in flight.
_REMEMBERED: Final = 1024  #: Constants of so many bytes are kept here too, so that reading them asks nobody.
_EXIT_PATIENCE: Final = 10.0  #: Seconds that the last batch gets when the program ends.

Where: TypeAlias = tuple[CodeType, int] | None


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
        self._poisoned: dict[Id, TeletapeError] = {}
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
    def new_name(self) -> Name:
        """An id that this session has never used, released when the name is no longer held."""
        return Name(self.next_id(), self._released)

    def recorder(self) -> Follower:
        try:
            return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped
        except AttributeError:
            self._thread.recorder = made = Follower(self)
            return made

    def emit(self, recorder: Follower, command: Command, nbytes: int = 0) -> None:
        """Writes down one command; the buffer leaves when it has grown too large, or at once without laziness."""
        self._check_open()
        with self._lock:
            if self._poisoned and (cause := self._poison_in(command)) is not None:
                self._poison(command, cause)
                return
            self._record(recorder, command)
            self._nbytes += nbytes
            if not self.lazy:
                self.sync()
            elif len(self._buffer) >= _MOST_COMMANDS or self._nbytes >= _MOST_BYTES:
                self._land()
                self._seal()

    def _record(self, recorder: Follower, command: Command) -> None:
        if self._context is not recorder:
            self._context = recorder
            self._append(commands.ContextSwitch(recorder.id), None)
        self._append(command, _caller() if self._where else None)

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
        self.emit(self.recorder(), commands.Put(name.id, array), array.nbytes)
        return Handle(spec, name, array if array.nbytes <= _REMEMBERED else None)

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        made = self.new_name()
        self.emit(self.recorder(), commands.MakeVariable(made.id, value.name.id, trainable, name))
        return Variable(Handle(value.spec, made, value.host), trainable=trainable, name=name)

    def assign(self, variable: Variable, value: Any, mode: str) -> None:
        name: Name = variable.value.name
        given = value if isinstance(value, Literal) else value.name.id
        self.emit(self.recorder(), commands.Assign(name.id, given, mode))
        variable.assign(Handle(variable.spec, name))  # its numbers are not known here: the assignment may be dropped

    def part(self, slices: SlicesValue, which: str) -> Handle:
        handle: Handle = slices.values if which == "values" else slices.indices
        if handle.name is None:
            handle.name = self.new_name()
            self.emit(self.recorder(), commands.Part(slices.name.id, which, handle.name.id))
        return handle

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open_tape(self, tape: Tape) -> None:
        recorder = self.recorder()
        if not recorder.tapes:
            self._step_ends()
        recorder.open(tape)
        tape.name = self.new_name()
        self.emit(recorder, commands.TapeOpen(tape.name.id, tape.persistent, tape.watch_accessed))

    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        recorder = self.recorder()
        if event == "watch":
            recorder.watch(tape, values)
            names = tuple(id_of(one) for one in values if one.spec.dtype != object)
            self.emit(recorder, commands.TapeWatch(tape.name.id, names))
            return
        act, command = {
            "pause": (recorder.pause, commands.TapePause),
            "resume": (recorder.open, commands.TapeResume),
            "reset": (recorder.reset, commands.TapeReset),
        }[event]
        act(tape)
        self.emit(recorder, command(tape.name.id))

    def _step_ends(self) -> None:
        """Where an outermost tape opens a step begins: a well-filled buffer leaves, if nothing is under way."""
        with self._lock:
            if len(self._buffer) >= _FULL and (self._flight is None or self._flight.future.done()):
                self._land()
                self._seal()

    def gradient(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], seeds: Sequence[Any] | None, zeros: bool
    ) -> list[Any]:
        numeric = [i for i, one in enumerate(targets) if one.spec.dtype != object]  # strings are not on the server
        targets = [targets[i] for i in numeric]
        seeds = None if seeds is None else [seeds[i] for i in numeric]
        recorder = self.recorder()
        with recorder.inside():
            found = super().gradient(tape, targets, sources, seeds, zeros)
        for one in found:
            if one is not None:
                one.name = self.new_name()
        self.emit(
            recorder,
            commands.Gradient(
                tape.name.id,
                tuple([id_of(one) for one in targets]),
                tuple([id_of(one) for one in sources]),
                tuple([None if one is None else id_of(one) for one in found]),
                None if seeds is None else tuple([None if one is None else id_of(one) for one in seeds]),
                "zero" if zeros else "none",
                tuple([kind_of(one).value for one in found]),
            ),
        )
        return found

    def declare_no_gradient(self, op_type: str) -> None:
        super().declare_no_gradient(op_type)
        self.emit(self.recorder(), commands.Declare(op_type))

    # -------------------------------------------------------------------------------------------------------- reading
    def fetch(self, value: Any) -> HostArray:
        if value.host is not None:
            return value.host  # type: ignore[no-any-return]  # a host array
        self._reads[place(_caller())] += 1
        found = self.ask(self.recorder(), commands.Fetch(value.name.id))
        assert isinstance(found, Fetched)
        assert not isinstance(found.array, SlicesArrays)
        value.host = found.array
        return found.array

    def ask(self, recorder: Follower, command: Command) -> Result:
        """Sends all that is recorded and the command behind it, and waits for what it gives."""
        self._check_open()
        with self._lock:
            self._land()
            self._raise_failure()
            cause = self._poison_in(command)
            if cause is not None:
                self._poison(command, cause)
                raise cause.surfaced()
            self._record(recorder, command)
            self._seal()
            answer = self._land()
            self._raise_failure()
        assert answer is not None
        return answer.results[-1]

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
            answer = sealed.future.result()
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
            told += [f"recorded at {place(at)}"] if at else []
            text = failure.message + ("\n  " + ", ".join(told) if told else "")
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


_OURS: Final = tuple(os.path.dirname(os.path.abspath(one)) + os.sep for one in (__file__, commands.__file__))


def _caller() -> Where:
    """The program's own code that is recording: (code, instruction). Turned into a line only when it is told."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
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
    path = os.path.relpath(code.co_filename) if code.co_filename.startswith(os.getcwd() + os.sep) else code.co_filename
    return f"{path}:{line}, in {code.co_name}"
