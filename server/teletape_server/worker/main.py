"""The worker process: runs one session's requests one after the other, and ends with the server.

One thread reads requests and computes; another one waits for cancels, pings and the server's end (`control`). The
process starts from a forkserver that has loaded this module.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.errors import InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.recording.progress import TimeBudget
from teletape_engine.session.session import Session
from teletape_server import handlers  # noqa: F401  # it registers the methods
from teletape_server.handlers.idempotency import REPLAYED, STORED, Once, Refusal
from teletape_server.handlers.methods import METHODS, TRACED, Request, Result
from teletape_server.handlers.published.versions import keep_file, versions_of
from teletape_server.handlers.session.preconditions import name_session
from teletape_server.ipc.channel import INLINE, Channel
from teletape_server.ipc.confinement import User, confine, limit_memory, name_kernel_folder
from teletape_server.ipc.control import Sockets, Watcher
from teletape_server.ipc.heads import Approval
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import Page
from teletape_server.ipc.rights import NO_RIGHT, Right
from teletape_server.worker.answers import Answers
from teletape_server.worker.durability import Durability
from teletape_server.worker.lent.connections import DirectConnections
from teletape_server.worker.reservation import NotAdmittedError, Reservation
from teletape_server.worker.time_limits import TimeLimits
from teletape_server.worker.turns import Process
from teletape_wire import Structures

_VIEW_FROM: Final = 64 << 10  # bytes from which a tensor may stay in the body's memory
_ANSWERS_SECONDS: Final = 600.0  # clients' answers are kept at least this long, and about twice as long at most
_LOOKS: Final = 10  # in that time at an idle session


def main(sockets: Sockets, user: User | None = None) -> None:
    """Runs the process until the server closes a socket.

    Args:
        sockets: The connection to the server.
        user: Whom the process runs as; None: the server's user.

    Messages in: ("open", start) with the page, ("do", number, method, params, content type, has body, after), where
        `after` are seconds since the request before it was sent, None if that is answered; ("trim",);
        ("lend", id, slot, approval, times) with files, ("reclaimed", id); ("map", name) with a file; ("files", number)
        with those of the session's next base and log; ("suspend",).
    Messages out: ("ready", recovered, last client) or ("failed", code, text, details), of an OSError without a code;
        ("progress", number, …); ("reply", number, …); ("trimmed",), ("defect", number, traceback),
        ("ran", number, facts, slow), ("returned", id, unsent), ("reclaimed", id); ("checkpointed", number) when the
        session has a new base, ("suspended", whether it has). Requests that the process has read have negative numbers.
    """
    confine(user)
    # A batch of 100,000 commands is 300,000 new objects and no garbage; the default thresholds double its cost.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    watcher = Watcher(sockets.control)
    watcher.start()
    Worker(Channel(sockets.requests, takes_files=True), watcher).serve()


class Worker:
    """The loop over requests, and the state between them.

    Args:
        channel: The connection to the server.
        watcher: Knows what the server has cancelled.
        process: The process; None: one of its own.

    Attributes:
        answers: Sends messages to the server.
    """

    def __init__(self, channel: Channel, watcher: Watcher, process: Process | None = None) -> None:
        self._channel = channel
        self._watcher = watcher
        self._process = process or Process()
        self.answers = Answers(channel, self._process.leave)
        self._session: Session | None = None
        self._renews = False  # whether each request has a session that has nothing
        self._time_limit = self._slow_after = float("inf")
        self._right = NO_RIGHT
        self._budgets: Callable[[float, float], TimeBudget] | None = None  # from limit and deadline; None: on a GPU
        self._once = Once(0.0)  # `_open` sets the window
        self._structures = Structures()
        self._forget_at = time.monotonic() + _ANSWERS_SECONDS
        self._wait = _ANSWERS_SECONDS / _LOOKS
        channel.wait_at_most(self._wait)
        self._direct = DirectConnections(channel.sock, self.run_lent, self.answers, self._has_version)
        self._page: Page  # from `_open` on
        self._durability: Durability | None = None  # None: nothing of the session outlives this process
        self._opening = 0.0  # seconds of CPU time, which are not the requests'
        self._sent = 0.0  # when the last request was sent, on the clock of this process

    def serve(self) -> None:
        """Answers requests until the server has closed the connection."""
        while True:
            head, body = self._next_message()
            if head[0] == "open":
                self._open(head[1], self._channel.files)
            elif head[0] == "trim":
                self._channel.trim()
                self._reservation.give_back()
                self.answers.send(("trimmed",))
            elif head[0] == "map":
                keep_file(head[1], self._channel.files)
            elif head[0] == "files":
                self._take_log(head[1], self._channel.files)
            elif head[0] == "suspend":
                self.answers.send(("suspended", self._durability is not None and self._durability.checkpoint()))
            elif head[0] == "lend":
                self._direct.add(head[1], head[2], Approval(*head[3]), Times(*head[4]), self._channel.files)
            elif head[0] == "reclaimed":
                self._direct.drop(head[1])
                self.answers.send(head)
            else:
                self._direct.finish_waiting()
                self._handle(head, body)
                if self._renews and self._session is not None:
                    self._session.renew()
            del head, body  # or the last body's memory would stay in use while the loop waits

    def _next_message(self) -> tuple[Any, memoryview | None]:
        """Waits for a message, and serves connections meanwhile; at times, clients' old answers are forgotten."""
        while True:
            has_message = self._channel.has_early or not self._direct or self._direct.serve(self._wait)
            message = self._received_message() if has_message else None
            now = time.monotonic()
            if now >= self._forget_at:
                self._forget_at = now + _ANSWERS_SECONDS
                if self._session is not None:
                    self._session.forget_old_answers()
            if message is not None:
                return message

    def _received_message(self) -> tuple[Any, memoryview | None] | None:
        """Returns the next message, or None if none came for a while."""
        self._direct.settle()
        try:
            message = self._channel.receive()
        except BlockingIOError:
            return None
        except OSError:
            message = None
        if message is None:
            self._process.leave()
        return message

    def _open(self, start: Mapping[str, Any], files: Sequence[int]) -> None:
        try:
            page, *files = files
            self._page = self._direct.page = Page(page)
            os.close(page)
            if start["device"] == "cpu":  # CUDA reserves address space by the terabyte
                limit_memory(start["memory_limit"], start["max_body"])
            else:
                name_kernel_folder()
            durable = start.get("durable")
            self._session = Session(
                start["device"],
                memory_limit=start["memory_limit"],
                max_iterations=start["max_iterations"],
                clock=time.perf_counter,
                host_memory=self._channel.array,
            )
            self._reservation = Reservation(self._session, self._page, self._watcher)
            self._renews = start["resets"]
            self._time_limit, self._slow_after = start["time_limit"], start["slow_after"]
            self._right = Right(*start["right"])
            if start["device"] == "cpu":  # how long a GPU takes is not estimated
                # Imported here: the server imports this module, and must measure nothing.
                from teletape_server.worker.speed import Budget

                self._budgets = Budget
            self._once = Once(start["idempotency_window"])
            if durable is not None:
                durable = {**durable, "last_client": start["last_client"]}
                calls = self.answers.send, self._wait_for_files, self._lose_disk
                self._durability = Durability(self._session, self._once, durable, files, self._page, *calls)
                self.answers.gate = self._durability.gate
                self._page.bytes_in_use = self._session.bytes_in_use()
                name_session(self._session, durable["uid"])
            self._opening = time.thread_time()
            recovered = None if self._durability is None else self._durability.recovered
            self.answers.send(("ready", recovered, self._session.last_client))
        except TeletapeError as error:
            self.answers.send(("failed", error.code, error.message, error.details))
        except (OSError, NotAdmittedError) as error:  # a full disk, too little memory: it may succeed later
            self.answers.send(("failed", "", str(error), {}))
        except Exception as error:
            self.answers.say_defect(0)
            self.answers.send(("failed", "internal", f"device {start['device']}: {type(error).__name__}: {error}", {}))

    def _wait_for_files(self) -> None:
        """Reads the files of the session's next log, or that there are none; for a minute at most."""
        if message := self._channel.receive_next("files"):
            self._take_log(message[0][1], self._channel.files)

    def _take_log(self, number: int, files: Sequence[int]) -> None:
        assert self._durability is not None, "files came for a session without a log"
        self._durability.add_files(number, files)

    def _handle(self, head: Any, body: memoryview | None) -> None:
        _, number, method, params, content_type, has_body, after = head
        received = time.monotonic()
        if after is not None:  # it has waited for the one before it
            received = min(self._sent + after, received)
        self._sent = received
        try:
            if has_body and body is None:
                raise ResourceExhaustedError("the session's process has too little memory for the request's body")
            content = memoryview(b"") if body is None else body
            limits = TimeLimits(self._time_limit, params, received)
            with self._turn(number, limits):
                self._page.request = number
                if self._process.is_shared:
                    self.answers.send(("began", number))
                request = self._request(number, params, content_type, content, received, limits)
                self._begin(method, request)
                try:
                    reply = self._once.run(
                        params.get("idempotency_key"), method, request, functools.partial(self._run, number)
                    )
                finally:
                    self._note_end(number, method, request, request.started)
            if isinstance(reply, Refusal):
                headers = None if STORED in params else REPLAYED
                self.answers.refuse(number, reply.cls(reply.message, **reply.details), headers=headers)
            else:
                self._note_bytes(reply)
                self.answers.reply(number, reply)
        # The error stays inside its clause: a variable that outlived it would keep this frame, and with it the body.
        except TeletapeError as error:
            self.answers.refuse(number, error)

    def _request(
        self,
        number: int,
        params: Mapping[str, Any],
        content_type: str,
        content: memoryview,
        received: float,
        limits: TimeLimits,
        prefix: wire.Prefix | None = None,
    ) -> Request:
        limit, end = limits.begin()
        others = functools.partial(self._give_way, number) if self._process.is_shared else None
        return Request(
            params,
            content_type,
            content,
            # A small tensor must not keep a large body alive.
            sys.maxsize if len(content) <= INLINE else max(_VIEW_FROM, len(content) // 8),
            limits.canceller(self._watcher, number, end, others),
            self.answers.reporter(number),
            received,
            None if self._budgets is None else self._budgets(limit, end),
            structures=self._structures,
            prefix=prefix,
        )

    def run_lent(
        self,
        number: int,
        method: str,
        params: dict[str, Any],
        content_type: str,
        body: memoryview,
        received: float,
        prefix: wire.Prefix | None,
    ) -> Result:
        """Runs a request that was read here, and returns its result.

        Raises:
            TeletapeError: It is refused, which the server answers.
        """
        self._sent = received
        try:
            limits = TimeLimits(self._time_limit, params, received)
            with self._turn(-number, limits):
                request = self._request(-number, params, content_type, body, received, limits, prefix)
                self._begin(method, request)
                try:
                    result = self._run(-number, method, request)
                finally:
                    self._note_end(-number, method, request, received)
        finally:
            if self._renews and self._session is not None:
                self._session.renew()
        self._note_bytes(result)
        if result.length <= INLINE and not self.answers.may_leave():
            # Its parts are views of arrays, which the next request changes.
            result = dataclasses.replace(result, buffers=[b"".join(result.buffers)])
        return result

    def _has_version(self, version: str) -> bool:
        """Returns whether a version of a published function is loaded."""
        return self._session is not None and version in versions_of(self._session)

    def _turn(self, number: int, limits: TimeLimits) -> AbstractContextManager[None]:
        """A block in which a request may compute; it may have to wait for that."""
        if self.answers.gate is not None:
            self.answers.gate.begin()
        return self._process.turn(self._right, lambda: self._waits_no_longer(number) or limits.caller_waits_no_longer)

    def _give_way(self, number: int) -> float:
        """Lets others compute whose turn it is; returns the seconds that they took."""
        if seconds := self._process.give_way():
            self.answers.send(("began", number))
        return seconds

    def _begin(self, method: str, request: Request) -> None:
        """Prepares for a request, and shows in the page that it runs."""
        if self._durability is not None:
            self._durability.begin(method, request)
        self._reservation.is_over = request.cancelled
        self._page.begin_request()

    def _note_end(self, number: int, method: str, request: Request, began: float) -> None:
        """Writes down what a request did, and shows in the page that it has run.

        If it cannot be written, the process ends, and the next one knows nothing of it.
        """
        is_frame = request.content_type == wire.FRAME_TYPE
        failure: OSError | None = None
        if self._durability is not None:
            try:
                self._durability.commit(request, is_frame=is_frame)
            except OSError as error:
                failure = error
            if self.answers.gate is not None:
                self.answers.gate.end()
        now, cpu_seconds = time.monotonic(), time.thread_time() - self._opening
        self._page.end_request(now - began, cpu_seconds, now - request.received, is_frame=is_frame)
        is_slow = now - began >= self._slow_after
        if is_slow or TRACED in request.params:
            self.answers.say_run(number, method, request, now - began, is_slow=is_slow)
        if failure is not None:  # the request has ended: it is not what ends the process
            self._lose_disk(f"its disk failed ({failure})")
            self._process.leave()

    def _lose_disk(self, why: str) -> None:
        """Ends the connection to the server, and with it soon the session here; in any thread."""
        self.answers.say_broken(why, may_be_by_request=False)
        self._channel.sock.shutdown(socket.SHUT_RDWR)

    def _note_bytes(self, result: Result) -> None:
        bytes_in_use = result.facts.get("bytes_in_use")
        if bytes_in_use is not None:
            self._page.bytes_in_use = bytes_in_use

    def _run(self, number: int, method: str, request: Request) -> Result:
        """Runs a method; whatever it raises is an error of the engine, which is stored if the request has a key."""
        assert self._session is not None, "a request came before the session was opened"
        try:
            if request.content_type == wire.FRAME_TYPE:  # its numbers have dtypes
                return METHODS[method](self._session, request)
            with wire.numbers_alone(request.params.get("alone")):
                return METHODS[method](self._session, request)
        except TeletapeError as error:
            if isinstance(error, InternalError):
                self._check_device()
            raise
        except MemoryError:
            raise ResourceExhaustedError("the session's process has reached its memory limit") from None
        except Exception as error:
            self.answers.say_defect(number)
            self._check_device()
            raise InternalError(f"{method}: {type(error).__name__}: {error}") from None

    def _check_device(self) -> None:
        """Ends the process if an error of its device lasts."""
        assert self._session is not None
        why = self._session.broken_device()
        if why:
            self.answers.say_broken(why)
            self._process.break_down(why)

    def close(self) -> None:
        """Lets go of the session's files, in a process that goes on."""
        if self._durability is not None:
            self._durability.close()

    def _waits_no_longer(self, number: int) -> bool:
        """Returns whether a request that waits for its turn is cancelled; after the session's end it must not run."""
        if self._watcher.has_ended:
            self._process.leave()
        return self._watcher.is_cancelled(number)
