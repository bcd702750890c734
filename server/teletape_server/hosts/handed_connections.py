"""The server's side of connections that a session's process serves: it looks at them, and takes them back.

While frames come quickly one after the other, their connection stays with the process. The server looks at its words in
the shared page from time to time, and takes it back when a frame runs for long, when the process has other work that
takes long, or when no frame comes. So all that takes long is the server's, as it is without this.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from teletape_server.hosts.running import Running
from teletape_server.ipc.heads import Approval
from teletape_server.ipc.leases import Lease
from teletape_server.ipc.page import SLOTS, Page, RunningFrame
from teletape_server.ipc.token import Token

_LOOK_SECONDS: Final = 0.05  # between two looks
_LONG_SECONDS: Final = 0.05  # that a request may run before its connection is taken back
_IDLE_SECONDS: Final = 1.0  # without a frame
_RECALL_SECONDS: Final = 1.0  # that a process may take to write an answer
_CLOCK_SECONDS: Final = 0.5  # that the time of day may move against the monotonic clock


class HandedConnection(Protocol):
    """What a connection of the server learns whose frames a session's process has read."""

    def returned(self, unsent: bytes, *, is_idle: bool) -> None:
        """Goes on as before, after the rest of an answer.

        Args:
            unsent: What the caller has not taken yet of the last answer.
            is_idle: Whether the process would have served further frames.
        """

    def taken_over(self, frame: RunningFrame, running: Running) -> None:
        """Answers a frame that runs."""

    def lost(self) -> None:
        """Closes: the process has ended while it wrote an answer."""


class Handover:
    """A connection that a process has.

    Attributes:
        id: Its number.
        slot: Its words in the page.
        token: The right to use it.
        connection: Its connection of the server.
        count: Frames at the last look.
        seconds: Without a frame.
    """

    __slots__ = ("connection", "count", "id", "seconds", "slot", "token")

    def __init__(self, id: int, slot: int, token: Token, connection: HandedConnection) -> None:
        self.id, self.slot, self.token, self.connection = id, slot, token, connection
        self.count, self.seconds = 0, 0.0


