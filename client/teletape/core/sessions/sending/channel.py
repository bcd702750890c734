"""The channel of a remote session: records commands in its buffer, and waits for answers.

Any thread records, without a lock: recording never waits for a thread that reads. The thread that reads, or the
sender's (sender.py), sends the commands in batches and applies the answers. A failed command poisons the outputs of
later commands of its strand (strands.py), and of commands that use these; the strand's next read raises the cause once.

Long because a session's beginning, its commands, its questions and its end go through it.
"""

from __future__ import annotations

import copy
import itertools
import re
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import get_ident
from types import FrameType
from typing import Any, Final

import teletape_wire as wire
from teletape.core import environment
from teletape.core.errors import (
    CancelledError,
    ConnectionFailed,
    DeadlineExceededError,
    InvalidArgumentError,
    SessionEndedError,
    TeletapeError,
)
from teletape.core.network import progress, spans
from teletape.core.network.http import Connection, new_key
from teletape.core.network.options import timeouts
from teletape.core.program import logs
from teletape.core.program.call_site import Where, call_site_of, call_site_text, caller
from teletape.core.program.late_errors import error_at
from teletape.core.sessions.sending import event_loops
from teletape.core.sessions.sending.batch_buffer import BatchBuffer, Name
from teletape.core.sessions.sending.catalogues import differing_ops
from teletape.core.sessions.sending.sealed_batch import Recording, Reply, recording_of
from teletape.core.sessions.sending.sender import FORKED, Sender, check_may_wait, ended, senders
from teletape.core.sessions.sending.strands import Place, Strands, strand_of
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.commands import Call, Command, Id, Input
from teletape_engine.commands.results import Result

_WAITS: Final = "waits"  # the feature of servers that say why one client's batch waits
_MOST_COMMANDS: Final = 8192  #: The number of commands at which a buffer is sent at once.
_MOST_BYTES: Final = 64 << 20  #: Or one with this many bytes of tensors.
_CLIENT_BITS: Final = 40  #: The bits of an integer id that a client counts; its own number is above them.
_LIFE_SIGN: Final = 10.0  #: The time limit, in seconds, of the question whether a server knows a session.
_FAREWELL: Final = 1.0  #: The time limit, in seconds, of a session's end after connecting was interrupted.
_LOOK: Final = 1.0  #: Seconds after which a thread that delivers checks whether the session has ended.
LATE: Final = "it was not done within the timeout of its end"  #: Why a session has ended.
_LEAST_GRACE: Final = 0.1  #: The shortest wait for a server's answer after a read's timeout, in seconds.
_MOST_GRACE: Final = 1.0  #: The longest such wait.
_STEP_COMMANDS: Final = 512  #: A buffer with this many is sent at a training step's end, if nothing is in flight.


