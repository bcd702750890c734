"""The server's side of connections that are lent to a process, which then serves small requests itself.

Four things happen to a connection. The server *lends* it while requests come quickly one after the other. The server
*reclaims* it when a request runs for long, when the process has other work that takes long, when none comes, or when
something else needs it; the request that runs comes with it. Or the process *returns* it, since it does not serve what
has come. Or it is *lost* with a process that has ended while it wrote an answer. So all that takes long is the
server's, as it is without loans.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from teletape_server.hosts.running import Running
from teletape_server.ipc.durations import Durations, Served
from teletape_server.ipc.heads import Approval, Label
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import SLOTS, Page, Slot
from teletape_server.ipc.token import Token

_LOOK_SECONDS: Final = 0.05  # between two looks at the page
_LONG_SECONDS: Final = 0.04  # that a request may run, as two looks find it, before its connection is reclaimed
_LONG_TOGETHER_SECONDS: Final = 0.3  # likewise, of a call of a published function, with its wait for others
_IDLE_SECONDS: Final = 1.0  # without a request
_RECALL_SECONDS: Final = 1.0  # that a process may take to write an answer
_CLOCK_SECONDS: Final = 0.5  # that the time of day may move against the loop's clock


class LentRequest(NamedTuple):
    """A request that ran when its connection was reclaimed.

    Attributes:
        prefix: Its first bytes, if it is a frame.
        body: Its body, if it is a call of a published function.
        running: The request as any other that runs.
        seconds: For how long it has run at least.
    """

    prefix: bytes
    body: bytes
    running: Running
    seconds: float


class Account(NamedTuple):
    """Under which the requests are counted that a process has read and answered itself.

    Attributes:
        label: Of requests.
        function, owner: The published function that they ask, and whose calls they are; empty: they ask none.
    """

    label: Label
    function: str
    owner: str


class Lender(Protocol):
    """What a connection of the server learns after it was lent."""

    def reclaimed(self, request: LentRequest | None) -> None:
        """Goes on: the server has reclaimed it; with a request, answers that first."""

    def returned(self, unsent: bytes) -> None:
        """Goes on: the process has returned it; `unsent` is what the caller has not taken yet of the last answer."""

    def lost(self) -> None:
        """Closes: the process has ended while it wrote an answer."""


class LendingSession(Protocol):
    """What a loan needs of its session."""

    def times(self) -> Times:
        """Returns what an answer says of the session's end, now."""

    def note_running(self, running: Running) -> None:
        """Notes that a request has become one of the server's: until its reply the session is not idle."""


class Loan:
    """A connection that is lent.

    Attributes:
        id: Its number.
        slot: Its place in the page.
        token: The right to use it.
        account: Under which its requests are counted.
        patience: Seconds that one of them may run.
        lender: The connection of the server.
        session: The session.
        times: What the process knows of the session's end.
        lent: When it was lent, on the loop's clock.
        count: Requests at the last look.
        is_recalled: Whether the server wants it back as soon as the process is not reading or writing.
        since: When a look has found that count first.
    """

    __slots__ = (
        *("_loans", "account", "count", "id", "is_recalled", "lender", "lent", "patience", "session", "since", "slot"),
        *("times", "token"),
    )

    def __init__(
        self,
        loans: Loans,
        id: int,
        slot: Slot,
        token: Token,
        approval: Approval,
        lender: Lender,
        session: LendingSession,
        now: float,
    ) -> None:
        self._loans, self.id, self.slot, self.token = loans, id, slot, token
        self.account = Account(approval.label, approval.function, approval.owner)
        self.patience = _LONG_TOGETHER_SECONDS if approval.function else _LONG_SECONDS
        self.lender, self.session, self.times = lender, session, session.times()
        self.count, self.lent, self.since = 0, now, now
        self.is_recalled = False

    def recall(self) -> None:
        """Lets the connection come back now, or at the next look."""
        self.is_recalled = not self._loans.reclaim(self)

    def close(self) -> None:
        """Ends the loan of a connection that is closed; a request that runs goes on."""
        self._loans.close_loan(self)


