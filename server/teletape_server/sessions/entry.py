"""A session as the server has it in memory: its record, perhaps a host, and what has come from its requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from teletape_server.durable.open_logs import OpenLog
from teletape_server.handlers.methods import WAITED
from teletape_server.hosts.loans import Lender, Loan
from teletape_server.hosts.protocols import Beginning, BodyBuffer, Host, HostFacts, HostGone, Reply, Running
from teletape_server.hosts.running import UnderWay
from teletape_server.ipc.heads import Approval
from teletape_server.ipc.leases import Lease, Times
from teletape_server.problems import Problem, shutting_down
from teletape_server.sessions.counted_bodies import CountedBody
from teletape_server.sessions.lifecycle import LOST, WITH_PLACE, Phase
from teletape_server.sessions.record import SessionRecord

_LONGEST_PAUSE: Final = 30.0  # seconds between two attempts to bring a session back


class LastProblem(NamedTuple):
    """The last problem that a session's host has answered.

    Attributes:
        code, message: The problem's.
        time: Unix seconds.
    """

    code: str
    message: str
    time: float


class LastRequest(NamedTuple):
    """The request of a session that has ended last.

    Attributes:
        time: When, in Unix seconds.
        seconds: From its submission on; None: its host has read and answered it itself, quickly.
        code: Of the problem that it was answered with; None: of none, or that is not known.
    """

    time: float
    seconds: float | None = None
    code: str | None = None


class Metered(NamedTuple):
    """What a host has used until a look.

    Attributes:
        at: When, in Unix seconds.
        seconds: That it has computed.
        requests: That have run.
        bytes_in_use: Of arrays.
        is_doubted: Whether its process says that it has computed for longer than the kernel knows.
    """

    at: float
    seconds: float = 0.0
    requests: int = 0
    bytes_in_use: int = 0
    is_doubted: bool = False


class _Sent(NamedTuple):
    """A request that a host has, as another one would get it."""

    method: str
    params: Mapping[str, Any]
    content_type: str
    body: memoryview | None


class SessionEntry:
    """One session.

    Args:
        record: What is known of it without a host.
        start: Starts a host for it.
        clock: Returns Unix seconds.

    Attributes:
        record: See above; it is replaced when something of it changes.
        owner, id: Whose it is, and its name.
        host: Where it runs; None: nowhere. `wake` starts one.
        lease: When it ends; `note_facts` brings it up to date.
        log: The log that its host writes; None: there is none.
        waking: The start of a host; None: none starts.
        parking: The end of a host whose session is parked; None: none ends so.
        room: The end of another session's host, whose place this one gets; None: it waits for none.
        attempts: How often a host was started in vain since the last one.
        recovered: What the last host has brought back; see `Beginning`.
        log_to_run: Whether it has no host, and its base is not all that it had; see `Folder.has_log_to_run`.
        lost: The state in which an earlier server has left it, if that is one of `LOST`, until it is tried again.
        disk_bytes: Of its files, as of the last look.
        problems: Number of requests that were answered with a problem.
        last_problem: The last of these problems.
        last_request: The request that has ended last, in this run of the server.
        receiving: Number of requests whose body is being received.
        body_bytes, answer_bytes: Of its requests and answers, without those that its host has read itself.
        last_client: The highest number that was given to a client; 0: this server does not know it yet.
        under_way: Its requests that run and that a retry joins.
        metered: What its host had used when that was counted last; see `Meter`.
    """

    def __init__(
        self, record: SessionRecord, start: Callable[[SessionEntry], Awaitable[Host]], clock: Callable[[], float]
    ) -> None:
        self.record = record
        self.owner, self.id = record.key
        self.host: Host | None = None
        self._start, self._clock = start, clock
        self.log: OpenLog | None = None
        self.waking: asyncio.Task[Host] | None = None
        self.parking: asyncio.Task[None] | None = None
        self.recovered: Mapping[str, Any] | None = None
        self.log_to_run = False
        self.lost = record.state if record.state.phase in LOST else None
        self.disk_bytes = 0
        self.room: asyncio.Task[None] | None = None
        self.attempts = 0
        self._deaths, self._began_at, self._next_try = 0, 0, 0.0
        self._stopped: Problem | None = None
        self.lease = Lease(record.terms, clock())
        self._sent: dict[asyncio.Future[Reply], _Sent] = {}  # by their replies, those that outlive their host
        self._left: list[Running] = []  # by the last host, for the next one
        self._cancelled: set[Running] = set()  # of these
        self._answers = 0
        self.problems = 0
        self.last_problem: LastProblem | None = None
        self.last_request: LastRequest | None = None
        self.receiving = 0
        self.body_bytes = self.answer_bytes = 0
        self.last_client = 0
        self.under_way = UnderWay()
        self.metered = Metered(clock())

    # --------------------------------------------------------------------------------------------------------- waking
    async def wake(self) -> Host:
        """Returns the host; if there is none, all who call this wait for one that starts.

        Raises:
            Problem: It could not be started: overloaded, unknown_device, internal, shutting_down.
        """
        if self.host is not None:
            return self.host
        if self.waking is None:
            self.waking = asyncio.get_running_loop().create_task(self._woken())
        task = self.waking
        await asyncio.wait([task])  # a caller that disconnects does not end the start
        if task.cancelled():
            raise self._stopped or shutting_down()
        return task.result()

    async def _woken(self) -> Host:
        try:
            return await self._start(self)
        finally:
            self.waking = None

    def begin(self, beginning: Beginning, written: int) -> None:
        """Notes what a new host had when it was open, and the last record of its log."""
        self.metered = Metered(self._clock())
        self._began_at, self.attempts, self._next_try = written, 0, 0.0
        self.recovered = beginning.recovered
        self.last_client = max(self.last_client, beginning.last_client)  # clients may join just now

    def next_client(self) -> int:
        """Returns the number of a client that joins: even, so that it is not one of the session's own, and rising."""
        self.last_client += 2
        return self.last_client

    def note_death(self, written: int) -> int:
        """Notes that a host died in a request after a record of the log; returns how many have died there in a row.

        A host that has written nothing since it began died where the one before it did.
        """
        self._deaths = self._deaths + 1 if written == self._began_at else 1
        return self._deaths

    def note_failure(self, now: float) -> None:
        """Notes that a host could not be started; the pauses until the next attempt grow to half a minute."""
        self.attempts += 1
        self._next_try = now + min(2.0 ** (self.attempts - 1), _LONGEST_PAUSE)

    def pause(self, now: float) -> float:
        """Returns the seconds until another recovery may be tried."""
        return max(self._next_try - now, 0.0)

    def stop_waking(self, why: Problem) -> None:
        """Ends the start of a host; whoever waits for it gets this problem."""
        if self.waking is not None:
            self._stopped = why
            self.waking.cancel()
        self.give_up(why.detail)

    # --------------------------------------------------------------------------------------- what outlives its host
    def leave(self, left: list[Running]) -> None:
        """Takes requests that a host has left: they wait for the next one, or until `give_up`."""
        self._left += left
        for running in left:
            running.cancel = partial(self._cancelled.add, running)

    def go_on(self) -> None:
        """Gives a new host what the last one has left, before anything else comes to it."""
        (left, self._left), cancelled, host = (self._left, []), self._cancelled, self.awake_host
        self._cancelled = set()
        for running in left:
            try:
                sent, buffer = self._sent[running.reply], None
                if sent.body is not None:
                    buffer = host.body_buffer(len(sent.body))
                    buffer.view[:] = sent.body
                self._submit(host, sent, buffer, running)
            except (HostGone, OSError) as error:
                running.fail(str(error))
                continue
            if running in cancelled:
                running.cancel()

    def cancel(self) -> None:
        """Asks all its requests to stop."""
        for running in self._left:
            running.cancel()
        if self.host is not None:
            self.host.cancel()

    def give_up(self, why: str) -> None:
        """Fails what a host has left: no other one takes it."""
        left, self._left = self._left, []
        self._cancelled.clear()
        for running in left:
            running.fail(why)

    @property
    def awake_host(self) -> Host:
        """The host of a session that was woken.

        Raises:
            Problem: busy: it has none any more.
        """
        if self.host is None:
            text = "this session was set aside before the request was complete: send it again"
            raise Problem("busy", text, headers={"Retry-After": "1"})
        return self.host

    @property
    def running(self) -> Collection[Running]:
        """The requests that its host has, and has not answered, or that wait for the next one."""
        return self._left if self.host is None else self.host.running

    # ------------------------------------------------------------------------------------------------- what is known
    @property
    def lasts(self) -> bool:
        """Whether it outlives its host."""
        return self.record.durability != "none"

    @property
    def has_place(self) -> bool:
        """Whether it takes a place of the server."""
        return self.record.state.phase in WITH_PLACE

    def is_quiet(self) -> bool:
        """Returns whether it has a host that could be parked now: it lasts, and no request of it is under way."""
        if self.log is None or self.record.state.phase is not Phase.LIVE or self.receiving or self.running:
            return False
        facts = self.note_facts()
        return not facts.running and not facts.waiting

    @property
    def takes_turns(self) -> bool:
        """Whether its requests wait for those of other sessions: they share the process of a GPU."""
        return self.device != "cpu" and not self.record.limits.dedicated

    @property
    def account(self) -> str:
        """Which account it counts for."""
        return self.record.account

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.record.device

    @property
    def memory_limit(self) -> int:
        """Bytes that its arrays may take."""
        return self.record.limits.memory

    @property
    def dtype(self) -> str:
        """Of numbers without one that meet no tensor."""
        return self.record.limits.dtype

    @property
    def created_at(self) -> float:
        """When it was created, in Unix seconds."""
        return self.record.created

    @property
    def log_facts(self) -> dict[str, str]:
        """Whose log lines they are: `extra` of logging."""
        return {"session": self.id, "owner": self.owner}

    def note_facts(self) -> HostFacts:
        """Returns what is known of its work now, and notes the last work in the lease."""
        if self.host is None:
            return HostFacts(waiting=len(self._left))
        facts = self.host.facts()
        self.lease.work(facts.worked)
        if facts.worked and (self.last_request is None or facts.worked > self.last_request.time):
            self.last_request = LastRequest(facts.worked)
        return facts

    def answers(self, facts: HostFacts) -> int:
        """Returns the number of requests that were answered, with those that its host has answered itself."""
        return self._answers + sum(durations.total for durations in facts.answered.values())

    def times(self) -> Times:
        """Returns what an answer says of its end, now; see `LendingSession`."""
        return self.lease.times(self._clock())

    # ------------------------------------------------------------------------------------------------ noting requests
    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        content_type: str,
        body: CountedBody | None,
    ) -> Running:
        """Submits a request to the host; until its reply the session is not idle.

        Raises:
            HostGone: The host has ended.
            Problem: busy: it has none; overloaded, resource_exhausted: there is no memory for the body.
        """
        host = self.awake_host
        buffer = None if body is None else body.for_host(host)
        self.body_bytes += 0 if buffer is None else len(buffer.view)
        content = None if buffer is None or self.log is None else buffer.view[:]  # it stays when that has been sent
        running = self._submit(host, _Sent(method, params, content_type, content), buffer)
        self.note_running(running)
        return running

    def _submit(self, host: Host, sent: _Sent, buffer: BodyBuffer | None, running: Running | None = None) -> Running:
        now, *terms = self.times()
        params = {**sent.params, "now": now, "terms": terms, "alone": self.dtype}
        if running is not None:  # another host had it, and it goes on waiting
            params[WAITED] = time.monotonic() - running.began
        running = host.submit(sent.method, params, content_type=sent.content_type, body=buffer, running=running)
        if self.log is not None:
            self._sent[running.reply] = sent
        return running

    def note_running(self, running: Running) -> None:
        """Notes that a request runs: until its reply the session is not idle, and the reply counts."""
        self.lease.begin(self._clock())
        running.reply.add_done_callback(partial(self._note_reply, running.began))

    def _note_reply(self, began: float, future: asyncio.Future[Reply]) -> None:
        self.lease.end(now := self._clock())
        self._sent.pop(future, None)
        if future.cancelled() or future.exception() is not None:
            return
        reply = future.result()
        self._answers += 1
        self.answer_bytes += len(reply.body)
        self.last_request = LastRequest(now, time.monotonic() - began, reply.code)
        if reply.code is not None:
            self.problems += 1
            self.last_problem = LastProblem(reply.code, str(reply.facts.get("message", "")), now)

    def lend(self, lender: Lender, transport: asyncio.BaseTransport, approval: Approval) -> Loan | None:
        """Lends a connection to the host; see `Host.lend`."""
        return None if self.host is None else self.host.lend(lender, transport, approval, self)
