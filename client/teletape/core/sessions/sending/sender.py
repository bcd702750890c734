"""Sends a remote session's batches and applies the server's answers: in a reader's thread, or in the sender's own.

A batch is in one of these states:

* **waiting**: its commands are in the buffer. A thread that needs an answer appends a `Reply`.
* **in flight**: `BatchBuffer.advance` has taken them; the batch has a number and a nonce, and is `in_flight`. It is
  sent, and sent again with the same bytes, until the server's answer is here. If the server does not know its
  structure, it is sent in full, as the same batch.
* **landed**: the answer has been applied and its replies are settled; `in_flight` is None.
* **lost**: the server cannot be reached, or the thread that sent it was interrupted. It stays in flight. Threads that
  wait get the error of the server that cannot be reached, and the next one that needs an answer makes it be sent again.
* **refused**: the server executed nothing of it. The buffer has its structural commands again, and its number. If it
  was only too large, the buffer has all of it again, and it is sent in parts.

One thread at a time has the right to send (`Exclusive`). A reader takes it if it is free, nothing is in flight, and a
connection is open: it seals, sends, and waits for a second (`send_at_once`). If the expected answer comes, it applies
it, and no other thread had to wake up. It leaves all other cases to the sender's thread, in which no interrupt is
raised: a failure, a refusal, silence, a connection to be opened, a large batch. Each change that the reader makes takes
effect in one step (batch_buffer.py), so an interrupt (Ctrl-C) leaves the batch waiting, lost or landed. A signal
handler or a finalizer that reads in the middle also gives the sender's thread the right to send; both then send the
same bytes, which the server executes once.

Long because the states of a batch and the threads that change them belong together.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Final

import teletape_wire as wire
from teletape.core.errors import (
    ConnectionFailed,
    DeadlineExceededError,
    FailedPreconditionError,
    SessionEndedError,
    TeletapeError,
    error_for,
)
from teletape.core.network.frame_socket import Response
from teletape.core.network.http import Connection
from teletape.core.program import logs
from teletape.core.program.call_site import call_site_text
from teletape.core.program.tracebacks import op_words, with_op
from teletape.core.sessions import ending
from teletape.core.sessions.sending.batch_buffer import BatchBuffer
from teletape.core.sessions.sending.exclusive import Exclusive
from teletape.core.sessions.sending.sealed_batch import Causes, Reply, SealedBatch, command_of, name_of
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import AnswerDroppedError, UnknownStructureError

EXIT_PATIENCE: Final = 2.0  #: The time limit, in seconds, for the end of all sessions of a program.

FORKED: Final = "this session belongs to the parent process: connect again in the child"
_LARGE: Final = 1 << 20  #: Bytes of tensors from which a batch is left to the sender's thread: waking it costs little.
_FAREWELL: Final = 1.0  #: The time limit, in seconds, for the end of a session after an error of the program.
_CANCEL_PAUSE: Final = 0.1  #: Seconds between two requests to cancel a batch, which may still be on its way.
_NOT_DONE: Final = "not done within "  #: Begins a server's message about the time that its caller gives it.
_CANCEL_TRIES: Final = 5
_TOO_LARGE: Final = 413  #: The status of a refusal because of a body's bytes.
_LOOK: Final = 0.05  #: Seconds after which the sender's thread checks whether an interrupted reader has stopped.

HOW_TO_GO_ON: Final = (
    "tf.connect makes a new one. What was read is still here, t.numpy(), also of variables; the rest must be computed "
    "again, or restored from a checkpoint"
)

_live: weakref.WeakSet[Sender] = weakref.WeakSet()
senders: Final[set[int]] = set()  #: The threads of all senders.


class Sender:
    """The sending half of a channel. It has no reference to the session, so that an unused session is collected.

    Only the thread that has the right to send changes the attributes.

    Args:
        http: The connection to the server.
        session: The session's id.
        buffer: The recorded commands.
        repeats: Whether the server stores the structures of batches.
        stays: Whether the session goes on after the program, unless the program closes it.

    Attributes:
        http, session, buffer: As passed.
        closed: The reason why the session can no longer be used, or None.
        over: Whether the thread answers no more questions.
        last_answer: The facts in the last answer: bytes in use and times; None: there was no answer.
    """

    def __init__(
        self, http: Connection, session: str, buffer: BatchBuffer, *, repeats: bool = False, stays: bool = False
    ) -> None:
        self.http, self.session, self.buffer, self._stays = http, session, buffer, stays
        self._repeats = wire.Repeats(wanted=repeats)
        self.closed: str | None = None
        self.over = False
        self.last_answer: tuple[int, wire.Served] | None = None
        self._path = f"/v1/sessions/{session}"
        self._batch_path = f"{self._path}/batch"
        self._gone = False  # the server has no such session any more
        self._end_error: BaseException | None = None
        self._exclusive = Exclusive()
        self._waits = False
        self._freed = threading.Lock()
        self._freed.acquire()
        self._jobs: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: the last
        self._numbers = itertools.count(1)
        self._wakes = self._turns = 0
        self._thread = threading.Thread(target=self._work, name="teletape-sender", daemon=True)

    def start(self) -> None:
        """Starts the thread. After an interrupt here it may have started, and `end` ends it."""
        self._thread.start()
        _live.add(self)

    @property
    def started(self) -> bool:
        """Whether the thread has certainly started."""
        return self._thread.is_alive()

    @property
    def in_flight(self) -> SealedBatch | None:
        """The batch that is being sent, or whose answer is missing; also a lost one."""
        return self.buffer.position.sealed

    @property
    def batches(self) -> int:
        """The number of batches sealed."""
        return self.buffer.position.batches

    # ------------------------------------------------------------------------------------------------------ any thread
    def send_at_once(self, seconds: float) -> None:
        """Sends the waiting commands in the calling thread, if that needs no wait for another thread.

        If replies are not settled afterwards, the caller wakes the sender's thread, which settles them.

        Args:
            seconds: The longest wait for a byte of the answer.
        """
        self._exclusive.run(partial(self._exchange, seconds))
        if self._waits:
            with contextlib.suppress(RuntimeError):  # it is free already
                self._freed.release()

    def _exchange(self, seconds: float) -> None:
        http, buffer = self.http, self.buffer
        if self.closed is not None or buffer.failures or buffer.poisoned or buffer.nbytes >= _LARGE:
            return
        here = buffer.position
        if here.sealed is not None or not http.open_for_frames:
            return
        there = buffer.advance(here)
        if there is None or there.sealed is None:
            return
        sealed = there.sealed
        try:
            frame = self._frame(sealed)
            if there.sealed is not sealed:  # a signal handler that read meanwhile made the sender's thread deliver it
                return
            response = http.frame_at_once(
                self._batch_path,
                frame.buffers,
                frame.length,
                wire.FRAME_TYPE,
                seconds,
                sealed.expected,
                sealed.time_limit,
                sealed.trace_headers,
            )
            if not isinstance(response, Response):
                sealed.first = response
                return
            sealed.first = lambda: response
            answer, served = wire.decode_answer(memoryview(response.body))
        except Exception:  # the sender's thread meets the same error, and reports it
            return
        if answer.failure is None:
            http.requests += 1
            self.last_answer = answer.bytes_in_use, served
            if sealed.profile is not None:
                sealed.note_profile(answer, served, len(response.body))
            sealed.answered(answer, {}, buffer.ended)
            there.sealed = None

    def wake(self) -> None:
        """Makes the thread look for waiting replies. It never waits."""
        self._put(True)
        self._wakes = next(self._numbers)

    def _put(self, job: bool) -> None:
        """Gives the thread a job; also in a signal handler that has interrupted this thread's sending.

        Such a handler takes the right to send from the thread, because it would wait for the thread that it interrupts.
        """
        if self._exclusive.mine:
            self._exclusive = Exclusive()
        self._jobs.put(job)

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do. It may be wrong while another thread wakes it."""
        return self._turns >= self._wakes

    def left(self, reply: Reply) -> None:
        """Stops the server's work for a reader that waits no longer, if nothing else needs it. It never waits."""
        sealed = self.in_flight
        if sealed is None or sealed.awaited or all(other is not reply for _, other in sealed.replies):
            return
        if sealed.is_readers_own:
            threading.Thread(target=self._cancel, args=(sealed,), name="teletape-cancel", daemon=True).start()

    def _cancel(self, sealed: SealedBatch) -> None:
        """Cancels a batch in flight, which may still be on its way to the server."""
        path = f"{self._path}/cancel?client={sealed.head.client}&seq={sealed.head.seq}"
        for _ in range(_CANCEL_TRIES):
            with contextlib.suppress(TeletapeError, OSError):
                self.http.control("POST", path)
            time.sleep(_CANCEL_PAUSE)
            if self.in_flight is not sealed:
                return

    def end(self) -> None:
        """Makes the thread send waiting commands, end the session on the server, and end itself. It never waits."""
        self._put(False)

    def close(self, seconds: float | None = None) -> None:
        """Ends the session on the server, drops waiting commands, and waits until that is done; raises failures.

        Args:
            seconds: The longest wait; then it calls `abandon`. None: there is no limit.
        """
        self._stays = False
        self.detach("it was closed by the program", seconds)

    def detach(self, reason: str, seconds: float | None = None) -> None:
        """Ends this client's part like `close`, and leaves a session that goes on; raises failures.

        Args:
            reason: Why the session can no longer be used here.
            seconds: The longest wait, as for `close`.
        """
        self._close_for(reason)
        self.end()
        if not self.finished(seconds) and not self._stays:
            self.abandon(reason)
        if self._end_error is not None:
            error, self._end_error = self._end_error, None
            raise error

    def abandon(self, reason: str) -> None:
        """Ends the session on the server at once, also during work, and drops waiting commands. It never raises.

        The server answers running work with the session's end, which ends the thread, perhaps later.

        Args:
            reason: Why the session can no longer be used here.
        """
        self._stays, began = False, time.monotonic()
        self._close_for(reason)
        if not self._gone:
            self._gone = self.http.try_delete(self._path, _FAREWELL)
            if not self._gone:
                logs.get_logger().warning(
                    "%s did not answer in %g s: session %s may compute on, and ends by itself when it has been idle "
                    "for the server's limit",
                    self.http.url,
                    _FAREWELL,
                    self.session,
                )
        self.end()
        self.finished(began + 2 * _FAREWELL - time.monotonic())

    def leave(self, reason: str) -> None:
        """Ends this client's part, drops waiting commands, and leaves the session. It never waits."""
        self._stays = True
        self._close_for(reason)
        self.end()

    def _close_for(self, reason: str) -> None:
        if self.closed is None:
            self.closed = reason

    # ------------------------------------------------------------------------------------------------------ its thread
    def _work(self) -> None:
        ident = threading.get_ident()
        senders.add(ident)
        try:
            while self._jobs.get():
                self._alone(self._safe_turn)
                self._turns += 1
            self._alone(self._finish)
        finally:
            senders.discard(ident)

    def _alone(self, function: Callable[[], None]) -> None:
        """Runs a function as soon as no other thread sends."""
        self._waits = True
        while not self._exclusive.run(function):
            self._freed.acquire(timeout=_LOOK)
        self._waits = False

    def _safe_turn(self) -> None:
        try:
            self._turn()
        except BaseException as error:  # a defect of the SDK must not make a thread wait for ever
            self._give_up(error)

    def _turn(self) -> None:
        """Sends batches until no thread waits for an answer, or the server cannot be reached."""
        lost = self.in_flight
        if lost is not None and not lost.awaited and not self.buffer.replies():
            return  # the threads that waited for it have the error
        while (sealed := self.in_flight or self._next()) is not None:
            try:
                answer = self._post(sealed)
            except (ConnectionFailed, wire.CorruptFrameError) as error:
                self._lose(sealed, error)
                return
            except AnswerDroppedError as error:
                self._answer_lost(sealed, error)
            except UnknownStructureError as error:
                if not self._in_full(sealed):
                    self._refuse(sealed, error)
            except TeletapeError as error:
                if not self._split(sealed, error):
                    self._refuse(sealed, error)
            except BaseException as error:  # a defect here or in a library: the state of the server is unknown
                self._lose(sealed, error)
                return
            else:
                self._land(sealed, answer)

    def _next(self) -> SealedBatch | None:
        if self.closed is not None:
            self.buffer.refuse_questions(ended(self.closed), early=True)
            return None
        return self.buffer.seal()

    def _frame(self, sealed: SealedBatch) -> wire.Frame:
        """Returns the batch as bytes, which are encoded once."""
        if sealed.frame is None:
            sealed.frame = self._repeats.frame(sealed.head, sealed.columns, lambda: sealed.batch)
        return sealed.frame

    def _in_full(self, sealed: SealedBatch) -> bool:
        """Encodes a batch in full, because the server does not know its structure; returns False if it was already."""
        if sealed.whole:
            return False
        sealed.frame, sealed.whole = self._repeats.whole(sealed.batch, sealed.columns), True
        return True

    def _post(self, sealed: SealedBatch) -> Answer:
        frame = self._frame(sealed)
        first, sealed.first = sealed.first, None
        response = self.http.frame(
            self._batch_path,
            frame.buffers,
            frame.length,
            wire.FRAME_TYPE,
            first,
            sealed.expected,
            sealed.limit,
            sealed.trace_headers,
        )
        try:
            answer, served = wire.decode_answer(memoryview(response.body))
        except wire.WireError as error:  # the batch was executed nevertheless: this is not a refusal
            raise ConnectionFailed(f"the server's answer cannot be read: {error}") from error
        self.last_answer, sealed.request_id = (answer.bytes_in_use, served), response.request_id
        sealed.note_profile(answer, served, len(response.body))
        return answer

    def _land(self, sealed: SealedBatch, answer: Answer) -> None:
        causes: Causes = {}
        if answer.failure is not None:
            failures = [(failure.index, self._cause(failure, sealed)) for failure in answer.failures]
            causes = self.buffer.fail(sealed, failures)
        sealed.answered(answer, causes, self.buffer.ended)
        self.buffer.landed(sealed)

    def _cause(self, failure: Failure, sealed: SealedBatch) -> TeletapeError:
        """Returns the exception of a failed command, with the op and the line of the program that recorded it.

        For a function's step also the line that wrote it, if the program still has the function.
        """
        recorded, facts = sealed.call_sites[failure.index], {"op": failure.op, **failure.details}
        parts, call = [op_words(failure.op)] if failure.op else [], ""
        function = self.buffer.functions.get(facts.get("function"))
        written = None if function is None else dict(enumerate(function.call_sites)).get(facts.get("step", -1))
        if recorded and written:
            facts["where"], call = written, "in a call "
            parts.append(f"written at {written}")
        parts += [f"{call}recorded at {call_site_text(recorded)}"] if recorded else []
        text = with_op(_in_words_of_the_reader(failure, sealed), failure.op) + (
            "\n  " + ", ".join(parts) if parts else ""
        )
        error = error_for(failure.code, text, **facts)
        error.recorded, error.request_id = recorded, sealed.request_id
        return error

    def _split(self, sealed: SealedBatch, error: TeletapeError) -> bool:
        """Has a batch sent in parts that is too large for the server, or for a proxy before it.

        Returns:
            False: That is not the error; or a single command is too large, which the error then names.
        """
        if error.details.get("status") != _TOO_LARGE:
            return False
        if self.buffer.split(sealed):
            return True
        error.recorded = sealed.call_sites[-1]
        error.message += f"\n  {name_of(command_of(sealed.recordings[-1]))!r}, recorded at "
        error.message += call_site_text(error.recorded)
        return False

    def _refuse(self, sealed: SealedBatch, error: TeletapeError) -> None:
        if isinstance(error, SessionEndedError):
            self._gone = True
            self._close_for(error.message)
            error.message += f"; {_dropped(sealed, self.buffer)}{HOW_TO_GO_ON}"
        self.buffer.fail(sealed, [(0, error)], refused=True)
        self.buffer.take_back(sealed)
        sealed.failed(error)

    def _answer_lost(self, sealed: SealedBatch, error: TeletapeError) -> None:
        """Handles a batch that was executed, but whose answer the server has dropped: its values must be read again."""
        sealed.failed(error)
        self.buffer.landed(sealed)

    def _lose(self, sealed: SealedBatch, error: BaseException) -> None:
        self.buffer.refuse_questions(error, early=True)
        sealed.failed(error)  # last: the threads that it wakes may ask again at once

    def _give_up(self, error: BaseException) -> None:
        """Closes the session after an answer that could not be applied: this side no longer matches the server."""
        self._close_for(f"an answer of the server could not be applied ({type(error).__name__}: {error})")
        sealed = self.in_flight
        if sealed is not None:
            self.buffer.landed(sealed)
            sealed.failed(error)
        self.buffer.refuse_questions(error, early=True)

    def _finish(self) -> None:
        try:
            if self.closed is None:
                reply = Reply()
                self.buffer.request((), reply)
                self._turn()
                if reply.error is not None:
                    logs.get_logger().error("the last commands were not delivered: %s", reply.error)
                self._close_for("nothing in the program holds it any more")
            if (
                not self._gone and not self._stays and self.in_flight is None
            ):  # otherwise the server has ended it, or cannot be reached
                with contextlib.suppress(SessionEndedError):
                    self.http.json("DELETE", self._path)
        except BaseException as error:
            self._end_error = error
        finally:
            self.over = True  # before the next line, so that a later question is refused by its own thread
            self._next()
            self.http.close()

    def delete_at_exit(self, seconds: float) -> None:
        """Ends the session on the server by a request that is sent once, also during its batches."""
        if not self._gone and not self._stays:
            self.http.try_delete(self._path, seconds)

    def finished(self, seconds: float | None) -> bool:
        """Waits for the end of the thread for that time, or without a limit; returns whether it has ended."""
        self._thread.join(None if seconds is None else max(0.0, seconds))
        return not self._thread.is_alive()