class HandedConnections:
    """The connections of one session that its process serves.

    Args:
        send: Sends a message to the process, with copies of the file descriptors.
        begin: Notes a frame of the process as a running request, which began some seconds ago.
        busy_since: Returns when the oldest unanswered request of the server was sent, on the loop's clock; or None.

    Attributes:
        refuses: Whether no connection is handed over.
    """

    def __init__(
        self,
        send: Callable[[Any, list[int]], None],
        begin: Callable[[int, float], Running],
        busy_since: Callable[[], float | None],
    ) -> None:
        self._send, self._begin, self._busy_since = send, begin, busy_since
        self._loop = asyncio.get_running_loop()
        self._page: Page | None = None
        self._frames = 0  # of connections that have come back
        self._page_fd = -1
        self.refuses = False
        self._lease: Lease | None = None
        self._clock: Callable[[], float] = time.time
        self._ahead = 0.0
        self._last_id = 0
        self._by_id: dict[int, Handover] = {}
        self._spoiled_slots: dict[int, int] = {}  # by the number of a connection that is gone
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def __len__(self) -> int:
        return len(self._by_id)

    # ----------------------------------------------------------------------------------------------------- handing over
    def attach(self, lease: Lease, clock: Callable[[], float]) -> None:
        """Notes the session's lease, and the clock of its times, in Unix seconds."""
        self._lease, self._clock = lease, clock

    def ahead(self) -> float:
        """Returns the seconds that the time of day is ahead of the monotonic clock."""
        return self._clock() - time.monotonic()

    def hand_over(
        self, connection: HandedConnection, fd: int, approval: Callable[[float, Lease], Approval], bytes_in_use: int
    ) -> Handover | None:
        """Gives a connection to the process, whose messages it must not read until it gets it back.

        Args:
            connection: The connection.
            fd: Its socket, which stays open.
            approval: Returns what the process has to know, given `ahead` and the lease.
            bytes_in_use: Of the session.

        Returns:
            The handover; None if there are too many already, or too few file descriptors.
        """
        lease = None if self.refuses else self._lease
        used = {handover.slot for handover in self._by_id.values()} | {*self._spoiled_slots.values()}
        if lease is None or self._ended or len(used) >= SLOTS:
            return None
        try:
            page = self._page or self._new_page(bytes_in_use)
            token = Token.new()
        except OSError:
            return None
        slot = min(set(range(SLOTS)) - used)
        page.clear(slot)
        page.until = lease.terms.until
        self._ahead = self.ahead()
        self._last_id += 1
        files: list[int] = []
        try:
            files += [os.dup(fd), token.duplicate(), os.dup(self._page_fd)]
        except OSError:
            for file in files:
                os.close(file)
            token.close()
            return None
        handover = self._by_id[self._last_id] = Handover(self._last_id, slot, token, connection)
        self._send(("take over", handover.id, slot, approval(self._ahead, lease)), files)
        self._look_later()
        return handover

    def _new_page(self, bytes_in_use: int) -> Page:
        self._page, self._page_fd = Page.new()
        self._page.bytes_in_use = bytes_in_use
        return self._page

    # --------------------------------------------------------------------------------------------------------- looking
    def note_work(self) -> None:
        """Notes in the lease the last work of the process."""
        if self._page is not None and self._lease is not None and (worked := self._page.worked):
            self._lease.work(worked)

    def note_terms(self) -> None:
        """Passes the terms of the lease to the process, after they have changed."""
        if self._page is not None and self._lease is not None:
            self._page.until = self._lease.terms.until

    @property
    def bytes_in_use(self) -> int | None:
        """The bytes of the session's arrays as of the last answer; None: the process does not write them here."""
        return None if self._page is None else self._page.bytes_in_use

    @property
    def frames(self) -> int:
        """The frames that the process has read itself."""
        page = self._page
        return self._frames + (0 if page is None else sum(page.count(each.slot) for each in self._by_id.values()))

    def _look_later(self) -> None:
        if self._timer is None and self._by_id:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        page = self._page
        assert page is not None
        is_busy = self._is_busy(page) or abs(self.ahead() - self._ahead) > _CLOCK_SECONDS
        for handover in [*self._by_id.values()]:
            count = page.count(handover.slot)
            handover.seconds = 0.0 if count != handover.count else handover.seconds + _LOOK_SECONDS
            handover.count = count
            if is_busy or handover.seconds > _IDLE_SECONDS:
                self.take_back(handover)
        self._look_later()

    def _is_busy(self, page: Page) -> bool:
        """Returns whether the process works for long, on a frame or on a request of the server."""
        began = self._busy_since()
        if began is not None and self._loop.time() - began > _LONG_SECONDS:
            return True
        now = time.monotonic()
        return any(
            page.number(handover.slot) and now - page.since(handover.slot) > _LONG_SECONDS
            for handover in self._by_id.values()
        )

    # ------------------------------------------------------------------------------------------------------ taking back
    def take_back(self, handover: Handover) -> bool:
        """Takes a connection back, with the frame that runs; returns False if the process is writing an answer."""
        if handover.id not in self._by_id or not handover.token.take():
            return False
        self._take(handover)
        return True

    def take_back_running(self) -> None:
        """Takes those back whose frames run: a request of the server finds them counted, can join and cancel them."""
        if self._by_id and self._page is not None:
            for handover in [*self._by_id.values()]:
                if self._page.number(handover.slot):
                    self.take_back(handover)

    def take_back_all(self) -> bool:
        """Takes all back; returns whether there is none left."""
        for handover in [*self._by_id.values()]:
            self.take_back(handover)
        return not self._by_id

    async def recall(self) -> None:
        """Takes all back, and waits until what has come over them is read."""
        end = time.monotonic() + _RECALL_SECONDS
        while not self.take_back_all() and time.monotonic() < end:  # noqa: ASYNC110  # no event comes
            await asyncio.sleep(0.001)
        for _ in range(2):  # turns of the loop: in one of them it reads
            await asyncio.sleep(0)

    def abandon(self, handover: Handover) -> None:
        """Lets go of a connection that is closed; a frame that runs goes on."""
        if handover.id in self._by_id and handover.token.take():
            self._take(handover, is_open=False)
        else:
            self._spoiled_slots[handover.id] = handover.slot  # the process may still write there
            self._remove(handover)

    def on_back(self, id: int, unsent: bytes) -> None:
        """Notes that the process has given a connection back."""
        handover = self._by_id.get(id)
        if handover is not None and self._page is not None:
            handover.count = self._page.count(handover.slot)
            self._frames += handover.count
            del self._by_id[id]
            handover.token.close()
            handover.connection.returned(unsent, is_idle=False)

    def on_let_go(self, id: int) -> None:
        """Notes that the process has let go of a connection: it writes no more about it."""
        self._spoiled_slots.pop(id, None)

    def on_reply(self, number: int) -> None:
        """Notes that the process leaves the answer to a frame to the server; then its connection is the server's."""
        page = self._page
        for handover in [*self._by_id.values()]:
            if page is not None and page.number(handover.slot) == number:
                handover.token.take()
                self._take(handover)

    def _take(self, handover: Handover, *, is_open: bool = True) -> None:
        assert self._page is not None
        frame = self._page.running(handover.slot)
        self._remove(handover)
        if frame is None:
            if is_open:
                handover.connection.returned(b"", is_idle=True)
            return
        running = self._begin(-frame.number, time.monotonic() - frame.since)
        if self._lease is not None:
            self._lease.begin(self._clock())
            running.reply.add_done_callback(self._on_reply)
        if is_open:
            handover.connection.taken_over(frame, running)

    def _on_reply(self, _: object) -> None:
        if self._lease is not None:
            self._lease.end(self._clock())

    def _remove(self, handover: Handover) -> None:
        if self._by_id.pop(handover.id, None) is not None:
            if self._page is not None:
                self._frames += self._page.count(handover.slot)
            handover.token.close()
            self._send(("let go", handover.id), [])

    def end(self) -> None:
        """Takes all back from a process that has ended; those whose answer may be half written are lost."""
        self._ended = True
        for handover in [*self._by_id.values()]:
            if self._page is not None and (handover.token.take() or self._page.is_unanswered(handover.slot)):
                self._take(handover)
            else:
                self._remove(handover)
                handover.connection.lost()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._page is not None:
            os.close(self._page_fd)
            self._page = None
        del self._send, self._begin, self._busy_since  # they are the host's, which has this object
