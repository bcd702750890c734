"""The channel of a remote session: sends commands to the server in batches, and applies its answers and failures.

Any thread emits commands. `_send` is the one place where a batch is sealed, `_receive` the one place where an answer is
applied. One batch is in flight at a time, and recording goes on meanwhile. A failed command poisons what was recorded
after it; its cause is raised once, at the next read.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import teletape_wire as wire
from teletape import environment, logs
from teletape.call_site import Where, call_site_text, caller
from teletape.errors import ConnectionFailed, SessionEndedError, TeletapeError, error_for
from teletape.sessions import progress
from teletape.sessions.batch_buffer import BatchBuffer, Name, SealedBatch
from teletape.sessions.http import Connection
from teletape.sessions.sender import Sender
from teletape_engine.catalogue import describe
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.commands.results import Answer, Failure, Result

_MOST_COMMANDS: Final = 8192  #: A buffer with this many commands is sent at once.
_MOST_BYTES: Final = 64 << 20  #: Or one with this many bytes of tensors.
_STEP_COMMANDS: Final = 512  #: When a training step ends, a buffer with this many is sent if nothing is in flight.
_EXIT_PATIENCE: Final = 10.0  #: Seconds that the last batch gets when the program ends.


class Channel:
    """A client of a new session on a server.

    Args:
        http: The connection to the server.
        device: Where the session computes; None: the server's default.
        lazy: Whether commands wait until a value is read.

    Attributes:
        session: The session's id.
        http: As passed.
        lazy: As passed.
        next_id: Returns an id that this client has never used.
        buffer: Commands that wait, and ids that were never made.
        call_sites: Whether the program's lines are recorded.
        batches: The number of batches sent.
        closed: Why the session can no longer be used, or None.
    """

    def __init__(self, http: Connection, device: str | None, *, lazy: bool) -> None:
        self.http, self.lazy = http, lazy
        _compare_catalogues(http.json("GET", "/v1/info"))
        self.session: str = http.json("POST", "/v1/sessions", {} if device is None else {"device": device})["id"]
        self._path = f"/v1/sessions/{self.session}"
        attached = http.json("POST", f"{self._path}/attach")
        self.next_id: Callable[[], int] = itertools.count(attached["first_id"]).__next__
        self.buffer = BatchBuffer(attached["client"], attached["seq"])
        self.call_sites = environment.call_sites()
        self.batches = 0
        self.closed: str | None = None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._in_flight: SealedBatch | None = None
        self._failure: TeletapeError | None = None
        self._sender = Sender(self._post)
        atexit.register(self.close_at_exit)

    # ------------------------------------------------------------------------------------------------------ recording
    def new_name(self) -> Name:
        """Returns an id that was never used; it is released after the name is no longer held."""
        return Name(self.next_id(), self.buffer.released)

    def failed(self, name: Id) -> bool:
        """Whether the command that was to make this id failed."""
        return name in self.buffer.poisoned

    def emit(self, context: int, command: Command, nbytes: int = 0, where: Where = None) -> None:
        """Records one command of a context; a buffer that has grown too large is sent. Not lazy: it is sent at once.

        Args:
            context: The id of the recorder's context.
            command: The command.
            nbytes: Bytes of the tensors in it.
            where: Its call site; None: the program's line that runs now.
        """
        if self.closed is not None or os.getpid() != self._pid:
            self._check_open()
        buffer = self.buffer
        with self._lock:
            if buffer.poisoned and (cause := buffer.cause_in(command)) is not None:
                buffer.poison(command, cause)
                return
            if self.call_sites:
                buffer.add(context, command, caller() if where is None else where)
            else:
                buffer.add(context, command, None)
            buffer.nbytes += nbytes
            if not self.lazy:
                self.sync()
            elif len(buffer.commands) >= _MOST_COMMANDS or buffer.nbytes >= _MOST_BYTES:
                self._receive()
                self._send()

    def step_ends(self) -> None:
        """Sends a well-filled buffer if nothing is in flight: an outermost tape opens, so a training step has ended."""
        with self._lock:
            idle = self._in_flight is None or self._in_flight.answer.done()
            if len(self.buffer.commands) >= _STEP_COMMANDS and idle:
                self._receive()
                self._send()

    # -------------------------------------------------------------------------------------------------------- reading
    def ask(self, context: int, questions: Sequence[Command]) -> Sequence[Result]:
        """Sends everything recorded and then the questions, and returns one result for each question.

        Raises:
            TeletapeError: A command failed; a value that a question names was never made.
        """
        self._check_open()
        with self._lock:
            self._receive()
            self._raise_failure()
            for command in questions:
                cause = self.buffer.cause_in(command)
                if cause is not None:
                    self.buffer.poison(command, cause)
                    raise cause.surfaced()
            where = caller() if self.call_sites else None
            for command in questions:
                self.buffer.add(context, command, where)
            self._send()
            answer = self._receive()
            self._raise_failure()
        assert answer is not None
        return answer.results[-len(questions) :]

    def sync(self) -> None:
        """Waits until everything recorded has been executed; raises what failed."""
        with self._lock:
            self._check_open()
            self._receive()
            if self.buffer.commands or self.buffer.released:
                self.round_trip()
            self._raise_failure()

    def round_trip(self) -> None:
        """Sends what waits, even if that is nothing, and waits for the answer."""
        with self._lock:
            self._check_open()
            self._receive()
            self._send()
            self._receive()
            self._raise_failure()

    # -------------------------------------------------------------------------------------------------------- sending
    def _send(self) -> None:
        """Seals the buffer and submits the batch. Nothing may be in flight."""
        self._in_flight = sealed = self.buffer.seal()
        self.batches += 1
        self._submit(sealed)

    def _submit(self, sealed: SealedBatch) -> None:
        sealed.lost = True  # until it is submitted: an interrupt may come between any two lines
        sealed.answer = self._sender.submit(sealed.batch)
        sealed.lost = False

    def _post(self, batch: Batch) -> Answer:
        frame = wire.encode_batch(batch)
        body = self.http.frame(f"{self._path}/batch", frame.buffers, frame.length, wire.FRAME_TYPE)
        try:
            answer, _ = wire.decode_answer(memoryview(body))
        except wire.WireError as error:  # the batch was executed all the same: this is not a refusal
            raise ConnectionFailed(f"the server's answer cannot be read: {error}") from error
        return answer

    def _receive(self) -> Answer | None:
        """Waits for the batch in flight and applies its answer. None: nothing was in flight, or it was refused.

        After an interrupt, or if the server does not answer, the batch stays in flight: the next call asks again.
        """
        sealed = self._in_flight
        if sealed is None:
            return None
        if sealed.lost:
            self._submit(sealed)
        try:
            answer = progress.wait(sealed.answer, self.progress)
        except TeletapeError as error:
            if isinstance(error, ConnectionFailed | wire.CorruptFrameError):
                sealed.lost = True
                raise
            self._in_flight = None
            if isinstance(error, SessionEndedError):
                self.closed = error.message
            self._fail(sealed, 0, error)
            self.buffer.refuse(sealed)
            return None
        except Exception:  # a defect here or in a library: it is unknown what the server has done
            sealed.lost = True
            raise
        self._in_flight = None
        if answer.failure is not None:
            self._fail(sealed, answer.failure.index, _cause(answer.failure, sealed))
        return answer

    def _fail(self, sealed: SealedBatch, index: int, cause: TeletapeError) -> None:
        self.buffer.fail(sealed, index, cause)
        if self._failure is None:
            self._failure = cause

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure.surfaced()

    def progress(self) -> Mapping[str, Any] | None:
        """Returns the progress of the batch that the server executes, or None if that is not known."""
        facts = self.http.try_json(self._path)
        return None if facts is None else facts.get("running")

    # ------------------------------------------------------------------------------------------------------- lifetime
    def _check_open(self) -> None:
        if self.closed is not None:
            raise SessionEndedError(f"this session has ended: {self.closed}; tf.connect makes a new one")
        if os.getpid() != self._pid:
            raise SessionEndedError("this session belongs to the parent process: connect again in the child")

    def cancel(self) -> None:
        """Stops what the server computes for this session; the next read raises CancelledError."""
        self._check_open()
        self.http.json("POST", f"{self._path}/cancel")

    def close(self) -> None:
        """Delivers what waits and ends the session on the server; raises what failed."""
        if os.getpid() != self._pid:
            return
        try:
            if self.closed is None:
                self.sync()
        finally:
            try:
                if self.closed is None and self._in_flight is None:  # else it has ended, or cannot be reached
                    with contextlib.suppress(SessionEndedError):
                        self.http.json("DELETE", self._path)
            finally:
                self.closed = self.closed or "it was closed by the program"
                self._sender.stop()
                self.http.close()
                atexit.unregister(self.close_at_exit)

    def close_at_exit(self) -> None:
        """Closes the session when the program ends; a server that does not answer holds it up for seconds at most."""
        if self.closed is None and os.getpid() == self._pid:
            closing = threading.Thread(target=self._close_quietly, daemon=True)
            closing.start()
            closing.join(_EXIT_PATIENCE)

    def _close_quietly(self) -> None:
        try:
            self.close()
        except Exception as error:
            logs.get_logger().error("the last commands were not delivered: %s", error)


def _compare_catalogues(info: Any) -> None:
    """Warns if the server's ops are others: it may then refuse predictions made here, but results are never wrong."""
    if info["catalogue"] != describe.digest():
        logs.get_logger().warning(
            "the server's ops (version %s, catalogue %s) are not this SDK's (catalogue %s): gradients that differ in "
            "structure are refused as structure_mismatch; install the same version on both sides",
            info["version"],
            info["catalogue"],
            describe.digest(),
        )


def _cause(failure: Failure, sealed: SealedBatch) -> TeletapeError:
    """Returns the exception of a failed command, with the op and the line of the program that recorded it."""
    where = sealed.call_sites[failure.index]
    details = [f"op {failure.op!r}"] if failure.op else []
    details += [f"recorded at {call_site_text(where)}"] if where else []
    text = failure.message + ("\n  " + ", ".join(details) if details else "")
    return error_for(failure.code, text, op=failure.op, **failure.details)
