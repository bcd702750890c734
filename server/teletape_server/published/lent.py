"""Calls that processes of published functions read and answer themselves, over connections that are lent to them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from teletape_server.budgets.budgets import Budgets
from teletape_server.budgets.limits import Use
from teletape_server.hosts.loans import Account, Lender, Loan
from teletape_server.hosts.protocols import HostGone, Reply
from teletape_server.ipc.durations import Served
from teletape_server.ipc.heads import Approval
from teletape_server.models.published.contract import Published
from teletape_server.published.calls import Counts
from teletape_server.published.process import Process
from teletape_server.published.store import Catalogue


class LentCalls:
    """Lends connections to the processes, and counts their calls.

    Args:
        processes: Returns the processes.
        catalogue: Has the functions and their weights.
        counts: Of calls that the server answers, by the function's name.

    Attributes:
        budgets: Where all calls count.
    """

    def __init__(
        self, processes: Callable[[], Sequence[Process]], catalogue: Catalogue, counts: Mapping[str, Counts]
    ) -> None:
        self._processes, self._catalogue, self._counts = processes, catalogue, counts
        self._served: defaultdict[Account, Served] = defaultdict(Served)  # by processes that have ended
        self._is_stopping = False
        self.budgets = Budgets()
        self._computed: defaultdict[str, Use] = defaultdict(Use)  # by account, by the server's own calls since a look
        self._charged: dict[Account, tuple[float, int]] = {}  # seconds and calls, of lent connections

    @property
    def connections(self) -> int:
        """How many are lent."""
        return sum(process.host.lent for process in self._processes())

    def lend(
        self, lender: Lender, transport: asyncio.BaseTransport, approval: Approval, published: Published
    ) -> Loan | None:
        """Lends a connection to the process that has fewest of them; returns None if none takes it. See `Host.lend`."""
        process = min(self._processes(), key=lambda item: item.host.lent, default=None)
        if process is None or self._is_stopping:
            return None
        try:
            process.load(published, self._catalogue)
        except (HostGone, OSError):
            return None
        return process.host.lend(lender, transport, approval, process)

    def note_passed_on(self, name: str, question: str, reply: Reply) -> None:
        """Counts a call that a process has read, and left to the server to answer.

        Args:
            name: The function.
            question: What it asks of it.
            reply: What the process has said.
        """
        counts = self._counts[name]
        counts.calls[question] += 1
        if reply.code is not None:
            counts.problems += 1
        else:
            counts.batches.note(1, *reply.facts["computed"])

    def note_computed(self, account: str, seconds: float) -> None:
        """Notes a call of an account that the server answers, and what it has taken of its batch."""
        self._computed[account] = self._computed[account].plus(Use(seconds, 0.0, 1))

    def charge(self) -> None:
        """Counts what was computed since the last time."""
        for account, served in self.served().items():
            before, now = self._charged.get(account, (0.0, 0)), (served.batches.compute_seconds, served.durations.total)
            if now != before:
                self._charged[account] = now
                more = Use(now[0] - before[0], 0.0, now[1] - before[1])
                self._computed[account.owner] = self._computed[account.owner].plus(more)
        for name, use in self._computed.items():
            self.budgets.charge(name, use)
        self._computed.clear()

    async def recall(self) -> None:
        """Reclaims all connections: the next request of each is the server's."""
        await asyncio.gather(*[process.host.recall() for process in self._processes()])

    async def stop(self) -> None:
        """Reclaims all connections, and lends no more."""
        self._is_stopping = True
        await self.recall()

    def end(self, process: Process) -> None:
        """Keeps what is counted of a process that has ended."""
        for account, served in process.host.facts().calls.items():
            self._served[account] += served

    def served(self) -> Mapping[Account, Served]:
        """Returns the calls that processes have read and answered."""
        all_served = self._served.copy()
        for process in self._processes():
            for account, served in process.host.facts().calls.items():
                all_served[account] += served
        return all_served

    def counts(self) -> dict[str, Counts]:
        """Returns what is counted of all calls, by the function's name."""
        counts = {name: Counts(item.calls.copy(), item.problems, item.batches) for name, item in self._counts.items()}
        for account, served in self.served().items():
            item = counts.setdefault(account.function, Counts())
            item.calls[account.label[1].rpartition("/")[2]] += served.durations.total
            item.batches += served.batches
        return counts