class Channel:
    """A client of a session on a server: of a new session, or of the one that has the name already.

    Args:
        http: The connection to the server. Its options describe the session: `session` is its name; without a name
            the server makes an id, and the session ends with the program.

    Attributes:
        session: The session's id.
        client: The number of this client in it.
        device: The device that it computes on.
        joined: Whether the session existed before.
        stays: Whether it has a name, so that it goes on after the program.
        server: The server's facts about itself.
        http: As passed.
        lazy: Whether commands wait until a value is read.
        next_id: Returns an id that this client has never used.
        buffer: The waiting commands, and the poisoned ids.
        call_sites: Whether the program's lines are recorded.
        differing: The ops whose records differ on the server.
        strands: The strands of the program's threads and tasks.
    """

    def __init__(self, http: Connection) -> None:
        options = http.options
        device, name = options.device, options.session
        self.http, self.lazy = http, options.lazy
        self._has_timeout = options.timeout is not None
        try:
            self.server = info = http.info()
            present = None if name is None else _present(http, name, device)
            self.differing = differing_ops(http, info)
        except BaseException:
            http.close()
            raise
        self.joined, self.stays = present is not None, name is not None
        wishes: dict[str, Any] = {"id": name, "device": device, "dedicated": options.dedicated or None}
        wishes["durability"] = options.durability
        body = {field: value for field, value in wishes.items() if value is not None}
        key, self._path = new_key(), ""
        try:
            facts = present or http.create("/v1/sessions", body, key)
            self.session: str = facts["id"]
            self.device: str = facts.get("device", device or "cpu")
            self._facts = facts
            http.session_lasts = facts.get("durability", "none") != "none"
            self._path = f"/v1/sessions/{self.session}"
            attached = http.create(f"{self._path}/attach")
            self.next_id: Callable[[], int] = itertools.count(attached["first_id"]).__next__
            self.client: int = attached["client"]
            self.strands = Strands(self.next_id)
            features = info.get("features", ())
            by_strand = wire.STRANDS in features
            self._names_waits = _WAITS in features
            self.buffer = BatchBuffer(self.client, attached["seq"], self.strands.ended, by_strand=by_strand)
            self.call_sites = environment.call_sites()
            self._record = self.buffer.recordings.append
            repeats = wire.REPEATED_BATCHES in features
            self._sender = Sender(http, self.session, self.buffer, repeats=repeats, stays=self.stays)
            self._sender.start()
            if self.joined:
                self._say_what_has_run(info)
            weakref.finalize(self, self._sender.end).atexit = False
        except BaseException as error:  # after an interrupt, or without an answer, nothing will use the session
            sender: Sender | None = getattr(self, "_sender", None)
            if sender is not None:
                sender.end()
            if sender is not None and sender.started:
                raise
            # Others may use a session with a name, and it can be joined again.
            was_reached = isinstance(error, TeletapeError) and not isinstance(error, ConnectionFailed)
            if name is None and (self._path or not was_reached):
                _end_unused(http, self._path, body, key)
            http.close()
            raise

    def _say_what_has_run(self, info: Mapping[str, Any]) -> None:
        """Logs what a joined session has done last, perhaps since an earlier program has ended, and what it does now.

        This program's reads wait for the latter. `info` is what the server says of itself.
        """
        last = (self._facts.get("answered") or {}).get("last_request")
        started = info.get("started", "")
        if last is None and self._facts.get("created_at", started) < started:
            logs.get_logger().info(
                "session %s is joined as its last answer left it: the server started again at %s, and what ran when "
                "it ended has not happened",
                self.session,
                started,
            )
        if last is not None:
            took = "" if last["seconds"] is None else f" after {last['seconds']:.1f} s"
            how = "" if last["code"] is None else f", with {last['code']}"
            text = "session %s is joined: its last request ended at %s%s%s"
            logs.get_logger().info(text, self.session, last["at"], took, how)
        work = self._facts.get("running") or {}
        if work.get("requests"):
            logs.get_logger().warning(
                "session %s computes%s. What this program reads waits for that; Ctrl-C leaves it, "
                "tf.session().cancel() or `python -m teletape sessions %s --cancel %s` stops it",
                self.session,
                f": {progress.how_far(work)}" if work.get("total") else "",
                self.http.url,
                self.session,
            )

    # ------------------------------------------------------------------------------------------------------ recording
    def new_name(self) -> Name:
        """Returns a new id as a name; the id is released when the last reference to the name is gone."""
        return Name(self.next_id(), self.buffer.released)

    def failed(self, name: Id) -> bool:
        """Whether the command that makes this id has failed, or may have."""
        return name in self.buffer.poisoned or name in self.buffer.doubtful

    def emit(self, place: Place, command: Command, nbytes: int = 0, where: Where = None) -> None:
        """Records a command. The buffer is sent if it is too large, or if the session is not lazy.

        Args:
            place: The recorder's context, and the strand.
            command: The command.
            nbytes: The bytes of the tensors in it.
            where: Its call site; None: the program's running line.
        """
        if self._sender.closed is not None:
            self._check_open()
        if where is None and self.call_sites:
            where = caller()
        buffer = self.buffer
        where = where if self.call_sites else None
        if command.__class__ is Call:
            self._record(recording_of(place, command, where))
        else:
            self._record((place, command, where, None, None, (), None))
        buffer.nbytes += nbytes
        if len(buffer.recordings) >= _MOST_COMMANDS or buffer.nbytes >= _MOST_BYTES or not self.lazy:
            self._ask((), Reply(early=self.lazy, strand=strand_of(place)))

    def emit_call(
        self, place: Place, where: Where, op: str, attrs: Attrs, inputs: tuple[Input, ...], output: int
    ) -> None:
        """Records an op as `emit` records a command, but by its fields, because a repeated batch needs no more."""
        if self._sender.closed is not None:
            self._check_open()
        if not self.call_sites:
            where = None
        elif where is None:
            where = caller()
        self._record((place, None, where, op, attrs, inputs, output))
        if len(self.buffer.recordings) >= _MOST_COMMANDS or not self.lazy:  # no op adds bytes
            self._ask((), Reply(early=self.lazy, strand=strand_of(place)))

    def step_ends(self) -> None:
        """Sends a large buffer if nothing is in flight; called when an outermost tape opens, after a training step."""
        if len(self.buffer.recordings) >= _STEP_COMMANDS and self._sender.idle:
            self.buffer.request((), Reply(early=True))
            self._sender.wake()

    # -------------------------------------------------------------------------------------------------------- reading
    def ask(
        self, place: Place, questions: Sequence[Command], where: Where = None, expected: int = 0
    ) -> Sequence[Result]:
        """Sends all recorded commands and then the questions, and returns a result for each question.

        Args:
            place: The recorder's context, and the strand.
            questions: The questions.
            where: Their call site; None: the program's running line.
            expected: The bytes of the tensors in the answer.

        Raises:
            TeletapeError: A command of the strand failed; a value in a question is poisoned.
        """
        where = (caller() if where is None else where) if self.call_sites else None
        recordings = [
            (place, question, where, None, None, (), None)
            if question.__class__ is not Call
            else recording_of(place, question, where)
            for question in questions
        ]
        strand = place if place.__class__ is int else strand_of(place)
        return self._ask(recordings, Reply(len(questions), expected=expected, strand=strand))

    def sync(self) -> None:
        """Waits until all recorded commands are executed; raises failures of this strand and of ended strands."""
        self._ask((), Reply(strand=self.strands.here()))

    def finish(self) -> None:
        """Waits like `sync`; raises failures of any strand."""
        self._ask((), Reply())

    def deliver(self) -> None:
        """Waits like `sync`, in a thread that the program does not wait for: no progress is shown."""
        check_may_wait()
        self._check_open()
        reply = Reply()
        self.buffer.request((), reply)
        self._sender.wake()
        while not reply.wait(_LOOK):
            if self._sender.over:
                reply.settle(error=ended(self._sender.closed or ""))
        if reply.error is not None:
            self.buffer.raised(reply.error, reply)
            raise copy.copy(reply.error)

    def round_trip(self) -> None:
        """Sends a batch of the waiting commands, which may be empty, and waits for the answer."""
        self._ask((), Reply(empty=True))

    async def ask_later(
        self, place: Place, questions: Sequence[Command], where: Where = None, expected: int = 0
    ) -> Sequence[Result]:
        """Sends and returns like `ask`, for a task: the event loop goes on meanwhile.

        A cancelled task leaves: the server stops what no other reader waits for.
        """
        where = (caller() if where is None else where) if self.call_sites else None
        recordings = [recording_of(place, question, where) for question in questions]
        return await self._ask_later(recordings, Reply(len(questions), expected=expected, strand=strand_of(place)))

    async def sync_later(self) -> None:
        """Waits like `sync`, for a task."""
        await self._ask_later((), Reply(strand=self.strands.here()))

    async def finish_later(self) -> None:
        """Waits like `finish`, for a task."""
        await self._ask_later((), Reply())

    async def _ask_later(self, questions: Sequence[Recording], reply: Reply) -> Sequence[Result]:
        self._check_open()
        wakeup = event_loops.wakeup()
        began = time.monotonic()
        until = self._end_of_wait(reply, began)
        reply.on_settled, reply.span = wakeup.wake, spans.begin_wait(self.session)
        self.buffer.request(questions, reply)
        try:
            self._wake(reply)
            if not reply.settled and not await wakeup.wait(until):
                self._leave(reply, questions, self._late(reply))
        except BaseException:  # the task was cancelled
            self._leave(reply, questions, CancelledError("the task that waited for this value was cancelled"))
            raise
        finally:
            self._note_wait(questions, began)
            if reply.span is not None:
                reply.span.end(reply.error)
        return self._answered(reply, sys._getframe(1))

    def _ask(self, questions: Sequence[Recording], reply: Reply) -> Sequence[Result]:
        if get_ident() in senders:
            check_may_wait()
        if self._sender.closed is not None:
            self._check_open()
        began, until = time.monotonic(), None
        if not reply.early:
            reply.span = spans.begin_wait(self.session)
            if self._has_timeout or timeouts.get():
                until = self._end_of_wait(reply, began)
        try:
            self.buffer.request(questions, reply)  # an interrupt before this line leaves none of them, after it all
            if not reply.early:
                self._sender.send_at_once(progress.QUIET if until is None else min(progress.QUIET, until - began))
            if not reply.settled:
                self._wake(reply)
                if not progress.wait(reply, self.progress, self.http.trouble, began, until):
                    self._leave(reply, questions, self._late(reply))
        except KeyboardInterrupt as interrupt:
            progress.explain_interrupt(self.http.trouble())
            raise interrupt.with_traceback(None) from None  # it may have interrupted a notebook's display
        finally:
            if self.buffer.profile is not None and not reply.early:
                self._note_wait(questions, began)
            if reply.span is not None:
                reply.span.end(reply.error)
        return reply.results if reply.error is None else self._answered(reply, sys._getframe(1))

    def _end_of_wait(self, reply: Reply, began: float) -> float | None:
        """Sets the reply's timeout, and returns when the wait for it is given up; None: never."""
        timeout = self.http.options.current_timeout
        if timeout is None:
            return None
        reply.timeout, reply.until = timeout, began + timeout
        return reply.until + _grace(timeout)

    def _wake(self, reply: Reply) -> None:
        self._sender.wake()
        if self._sender.over:  # another thread has closed the session since the wait began
            reply.settle(error=ended(self._sender.closed or ""))

    def _leave(self, reply: Reply, questions: Sequence[Recording], error: TeletapeError) -> None:
        """Gives up a reply: its questions are not sent, or the server stops the work that only it has read."""
        reply.settle(error=error)
        self.buffer.withdraw(questions)
        self._sender.left(reply)

    def _note_wait(self, questions: Sequence[Recording], began: float) -> None:
        profile = self.buffer.profile
        if profile is not None:
            where = questions[0][2] if questions else caller()
            profile.note_wait(call_site_text(where), time.monotonic() - began)

    def _answered(self, reply: Reply, frame: FrameType) -> Sequence[Result]:
        """Returns the results of a settled reply, or raises its error as one of the line that reads."""
        error = reply.error
        if error is not None:
            try:
                if isinstance(error, TeletapeError):
                    raise error_at(error, error.recorded, call_site_of(frame))
                raise error
            finally:
                self.buffer.raised(error, reply)
        return reply.results

    def _late(self, reply: Reply) -> DeadlineExceededError:
        """Returns the error of a read without an answer, although the server should have stopped its work."""
        trouble = self.http.trouble()
        return DeadlineExceededError(
            f"no answer within {reply.timeout:g} s, the timeout of this read: "
            + (f"{trouble}. " if trouble else "an op that cannot be stopped, or another program's work, is before it. ")
            + "What is recorded is not lost: the next read waits for it too"
        )

    def progress(self) -> Mapping[str, Any] | None:
        """Returns the progress of the running batch, or None if that is not known."""
        path = f"{self._path}?client={self.client}" if self._names_waits else self._path
        facts = self.http.try_json(path)
        return None if facts is None else facts.get("running")

    def answers(self) -> bool:
        """Whether the server knows the session; False if it does not answer for some seconds."""
        return self.http.try_json(self._path, _LIFE_SIGN) is not None

    def foreign(self, collection: str) -> list[dict[str, Any]]:
        """Returns the facts about values of other clients of the session, oldest first.

        Args:
            collection: variables or tensors.
        """
        self.sync()
        facts = self.http.get(f"{self._path}/{collection}")[collection]
        return [
            fact
            for fact in facts
            if fact["kind"] != "slices" and (isinstance(fact["id"], str) or fact["id"] >> _CLIENT_BITS != self.client)
        ]

    # ------------------------------------------------------------------------------------------------------- lifetime
    @property
    def free_bytes(self) -> int | None:
        """The free bytes for further arrays, by the last answer; None: not known."""
        limit, last = self._facts.get("memory_limit"), self._sender.last_answer
        return None if limit is None else limit - (0 if last is None else last[0])

    @property
    def lasts(self) -> bool:
        """Whether the session outlives its process: in the place of its end it is parked."""
        return bool(self._facts.get("durability", "none") != "none")

    @property
    def expires_at(self) -> float | None:
        """The end of the session if it is not used, in Unix seconds, by the last answer; None: not known."""
        last = self._sender.last_answer
        if last is not None:
            return last[1].expires_at
        text = self._facts.get("expires_at")
        return None if text is None else datetime.fromisoformat(text).timestamp()

    @property
    def batches(self) -> int:
        """The number of batches sent."""
        return self._sender.batches

    @property
    def waits(self) -> bool:
        """Whether a command that may fail is not executed yet, or a failure is not raised yet."""
        if self.buffer.failures or self._sender.in_flight is not None:
            return True
        return any(not command.structural for command in self.buffer.commands)

    @property
    def computes(self) -> bool:
        """Whether a batch is under way."""
        return self._sender.in_flight is not None

    @property
    def closed(self) -> str | None:
        """Why the session can no longer be used, or None."""
        return self._sender.closed

    def _check_open(self) -> None:
        if self._sender.closed is not None:
            raise ended(self._sender.closed)

    def cancel(self) -> None:
        """Stops the server's work for this session; the next read raises CancelledError."""
        self._check_open()
        self.http.control("POST", f"{self._path}/cancel")

    def close(self) -> None:
        """Sends waiting commands and ends the session on the server, each within the timeout; raises failures."""
        if self._sender.closed is FORKED:
            return
        timeout, is_late = self.http.options.current_timeout, False
        try:
            if self._sender.closed is None:
                self.finish()
        except DeadlineExceededError:
            is_late = True
            raise
        finally:
            if is_late:
                self._sender.abandon(LATE)
            else:
                self._sender.close(timeout)

    def abandon(self, reason: str = "the program left its block by an error") -> None:
        """Ends the session on the server at once: cancels running work, and drops waiting commands. It never raises.

        Args:
            reason: Why the session can no longer be used here.
        """
        if self._sender.closed is None:
            self._sender.abandon(reason)

    def leave(self) -> None:
        """Leaves the session to its other clients, and drops waiting commands. It never waits."""
        self._sender.leave("the program has left it")

    def detach(self) -> None:
        """Sends waiting commands and leaves the session, which goes on; raises failures."""
        if not self.stays:
            raise InvalidArgumentError(
                f"session {self.session} has no name, so that it ends with the program: give it one, "
                'tf.connect(url, session="mine")'
            )
        try:
            self.finish()
        finally:
            self._sender.detach("the program has left it, and can join it again by its name")


