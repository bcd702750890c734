"""The processes that compute published functions, and the way of a call to one of them and back.

They are processes like those of sessions, and count as none. There are more of them while calls wait for long, fewer
when they idle, and one is ready as long as a function is published. Each keeps the functions that it was asked for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from teletape_server.handlers.published.batching import Calls, Waiting, batch_limit, late
from teletape_server.hosts.protocols import Ending, HostGone, Reply
from teletape_server.ipc.leases import Reason
from teletape_server.models.published.contract import Published
from teletape_server.problems import Problem, overloaded, shutting_down
from teletape_server.published.calls import Call, Counts, Part, Receiver, most_together
from teletape_server.published.lent import LentCalls
from teletape_server.published.process import Process, joined
from teletape_server.published.store import Catalogue
from teletape_server.sessions.counted_bodies import CountedBody
from teletape_server.sessions.hosting.server_processes import ServerProcesses
from teletape_server.sessions.record import SessionLimits

_MOST_WAITING: Final = 10_000  # calls of one owner
_GROW_SECONDS: Final = 0.02  # that a call has to wait before another process starts
_BUSY_SHARE: Final = 0.8  # of a core: beyond it, processes that serve connections themselves are too few
_IDLE_SECONDS: Final = 60.0  # after which a process ends that is not the last one
_SWEEP_SECONDS: Final = 1.0
_LOADED_FIRST: Final = 8  # functions that a process loads when the server starts
_COPIED: Final = 64 << 10  # bytes of the longest answer that does not keep those of its batch in memory

log = logging.getLogger("teletape")


class Pool:
    """Computes calls of published functions.

    Args:
        starts: Starts processes.
        catalogue: Has the functions and their weights.
        device: Where they compute.
        memory_limit: Bytes of arrays that a version may take in a process.
        most: Processes.

    Attributes:
        counts: Of calls that have come here, by the function's name.
        lent: The calls of connections that are lent to processes.
    """

    def __init__(
        self, starts: ServerProcesses, catalogue: Catalogue, *, device: str, memory_limit: int, most: int
    ) -> None:
        self._starts, self._catalogue = starts, catalogue
        self._device, self._limits = device, SessionLimits(memory_limit)
        self._most = max(min(most, len(os.sched_getaffinity(0))), 1)
        self._calls: Calls[Call] = Calls()
        self._processes: list[Process] = []
        self._starting: asyncio.Task[Problem | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self.counts: defaultdict[str, Counts] = defaultdict(Counts)
        self.lent = LentCalls(lambda: self._processes, catalogue, self.counts)

    @property
    def processes(self) -> int:
        """How many processes there are."""
        return len(self._processes)

    @property
    def waiting(self) -> int:
        """How many calls wait for one."""
        return len(self._calls)

    # ---------------------------------------------------------------------------------------------------------- calls
    def submit(self, call: Call) -> Callable[[], None]:
        """Takes a call; its reply comes later. Returns what ends it if its caller leaves.

        Raises:
            Problem: busy, shutting_down.
        """
        if self._stopping:
            raise shutting_down()
        if self._calls.of(call.owner) >= _MOST_WAITING:
            text = f"{_MOST_WAITING} of your calls wait, the limit: send the next one after an answer"
            raise Problem("busy", text, headers={"Retry-After": "1"})
        self.counts[call.name].calls[call.question] += 1
        waiting = Waiting(call, call.owner, len(call.body), _now())
        self._calls.add(call.key, waiting, most=most_together(call.published, call.question))
        self._work()
        return lambda: self._leave(call, waiting)

    async def receiver(self, owner: str) -> tuple[Process, Receiver]:
        """Returns a process for a body that is too large to wait here, and what receives it there.

        Raises:
            Problem: overloaded, shutting_down.
        """
        await self._any()
        process = min(self._processes, key=lambda item: (item.receiving + len(item.pinned), item.busy))
        return process, Receiver(owner, process.host)

    def submit_pinned(self, process: Process, call: Call, body: CountedBody) -> None:
        """Takes a call whose body is in a process's memory; its reply comes later.

        Raises:
            Problem: shutting_down.
        """
        if self._stopping:
            raise shutting_down()
        self.counts[call.name].calls[call.question] += 1
        call.received = body
        process.pinned.append(Waiting(call, call.owner, 0, _now()))
        self._work()

    def _leave(self, call: Call, waiting: Waiting[Call]) -> None:
        call.reply.cancel()
        self._calls.remove(call.key, waiting)

    def _work(self) -> None:
        """Gives free processes what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for process in [*self._processes]:
            if process.busy:
                continue
            if process.pinned:
                waiting = process.pinned.popleft()
                self._begin(process, (waiting.item.key, id(waiting.item)), [waiting])
                continue
            batch = self._calls.next(_now())
            if isinstance(batch, float):
                self._timer = asyncio.get_running_loop().call_later(batch, self._work)
                return
            if batch is None:
                return
            self._begin(process, *batch)
        self._grow()

    def _begin(self, process: Process, key: Hashable, batch: Sequence[Waiting[Call]]) -> None:
        """Submits a batch to a process."""
        began = _now()
        live = [waiting for waiting in batch if not self._is_late(waiting, began)]
        if not live:
            asyncio.get_running_loop().call_soon(self._work)
            return
        published, question = live[0].item.published, live[0].item.question
        process.busy = True
        try:
            process.load(published, self._catalogue)
            limit = batch_limit([(began - waiting.since, waiting.item.time_limit) for waiting in live])
            params = {"version": published.version, "question": question, **limit}
            params["calls"] = [_described(waiting, began) for waiting in live]
            received = live[0].item.received
            bodies = [waiting.item.body for waiting in live]
            body = joined(process.host, bodies) if received is None else received.for_host(process.host)
            running = process.host.submit("published-ask", params, body=body)
            if received is not None:
                received.submitted(running)
        except HostGone:  # nothing of it has run
            for waiting in live:
                if waiting.item.received is None:
                    self._calls.add(key, waiting, most=len(live))
                else:
                    _refuse(waiting.item, overloaded("the process that had the request has ended"))
            self._end_work(process, is_gone=True)
            return
        except OSError as error:
            for waiting in live:
                _refuse(waiting.item, overloaded(f"no process can compute it ({error})"))
            self._end_work(process, is_gone=False)
            return
        running.reply.add_done_callback(partial(self._on_reply, process, key, live, began))

    def _is_late(self, waiting: Waiting[Call], now: float) -> bool:
        """Returns whether a call has no caller any more, or not enough time."""
        call = waiting.item
        if call.reply.done():
            return True
        text = late(now - waiting.since, call.time_limit)
        if text is None:
            return False
        _refuse(call, Problem("deadline_exceeded", text, limit=call.time_limit))
        return True

    def _on_reply(
        self,
        process: Process,
        key: Hashable,
        batch: Sequence[Waiting[Call]],
        began: float,
        future: asyncio.Future[Reply],
    ) -> None:
        """Answers the calls of a batch."""
        calls = [waiting.item for waiting in batch]
        counts, version = self.counts[calls[0].name], calls[0].published.version
        seconds = _now() - began
        counts.batches.note(len(calls), sum(began - waiting.since for waiting in batch), seconds, len(calls))
        problem: Problem | None = None
        is_lost = False  # with its process: it may be done again once
        try:
            reply = future.result()
            if reply.code is None:
                self._calls.note(key, len(calls), seconds)
                self._answer(calls, reply, counts, seconds / len(calls))
            else:
                problem = Problem(reply.code, reply.facts["message"], **reply.facts["details"])
        except HostGone as error:
            problem = Problem("internal", f"the process that computed it has ended: {error}")
            is_lost = len(calls) == 1 and not calls[0].is_again and calls[0].received is None
        if is_lost:
            calls[0].is_again = True
            self._calls.add(key, batch[0], most=1)
        elif problem is not None and len(calls) > 1 and version not in process.refused:  # one of them may be the reason
            for waiting in batch:
                self._calls.add((key, id(waiting.item)), waiting, most=1)
        elif problem is not None:
            counts.problems += len(calls)
            for call in calls:
                _refuse(call, process.refused.get(version, problem))
        self._end_work(process, is_gone=process.host.ended.done())

    def _answer(self, calls: Sequence[Call], reply: Reply, counts: Counts, seconds: float) -> None:
        """Answers calls, each of which has taken some seconds of its batch."""
        position = 0
        for call, (length, content_type, problem) in zip(calls, reply.facts["parts"], strict=True):
            self.lent.note_computed(call.account or call.owner, seconds)
            if problem is not None:
                counts.problems += 1
                code, message, details = problem
                _refuse(call, Problem(code, message, **details))
                continue
            body = reply.body[position : position + length]
            position += length
            if not call.reply.done():
                call.reply.set_result(Part(bytes(body) if length <= _COPIED else body, content_type, seconds))

    def _end_work(self, process: Process, *, is_gone: bool) -> None:
        process.busy, process.idle_since = False, _now()
        if is_gone and process in self._processes:
            self._processes.remove(process)
        self._work()

    # ------------------------------------------------------------------------------------------------------ processes
    async def ready(self, published: Published) -> int:
        """Waits until a process has loaded a version; returns how many processes there are.

        Raises:
            Problem: None could be started, or the version could not be loaded.
        """
        await self._any()
        process = self._processes[0]
        try:
            process.load(published, self._catalogue)
            waited = process.host.submit("published-loaded", {"version": published.version})
            reply = await asyncio.shield(waited.reply)
        except (HostGone, OSError) as error:
            raise overloaded(f"the function cannot be loaded ({error})") from None
        if reply.code is not None:
            raise process.refused.get(published.version) or Problem(reply.code, reply.facts["message"])
        return len(self._processes)

    async def _any(self) -> None:
        """Waits until there is a process.

        Raises:
            Problem: None could be started.
        """
        while not (self._processes or self._stopping):
            self._grow(at_once=True)
            if self._starting is not None and (problem := await asyncio.shield(self._starting)) is not None:
                raise Problem(problem.code, problem.detail, headers=problem.headers, **problem.details)
        if self._stopping:
            raise shutting_down()

    def warm(self) -> None:
        """Starts a process if a function is published, which loads those that were published last."""
        if self._catalogue.newest(1):
            self._grow(at_once=True)

    def _grow(self, *, at_once: bool = False) -> None:
        """Starts a process if calls have waited for one for a while."""
        if self._stopping or self._starting is not None or len(self._processes) >= self._most:
            return
        oldest = self._calls.oldest()
        if self._processes and self._calls.batches() <= len(self._processes):  # the next ones that end take all
            return
        wait = 0.0 if oldest is None or not self._processes else _GROW_SECONDS - (_now() - oldest)
        if wait > 0 and not at_once:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(wait, self._work)
            return
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> Problem | None:
        """Starts a process; returns why none could be started."""
        problem: Problem | None = None
        try:
            host = await self._starts.start("published functions", self._device, self._limits)
            process = Process(host, idle_since=_now())
            self._processes.append(process)
            host.ended.add_done_callback(partial(self._on_ended, process))
            for published in self._catalogue.newest(_LOADED_FIRST):
                with suppress(HostGone, OSError):
                    process.load(published, self._catalogue)
        except Problem as error:
            problem = error
        finally:
            self._starting = None
        if problem is not None and not self._processes:
            for waiting in self._calls.take_all():
                _refuse(waiting.item, problem)
        self._work()
        return problem

    async def _relieve(self) -> None:
        """Starts a process if all serve several connections and hardly rest; these are then dealt out anew."""
        busy = []
        for process in self._processes:
            computed = process.host.facts().cpu_seconds
            busy.append(process.host.lent > 1 and computed - process.computed > _BUSY_SHARE * _SWEEP_SECONDS)
            process.computed = computed
        if not (busy and all(busy)) or self._stopping or self._starting is not None or len(busy) >= self._most:
            return
        self._starting = asyncio.get_running_loop().create_task(self._start())
        if await asyncio.shield(self._starting) is None:
            await self.lent.recall()

    def _on_ended(self, process: Process, ended: asyncio.Future[Ending]) -> None:
        self.lent.end(process)
        if process in self._processes:
            self._processes.remove(process)
            while process.pinned:
                _refuse(process.pinned.popleft().item, overloaded("the process that had the request has ended"))
            log.warning("a process of published functions has ended: %s", ended.result().text)
            if not self._stopping:
                self.warm()
                self._work()

    async def sweep(self) -> None:
        """Ends processes that idle, but for the last one, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self._relieve()
            self.lent.charge()
            for process in self._processes[1 if self._catalogue.names else 0 :]:
                is_used = process.busy or process.pinned or process.receiving or process.host.lent
                if is_used:
                    process.idle_since = _now()
                if not is_used and _now() - process.idle_since > _IDLE_SECONDS:
                    self._processes.remove(process)
                    await process.host.end(Ending(Reason.IDLE, "it was not needed any more"))

    async def drain(self, grace: float) -> None:
        """Takes no more calls, and lets those that wait and run finish for `grace` seconds."""
        self._stopping = True
        for waiting in self._calls.take_all():
            _refuse(waiting.item, shutting_down())
        await self.lent.stop()
        running = [running.reply for process in self._processes for running in process.host.running]
        if running:
            await asyncio.wait(running, timeout=grace)
        await self.close()

    async def close(self) -> None:
        """Ends all processes."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        if self._starting is not None:
            self._starting.cancel()
            with suppress(asyncio.CancelledError):
                await self._starting
        processes, self._processes = self._processes, []
        await asyncio.gather(
            *[process.host.end(Ending(Reason.SHUTDOWN, "the server shut down")) for process in processes]
        )


def _now() -> float:
    return time.monotonic()


def _refuse(call: Call, problem: Problem) -> None:
    if not call.reply.done():
        call.reply.set_exception(Problem(problem.code, problem.detail, headers=problem.headers, **problem.details))


def _described(waiting: Waiting[Call], began: float) -> tuple[int, str, Mapping[str, Any], int]:
    call = waiting.item
    return call.length, call.content_type, call.params, round((began - waiting.since) * 1e6)
