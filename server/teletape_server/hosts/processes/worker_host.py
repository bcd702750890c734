"""The front's side of one worker process: sends it requests, receives progress and replies, and ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from teletape_engine.errors import TeletapeError, tree
from teletape_server.durable.open_logs import OpenLog
from teletape_server.handlers.methods import TRACED
from teletape_server.hosts.loans import Lender, LendingSession, Loan, Loans
from teletape_server.hosts.processes.memory import ProcessMemory
from teletape_server.hosts.processes.notices import Notices
from teletape_server.hosts.processes.outbox import Outbox
from teletape_server.hosts.processes.reaper import ProcessOfHost, Reaper
from teletape_server.hosts.processes.watchdog import Watchdog, died, late
from teletape_server.hosts.protocols import Beginning, BodyBuffer, Ending, HostFacts, HostGone, Reply, Running, Start
from teletape_server.hosts.running import fail, left_by
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.control import Control, Sockets
from teletape_server.ipc.heads import Approval
from teletape_server.ipc.leases import Reason
from teletape_server.ipc.page import Page
from teletape_server.ipc.processes import CpuClock
from teletape_server.ipc.shared_memory import IdleMemory, MessageBody

_GRACE: Final = 2.0  # seconds that a process may take to end by itself
_SHARED_GRACE: Final = 30.0  # likewise, of a session that shares its process: the others end with it
_MESSAGES_AT_ONCE: Final = 16  # read before other tasks get their turn

log = logging.getLogger("teletape")


class WorkerHost:
    """Implements `Host` with one worker process, or with a seat in one.

    Args:
        process: The process.
        sockets: The connection to it.
        watchdog: Decides when it has to be ended from outside; see `watch`.
        idle_memory: Bounds the memory that is kept for further requests of all processes.
        is_shared: Whether other sessions are in the process: requests wait for their turn there.

    Attributes:
        name: What the log calls it.
        pid: The process id.
        owner: Whose session it has; empty before it has one.
        channel: The connection to the process.
        gone: Resolves after the process has ended.
        idle_since: When it gave its last reply, on the loop's clock.
    """

    def __init__(
        self,
        process: ProcessOfHost,
        sockets: Sockets,
        watchdog: Watchdog,
        idle_memory: IdleMemory | None = None,
        *,
        is_shared: bool = False,
    ) -> None:
        self.name, self.log_facts = f"process {process.pid}", dict[str, str]()
        self.running: set[Running] = set()
        self.left: list[Running] = []
        self.pid, self.owner = process.pid, ""
        self._process, self._is_shared = process, is_shared
        self._announced: Ending | None = None  # the process has said why it is about to end
        self._is_dying = False  # it has ended, and what comes until that is known in full is for another one
        self.channel = Channel(sockets.requests, idle_memory)
        self._outbox, self._control = Outbox(self.channel), Control(sockets.control)
        self._loop = asyncio.get_running_loop()
        self.idle_since, self._watchdog = self._loop.time(), watchdog
        self.ended: asyncio.Future[Ending] = self._loop.create_future()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._requests: dict[int, Running] = {}
        self._notices = Notices(self)
        self._memory = ProcessMemory(process.pid, self._control, partial(self._outbox.send, ("trim",)))
        self._last_number = 0
        self._sent_at = 0.0  # when the last unanswered request was sent, on the monotonic clock
        self._loans: Loans | None = None  # from `open` on
        self._facts = HostFacts()
        self._clock = CpuClock(None if is_shared else process.pid)
        self._log: OpenLog | None = None
        self._suspended: asyncio.Future[bool] = self._loop.create_future()
        self.beginning, self._reaper = Beginning(), Reaper(process)
        self.gone = self._reaper.gone
        for sock, on_readable in zip(sockets, (self._on_readable, self._on_control), strict=True):
            sock.setblocking(False)
            self._loop.add_reader(sock, on_readable)

    async def open(self, start: Start) -> None:
        """Opens the session.

        Raises:
            TeletapeError: The device cannot be used.
            HostGone: The process ended.
            OSError: There are too many open files, or the session's files could not be written.
        """
        self.owner = start.owner
        page, file = Page.new()
        self._memory.begin(page, start.memory)
        self._loans = Loans(page, self._outbox.send_files, self._begin_lent, lambda: self._watchdog.began)
        self._watchdog.time_limit, self._watchdog.needs_cpu = start.time_limit, start.device == "cpu"
        self._log = start.log
        try:
            files = [] if start.log is None else start.log.files(file)
        except OSError:
            os.close(file)
            raise
        self._outbox.send_files(("open", start.facts()), [file, *files])
        await self._opened
        if start.log is not None:
            start.log.note_begun()

    def body_buffer(self, length: int) -> MessageBody:
        """Returns shared memory for a body; see `Host`."""
        if self._is_dying:
            return MessageBody(length, None, None)
        if self._outbox.is_closed:
            raise HostGone("the session is ending")
        return self.channel.body(length)

    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        content_type: str = "",
        body: BodyBuffer | None = None,
        running: Running | None = None,
    ) -> Running:
        """Sends the request to the process, which runs one at a time, in order; see `Host`."""
        if self._outbox.is_closed and not self._is_dying:
            raise HostGone("the session is ending")
        assert body is None or isinstance(body, MessageBody), "the buffer belongs to another kind of host"
        self._last_number += 1
        running = running or Running(self._loop.create_future())
        running.cancel = partial(self._cancel_one, self._last_number)
        now = time.monotonic()
        # For the process, which cannot see how long a message waits for it.
        after = now - self._sent_at if self._requests else None
        self._sent_at = now
        if not self._is_dying:
            params = params if running.trace is None else {**params, TRACED: True}
            self._outbox.send(("do", self._last_number, method, params, content_type, body is not None, after), body)
        if not self._requests and not self._is_shared:
            self._watchdog.begin(self._loop.time())
        self._requests[self._last_number] = running
        self.running.add(running)
        return running

    def map(self, name: str, file: int) -> None:
        """Sends the file to the process; see `Host`."""
        self._outbox.send_files(("map", name), [file])

    def _begin_lent(self, number: int, seconds: float) -> Running:
        """Notes a request that the process has read itself, and that has run for some seconds; nothing else runs."""
        began, cancel = time.monotonic() - seconds, partial(self._cancel_one, number)
        running = Running(self._loop.create_future(), cancel=cancel, began=began)
        if self.ended.done():
            running.fail(self.ended.result().text)
            return running
        self._watchdog.begin(self._loop.time() - seconds)
        self._sent_at = self._sent_at if self._requests else began
        self._requests = {number: running, **self._requests}
        self.running.add(running)
        return running

    def facts(self) -> HostFacts:
        """Reads the page that the process writes; see `Host`."""
        if self._loans is None or self.ended.done():
            return self._facts
        loans, began = self._loans, self._watchdog.began
        ran, kernel = self._loop.time() - began if began is not None else 0.0, self._clock.seconds()
        requests = len(self._requests)
        self._facts = HostFacts.of(loans.page, loans, requests, running_seconds=ran, kernel_seconds=kernel)
        return self._facts

    def lend(
        self, lender: Lender, transport: asyncio.BaseTransport, approval: Approval, session: LendingSession
    ) -> Loan | None:
        """Lends a connection; see `Host`. In a shared process its requests would have to wait for their turn."""
        has_tls = transport.get_extra_info("ssl_object") is not None
        if self._loans is None or self._is_shared or self._outbox.is_closed or has_tls:
            return None
        return self._loans.lend(lender, transport.get_extra_info("socket").fileno(), approval, session)

    @property
    def lent(self) -> int:
        """Connections that are lent to it."""
        return 0 if self._loans is None else len(self._loans)

    def reclaim(self) -> None:
        """Reclaims the connections with a running request; see `Host`."""
        if self._loans is not None:
            self._loans.reclaim_running()

    async def recall(self) -> None:
        """Reclaims all connections; see `Host`."""
        if self._loans is not None:
            await self._loans.recall()

    async def suspend(self) -> bool:
        """Lets the process write down what the session has, and ends it; see `Host`."""
        if self._log is None:
            return False
        if not self._outbox.is_closed:
            self._outbox.send(("suspend",))
            waited: list[asyncio.Future[Any]] = [self._suspended, self.ended]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        await self.end(Ending(Reason.SHUTDOWN, "its session was set aside"))
        return self._suspended.done() and self._suspended.result()

    def cancel(self, *, is_stopping: bool = False) -> None:
        """Cancels every unanswered request, with one message: the process must not see only the first; see `Host`."""
        if self._outbox.is_closed:
            return
        if is_stopping:
            self._control.stopping()
        self._control.cancel(self._last_number)
        frames = [-number for number in self._requests if number < 0]
        if frames:
            self._control.cancel_lent(max(frames))

    def _cancel_one(self, number: int) -> None:
        """Cancels a request if it is not answered yet."""
        if number in self._requests and not self._outbox.is_closed:
            self._control.cancel_one(number)

    async def end(self, ending: Ending) -> None:
        """Closes the connection, which ends the process; kills it if it does not end by itself. See `Host`."""
        self._close()
        self._fail_all(ending)
        self._reap()
        await asyncio.shield(self.gone)  # a caller that leaves must not end what all wait for

    def watch(self, seconds: float) -> None:
        """Ends the process if it computes too long or is stuck; called at regular times, `seconds` after each other."""
        if self._outbox.is_closed:
            return
        self._control.send_again()
        ending = self._watchdog.tick(self._loop.time(), seconds)
        if ending is None:
            if self._watchdog.wants_ping():
                self._control.ping()
            return
        if ending.reason is Reason.DEADLINE:
            self._refuse_running(ending)
        self._close()
        self._is_dying = self._log is not None
        self._process.kill()
        self._fail_all(ending)
        self._reap()

    def answers_memory(self) -> int:
        """Returns the bytes of the process's shared memory that is mapped here."""
        return sum(map(len, self.channel.maps.values()))

    def trim(self, seconds: float) -> None:
        """Frees unused shared memory on both sides if no request came for `seconds`."""
        if self._outbox.is_closed:
            return
        idle = not self._requests and not self._loans and self._loop.time() - self.idle_since >= seconds
        if idle:
            self.channel.trim()
        if self.channel.pool.unannounced or (idle and (self.channel.maps or self._memory.has_spare())):
            self._outbox.send(("trim",))

    def _refuse_running(self, ending: Ending) -> None:
        """Answers the request that runs, the oldest one, with deadline_exceeded."""
        number = next(iter(self._requests))
        running = self._requests.pop(number)
        self.running.discard(running)
        if not running.reply.done():
            running.reply.set_result(late(ending, self._watchdog.time_limit))

    # ------------------------------------------------------------------------------------------------------ receiving
    def _on_readable(self) -> None:
        for _ in range(_MESSAGES_AT_ONCE):
            try:
                message = self.channel.receive()
            except BlockingIOError:
                return
            except OSError:
                message = None
            if message is None:
                self._close()
                self._is_dying = self._log is not None
                self._reap().add_done_callback(self._on_reaped)
                return
            self._on_message(*message)

    def _on_control(self) -> None:
        try:
            message = self._control.receive()
        except BlockingIOError:
            return
        if message is None:  # the process has ended; `_on_readable` learns of it, after the last messages
            self._loop.remove_reader(self._control.sock)
        elif isinstance(message, float):
            self._watchdog.sign_of_life(message)
        else:
            self._memory.on_question(message)

    def _on_message(self, head: Any, body: memoryview | None) -> None:
        match head:
            case ("progress", number, done, total, iteration, iterations, loss):
                if running := self._requests.get(number):
                    running.done, running.total = done, total
                    running.iteration, running.iterations, running.loss = iteration, iterations, loss
            case ("reply", number, code, content_type, facts):
                if number < 0 and number not in self._requests and self._loans is not None:
                    self._loans.on_reply(-number)
                self._notices.on_reply(number, self._requests.get(number))
                if number < 0 and number not in self._requests:  # its caller has left
                    return
                running = self._requests.pop(number)
                self.running.discard(running)
                self.idle_since = self._loop.time()
                self._watchdog.begin(self.idle_since if self._requests and not self._is_shared else None)
                if not running.reply.done():
                    running.reply.set_result(Reply(code, content_type, body or memoryview(b""), facts))
            case ("began", _):  # its turn has come
                self._watchdog.begin(self._loop.time())
            case ("defect", number, text):
                self._notices.defect(number, text, self._requests.get(number))
            case ("ran", number, facts, is_slow):
                self._notices.ran(self._requests.get(number), facts, is_slow=is_slow)
            case ("broken", why, may_be_by_request):
                self._announced = Ending(Reason.WORKER_DIED, why, may_be_by_request)
            case ("returned", id, unsent) if self._loans is not None:
                self._loans.on_returned(id, unsent)
            case ("reclaimed", id) if self._loans is not None:
                self._loans.on_dropped(id)
            case ("checkpointed", number) if self._log is not None:
                advanced = self._loop.run_in_executor(None, self._log.advance, number)
                advanced.add_done_callback(partial(self._send_files, number + 1))
            case ("suspended", is_base):
                self._suspended.set_result(is_base)
            case ("ready", recovered, last_client):
                self.beginning = Beginning(recovered, last_client)
                self._clock.begin()
                if not self._opened.done():  # who waited for it may have left
                    self._opened.set_result(None)
            case ("failed", code, text, details) if not self._opened.done():
                self._opened.set_exception(tree().get(code, TeletapeError)(text, **details) if code else OSError(text))

    def _send_files(self, number: int, advanced: asyncio.Future[list[int]]) -> None:
        """Sends the files of the next base and log, if they could be opened."""
        if advanced.cancelled():  # the server ends
            return
        if (error := advanced.exception()) is None:
            self._outbox.send_files(("files", number), advanced.result())
        elif not self._outbox.is_closed:
            log.warning("%s: the files of its next log could not be opened: %s", self.name, error)
            self._outbox.send_files(("files", number), [])

    # --------------------------------------------------------------------------------------------------------- ending
    def _close(self) -> None:
        if self._outbox.is_closed:
            return
        self._loop.remove_reader(self.channel.sock)
        self._loop.remove_reader(self._control.sock)
        self._outbox.close()
        self._memory.close()
        self.channel.close()
        self._control.sock.close()

    def _fail_all(self, ending: Ending) -> None:
        """Makes every unanswered request raise HostGone, but those that are left to another host."""
        if not self.ended.done():  # first: whoever waits for a reply asks why the session ended
            self.facts()  # the last ones
            if self._log is not None and self._loans is not None:
                page = self._loans.page
                self.left = left_by(self._requests, page.request, is_running=page.is_running)
            self.ended.set_result(ending)
            self._is_dying = False
            if self._loans is not None:
                self._loop.call_soon(self._loans.end)  # after those who learn why: the callers ask them
        for running in self._requests.values():
            if running not in self.left:
                running.fail(ending.text)
        self._requests.clear()
        self.running.clear()
        fail(self._opened, ending.text)

    def _on_reaped(self, reaping: asyncio.Task[int | None]) -> None:
        self._fail_all(died(reaping.result(), self._announced, is_shared=self._is_shared))

    def _reap(self) -> asyncio.Task[int | None]:
        return self._reaper.reap(_SHARED_GRACE if self._is_shared else _GRACE)