class Loans:
    """The connections of one session that its process serves.

    Args:
        page: What the process writes.
        send: Sends a message to the process, with copies of the file descriptors.
        begin: Notes a request of the process as a running one, which began some seconds ago.
        busy_since: Returns when the oldest unanswered request of the server was sent, on the loop's clock; or None.
    """

    def __init__(
        self,
        page: Page,
        send: Callable[[Any, list[int]], None],
        begin: Callable[[int, float], Running],
        busy_since: Callable[[], float | None],
    ) -> None:
        self.page = page
        self._send, self._begin, self._busy_since = send, begin, busy_since
        self._loop = asyncio.get_running_loop()
        self._last_id = 0
        self._by_id: dict[int, Loan] = {}
        self._closed: dict[int, Loan] = {}  # of closed connections: the process may still write into their slots
        self._served: defaultdict[Account, Served] = defaultdict(Served)  # by loans that have ended
        self._worked = 0.0  # for loans that have ended
        self._timer: asyncio.TimerHandle | None = None
        self._begun, self._began = 0, 0.0  # requests that have begun to run; when a look has found that count first
        self._ended = False

    def __len__(self) -> int:
        return len(self._by_id)

    # -------------------------------------------------------------------------------------------------------- lending
    def lend(self, lender: Lender, fd: int, approval: Approval, session: LendingSession) -> Loan | None:
        """Lends a connection, whose messages the server must not read until it has it back.

        Args:
            lender: The connection.
            fd: Its socket, which stays open.
            approval: What the process has to know of its requests.
            session: The session.

        Returns:
            The loan; None if there are too many already, or too few file descriptors.
        """
        used = {loan.slot.index for loan in (*self._by_id.values(), *self._closed.values())}
        if self._ended or len(used) >= SLOTS:
            return None
        try:
            token = Token.new()
        except OSError:
            return None
        files: list[int] = []
        try:
            files += [os.dup(fd)]
            files += [token.duplicate()]
        except OSError:
            for file in files:
                os.close(file)
            token.close()
            return None
        slot = self.page.slot(min(set(range(SLOTS)) - used))
        slot.clear()
        self._last_id += 1
        loan = Loan(self, self._last_id, slot, token, approval, lender, session, self._loop.time())
        self._by_id[loan.id] = loan
        self._send(("lend", loan.id, slot.index, approval, loan.times), files)
        self._look_later()
        return loan

    # -------------------------------------------------------------------------------------------------------- looking
    @property
    def worked(self) -> float:
        """When the process has last worked for a request that it has read itself, in Unix seconds; 0: it has not."""
        return max([self._worked, *map(self._worked_for, [*self._by_id.values()])])  # of a copy: any thread may ask

    @property
    def answered(self) -> Mapping[Label, Durations]:
        """How long the requests took that the process has read and answered itself, by their labels."""
        answered: defaultdict[Label, Durations] = defaultdict(Durations)
        for account, served in self._all_served().items():
            answered[account.label] += served.durations
        return answered

    @property
    def calls(self) -> Mapping[Account, Served]:
        """Those of them that ask published functions."""
        return {account: served for account, served in self._all_served().items() if account.function}

    def _all_served(self) -> Mapping[Account, Served]:
        all_served = self._served.copy()
        for loan in (*self._by_id.values(), *self._closed.values()):
            all_served[loan.account] += loan.slot.served
        return all_served

    def _worked_for(self, loan: Loan) -> float:
        seconds = loan.slot.worked
        return loan.times.now + seconds if seconds else 0.0

    def _look_later(self) -> None:
        if self._timer is None and self._by_id:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        if (begun := self.page.begun) != self._begun:
            self._begun, self._began = begun, now
        for loan in self._by_id.values():
            count = loan.slot.count
            if count != loan.count:
                loan.count, loan.since = count, now
        is_busy = self._is_busy(now)
        for loan in [*self._by_id.values()]:
            if is_busy or loan.is_recalled or now - loan.since > _IDLE_SECONDS or self._has_other_times(loan, now):
                self.reclaim(loan)
        self._look_later()

    def _is_busy(self, now: float) -> bool:
        """Returns whether the process works for long on one request, its own or one of the server's."""
        began = self._busy_since()
        if began is not None and now - max(began, self._began) > _LONG_SECONDS:
            return True
        return any(loan.slot.number and now - loan.since > loan.patience for loan in self._by_id.values())

    def _has_other_times(self, loan: Loan, now: float) -> bool:
        """Returns whether the time of day, or the session's end, is not what the process takes it for."""
        times = loan.session.times()
        moved = times.now - loan.times.now - (now - loan.lent)
        return times[1:] != loan.times[1:] or abs(moved) > _CLOCK_SECONDS

    # ----------------------------------------------------------------------------------------------------- reclaiming
    def reclaim(self, loan: Loan) -> bool:
        """Reclaims a connection, with the request that runs; returns False if the process is writing an answer."""
        if loan.id not in self._by_id or not loan.token.take():
            return False
        self._reclaimed(loan)
        return True

    def reclaim_running(self) -> None:
        """Reclaims the connections with a running request, so that others can join or cancel it."""
        for loan in [*self._by_id.values()]:
            if loan.slot.number:
                self.reclaim(loan)

    def _reclaim_all(self) -> bool:
        """Reclaims all; returns whether there is none left."""
        for loan in [*self._by_id.values()]:
            self.reclaim(loan)
        return not self._by_id

    async def recall(self) -> None:
        """Reclaims all, and waits until what has come over them is read."""
        if not self._by_id:
            return
        end = self._loop.time() + _RECALL_SECONDS
        while not self._reclaim_all() and self._loop.time() < end:  # noqa: ASYNC110  # no event comes
            await asyncio.sleep(0.001)
        for _ in range(2):  # turns of the loop: in one of them it reads
            await asyncio.sleep(0)

    def close_loan(self, loan: Loan) -> None:
        """Ends the loan of a connection that is closed; a request that runs goes on."""
        if loan.id not in self._by_id:
            return
        if loan.token.take():
            self._reclaimed(loan, is_open=False)
        else:
            self._remove(loan)
            self._closed[loan.id] = loan

    def on_returned(self, id: int, unsent: bytes) -> None:
        """Notes that the process has returned a connection."""
        loan = self._by_id.pop(id, None)
        if loan is not None:
            loan.count = loan.slot.count
            self._note_end(loan)
            self._count(loan)
            loan.lender.returned(unsent)

    def on_dropped(self, id: int) -> None:
        """Notes that the process knows of the end of a loan: it writes no more about it."""
        loan = self._closed.pop(id, None)
        if loan is not None:
            self._count(loan)

    def on_reply(self, number: int) -> None:
        """Notes that the process leaves the answer to a request to the server, and so its connection."""
        for loan in [*self._by_id.values()]:
            if loan.slot.number == number:
                loan.token.take()
                self._reclaimed(loan)

    def _reclaimed(self, loan: Loan, *, is_open: bool = True) -> None:
        """Ends a loan whose token the server has."""
        request, count = loan.slot.running, loan.slot.count
        seconds = self._loop.time() - loan.since if count == loan.count else 0.0
        loan.count = count
        self._remove(loan)
        self._count(loan)
        lent = None
        if request is not None:
            lent = LentRequest(request.prefix, request.body, self._begin(-request.number, seconds), seconds)
            loan.session.note_running(lent.running)
        if is_open:
            loan.lender.reclaimed(lent)

    def _remove(self, loan: Loan) -> None:
        if self._by_id.pop(loan.id, None) is not None:
            self._note_end(loan)
            self._send(("reclaimed", loan.id), [])

    def _note_end(self, loan: Loan) -> None:
        self._worked = max(self._worked, self._worked_for(loan))
        loan.token.close()

    def _count(self, loan: Loan) -> None:
        """Counts what the process has answered during a loan; it writes no more into the slot."""
        self._served[loan.account] += loan.slot.served

    def end(self) -> None:
        """Reclaims all from a process that has ended; those whose answer may be half written are lost."""
        self._ended = True
        for loan in [*self._by_id.values()]:
            if loan.token.take() or loan.slot.is_unanswered:
                self._reclaimed(loan)
            else:
                self._remove(loan)
                self._count(loan)
                loan.lender.lost()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.page.close()
        del self._send, self._begin, self._busy_since  # they are the host's, which has this object