def end_all() -> None:
    """Ends the sessions that are open when the program ends, in about `EXIT_PATIENCE` seconds at most.

    Waiting commands are sent if the server answers in that time. A session whose batch still runs is ended
    nevertheless.
    """
    senders = [sender for sender in list(_live) if not sender.closed]
    began = time.monotonic()
    for sender in senders:
        sender.end()
    late = [sender for sender in senders if not sender.finished(began + EXIT_PATIENCE / 2 - time.monotonic())]
    for sender in late:  # one after the other, because Python starts no thread at the end of a program
        sender.delete_at_exit(EXIT_PATIENCE / 2 / len(late))
        logs.get_logger().error(
            "the last commands of session %s were not delivered: no answer from %s before the program's end",
            sender.session,
            sender.http.url,
        )


def sessions_at(url: str) -> set[str]:
    """Returns the ids of the sessions on a server that this program has open."""
    return {sender.session for sender in list(_live) if sender.http.url == url and sender.closed is None}


def forget_all() -> None:
    """Ends the use of the parent's sessions in a forked child, which has no sender threads."""
    for sender in list(_live):
        sender.closed = FORKED
    _live.clear()
    senders.clear()


def check_may_wait() -> None:
    """Refuses to wait for an answer in a thread that sends, because no other thread would send.

    Raises:
        FailedPreconditionError: The thread is a sender's.
    """
    if threading.get_ident() in senders:
        raise FailedPreconditionError(
            "a finalizer (`__del__`, a weakref's callback) that Python runs in the thread that sends a session's "
            "batches cannot read from a session: read before, and keep the value"
        )


ending.at_the_end(end_all)
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=forget_all)


def ended(reason: str) -> SessionEndedError:
    """Returns the error of using a session that can no longer be used."""
    if reason is FORKED:
        return SessionEndedError(FORKED)
    return SessionEndedError(f"this session has ended: {reason}; {HOW_TO_GO_ON}")


def _in_words_of_the_reader(failure: Failure, sealed: SealedBatch) -> str:
    """Returns the message of a failure, with the whole timeout; the server only knows the rest of it."""
    timeout = sealed.timeout
    if timeout is None or failure.code != DeadlineExceededError.code or not failure.message.startswith(_NOT_DONE):
        return failure.message
    return (
        f"{_NOT_DONE}{timeout:g} s, the timeout of this read: the server has stopped. Allow more, or read less at once"
    )


def _dropped(sealed: SealedBatch, buffer: BatchBuffer) -> str:
    """Returns the words of a message about the commands that are never executed."""
    questions = sum(reply.questions for _, reply in sealed.replies)
    count = len(sealed.recordings) - questions + len(buffer.commands)
    return f"{count:,} recorded commands were not executed; " if count else ""