def _grace(timeout: float) -> float:
    """Returns the seconds to wait for an answer after the timeout, in which the server reports that it has stopped."""
    return min(_MOST_GRACE, _LEAST_GRACE + timeout / 10)


def _present(http: Connection, name: str, device: str | None) -> Any:
    """Returns the facts about the live session of that name, or None.

    Raises:
        InvalidArgumentError: It is on another device than the requested one, or no session can have the name.
    """
    if not re.fullmatch(r"_?[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise InvalidArgumentError(
            f"session={name!r} is no name for a session: expected at most 64 letters, digits, dots, hyphens and "
            "underscores, beginning with a letter or a digit"
        )
    try:
        facts = http.json("GET", f"/v1/sessions/{name}")
    except SessionEndedError as error:
        if name.startswith("_"):
            raise
        if error.details.get("reason") is not None:  # there was one
            logs.get_logger().warning("the session %s is gone, and a new one begins: %s", name, error.message)
        return None
    if device is not None and facts["device"] != ("gpu:0" if device == "gpu" else device):
        raise InvalidArgumentError(
            f"the session {name!r} at {http.url} computes on {facts['device']}, and device={device!r} was passed: "
            "leave the device out to join it, end it first, or choose another name"
        )
    return facts


def _end_unused(http: Connection, path: str, body: Any, key: str) -> None:
    """Ends a session that nothing will use, or logs that it stays.

    Args:
        http: The connection.
        path: The session's path; "": the answer to its creation is missing. A repeated request has the same answer.
        body: The body of the creation.
        key: The creation's Idempotency-Key.
    """
    if not path:
        created = http.try_create("/v1/sessions", body, key, _FAREWELL)
        path = "" if created is None else f"/v1/sessions/{created['id']}"
    if not path or not http.try_delete(path, _FAREWELL):
        logs.get_logger().warning(
            "interrupted while connecting to %s, which may have made a session and did not answer again in %g s: if it "
            "has, the session ends by itself when it has been idle for the server's limit",
            http.url,
            _FAREWELL,
        )
