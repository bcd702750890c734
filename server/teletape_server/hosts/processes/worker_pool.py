"""All worker processes of a server: one for each session, and one spare, so that a new session starts in milliseconds.

Sessions on a GPU share one process for each GPU (`gpu`), unless they ask for one of their own.

A process starts in a thread of this pool's own, so that the event loop never waits for it. No thread waits for one to
end. A task watches all of them, and ends those that compute too long or are stuck.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any, Final

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.hosts.processes.forkserver import (
    end_stopped,
    end_stuck_start,
    is_stopped,
    present_devices,
    start_process,
)
from teletape_server.hosts.processes.gpu_processes import GpuProcesses
from teletape_server.hosts.processes.watchdog import Watchdog
from teletape_server.hosts.processes.worker_host import WorkerHost
from teletape_server.hosts.protocols import Ending, Host, HostGone, Start
from teletape_server.hosts.shares import Shares
from teletape_server.ipc.confinement import User
from teletape_server.ipc.control import Sockets
from teletape_server.ipc.leases import Reason
from teletape_server.ipc.processes import ProcessKind
from teletape_server.ipc.shared_memory import IdleMemory

_SHUT_DOWN: Final = Ending(Reason.SHUTDOWN, "the server shut down")
_MAX_IDLE: Final = 256 << 20  # bytes of free shared memory for requests, and of shared memory with answers
_IDLE_SECONDS: Final = 10.0  # without a request, after which a session's free shared memory is freed
_STOPPED_SECONDS: Final = 5.0  # after which a stopped forkserver is ended, so that the next session need not wait
_FACTS_SECONDS: Final = 2.0  # after which the free memory of GPUs is read again
_SPARE_SECONDS: Final = 10.0  # after which a spare process that has not started means that no session can
_START_SECONDS: Final = 2.0  # that the end of the pool waits for a process that is just starting


class WorkerPool:
    """Implements `Hosts` with worker processes.

    Args:
        user: Whom the processes run as; None: the server's user.
        shares: How keys share the CPU; None: as their processes do.
        grace: Seconds past its time limit after which a request's process is ended.
        stuck_after: Seconds without a sign of life after which a process is ended.

    Attributes:
        spare: Starts the process of the next session.
        hosts: The processes that have not ended.
    """

    def __init__(
        self,
        user: User | None = None,
        shares: Shares | None = None,
        *,
        grace: float = 10.0,
        stuck_after: float = 60.0,
    ) -> None:
        self._user, self._shares = user, shares or Shares()
        self.spare: asyncio.Task[WorkerHost] | None = None
        self._spare_since = 0.0  # when its start began
        self.hosts: set[WorkerHost] = set()
        self._grace, self._stuck_after = grace, stuck_after
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="start-process")
        self._starting: set[Future[tuple[BaseProcess, Sockets]]] = set()
        self._devices: asyncio.Future[list[DeviceFacts]] | None = None
        self._devices_at = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._starts_end: asyncio.Task[None] | None = None
        self._closed = False
        self._idle_memory = IdleMemory(_MAX_IDLE)
        self._gpus = GpuProcesses(functools.partial(self._started, ProcessKind.GPU))

    def prepare(self) -> None:
        """Begins to start the spare process; see `Hosts`."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if self.spare is None:
            self.spare = loop.create_task(self._launch())
            self._spare_since = loop.time()
        if self._watching is None:
            self._watching = loop.create_task(self._watch())

    def lack(self) -> str:
        """Returns why no session could start: the spare process does not; see `Hosts`."""
        spare = self.spare
        if spare is None or not spare.done():
            late = asyncio.get_running_loop().time() - self._spare_since > _SPARE_SECONDS
            return f"a process has not started in {_SPARE_SECONDS:g} s" if late else ""
        error = None if spare.cancelled() else spare.exception()
        return f"a process could not be started ({error})" if error is not None else ""

    async def start(self, start: Start) -> Host:
        """Opens a session in the spare process, and begins to start a new spare; see `Hosts`."""
        self.prepare()
        if start.device != "cpu" and not start.dedicated:
            return await self._start_shared(start)
        spare, self.spare = self.spare, None
        if spare is None:
            raise HostGone("the server is shutting down")
        host = await spare
        self.prepare()
        try:
            await self._open_own(host, start)
        except HostGone:  # the spare died or got stuck while it waited
            if self._closed:
                raise
            host = await self._launch()
            await self._open_own(host, start)
        return host

    async def _open_own(self, host: WorkerHost, start: Start) -> None:
        """Opens a session in a process that has no other."""
        pid = host.pid
        assert pid is not None, "it has started"
        self._shares.enter(pid, start.owner)
        host.gone.add_done_callback(lambda _: self._shares.leave(pid, start.owner))
        await self._open(host, start)

    async def _start_shared(self, start: Start) -> Host:
        """Opens a session in the process of its GPU."""
        seat, sockets = await self._gpus.seat(start.device)
        host = self._watched(WorkerHost(seat, sockets, self._watchdog(), self._idle_memory, is_shared=True))
        await self._open(host, replace(start, right=self._shares.rights.of(start.owner)))
        return host

    async def _open(self, host: WorkerHost, start: Start) -> None:
        try:
            await host.open(start)
        except BaseException:
            await host.end(Ending(Reason.WORKER_DIED, "it could not be started"))
            raise

    async def devices(self) -> list[DeviceFacts]:
        """Asks a process of its own: once if there is no GPU, else again after a while; see `Hosts`."""
        loop = asyncio.get_running_loop()
        if self._devices is None or self._are_old(self._devices, loop.time()):
            self._devices, self._devices_at = loop.run_in_executor(self._threads, present_devices), loop.time()
        return list(await asyncio.shield(self._devices))

    def _are_old(self, devices: asyncio.Future[list[DeviceFacts]], now: float) -> bool:
        if not devices.done():
            return False
        if devices.cancelled() or devices.exception() is not None:
            return True
        has_gpu = any(facts.memory_bytes and facts.device != "cpu" for facts in devices.result())
        return has_gpu and now - self._devices_at > _FACTS_SECONDS

    async def close(self) -> None:
        """Ends every process; see `Hosts`."""
        self._closed = True
        self._shares.release()
        if self._watching is not None:
            self._watching.cancel()
        if self._starts_end is not None:
            await self._starts_end
        await self._end_starts()
        hosts = [*self.hosts]
        self._gpus.close()  # at once, and so their sessions need not end one by one
        await asyncio.gather(*[host.end(_SHUT_DOWN) for host in hosts])
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _launch(self) -> WorkerHost:
        process, sockets = await self._started(ProcessKind.SESSION)
        return self._watched(WorkerHost(process, sockets, self._watchdog(), self._idle_memory))

    def _watchdog(self) -> Watchdog:
        return Watchdog(grace=self._grace, stuck_after=self._stuck_after)

    def _watched(self, host: WorkerHost) -> WorkerHost:
        self.hosts.add(host)
        host.gone.add_done_callback(lambda _: self.hosts.discard(host))
        return host

    async def _started(self, kind: ProcessKind) -> tuple[BaseProcess, Sockets]:
        """Starts a process in a thread."""
        starting = self._threads.submit(start_process, kind, self._user)
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            return await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_discard)
            if self._starts_end is None:  # only the server's end cancels a start
                self._starts_end = asyncio.get_running_loop().create_task(self._end_starts())
            raise

    async def _end_starts(self) -> None:
        """Waits for the processes that are just starting; ends a forkserver that hangs: it would outlive the server."""
        waited: list[asyncio.Future[Any]] = [asyncio.wrap_future(starting) for starting in [*self._starting]]
        waited += [] if self.spare is None else [self.spare]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*waited, return_exceptions=True), _START_SECONDS)
        if self._starting:
            await asyncio.to_thread(end_stuck_start, "still starts a process while the server ends")

    def _trim(self) -> None:
        """Frees the shared memory of idle sessions: of all at once if there is much, those idle for longest first."""
        hosts = sorted(self.hosts, key=lambda host: host.idle_since)
        total = sum(host.answers_memory() for host in hosts)
        for host in hosts:
            host.trim(_IDLE_SECONDS if total <= _MAX_IDLE else 0.0)
            total -= host.answers_memory()

    async def _watch(self) -> None:
        """Watches every process and the forkserver, and replaces a spare that has ended, until it is cancelled."""
        seconds = min(1.0, self._grace / 4, self._stuck_after / 8)
        stopped = 0.0
        while True:
            await asyncio.sleep(seconds)
            for host in [*self.hosts]:
                host.watch(seconds)
            self._shares.balance(Counter(host.owner for host in self.hosts if host.facts().running))
            self._gpus.end_idle(asyncio.get_running_loop().time())
            self._trim()
            stopped = stopped + seconds if is_stopped() else 0.0
            if stopped > _STOPPED_SECONDS:
                await asyncio.to_thread(end_stopped)
            spare = self.spare
            if spare is not None and spare.done() and (spare.exception() or spare.result().ended.done()):
                self.spare = None
                self.prepare()


def _discard(starting: Future[tuple[BaseProcess, Sockets]]) -> None:
    """Closes the connection to a process that nothing waits for any more, which ends the process."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result()[1].close()
