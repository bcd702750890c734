"""All worker processes of a server: one for each session, and one spare, so that a new session starts in milliseconds.

A process starts in a thread, so that the event loop never waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib

from teletape_server.hosts.forkserver import present_devices, start_process
from teletape_server.hosts.protocols import Host, HostGone, Start
from teletape_server.hosts.worker_host import WorkerHost
from teletape_server.worker import main as worker_process
from teletape_server.worker.confinement import User


class WorkerPool:
    """Implements `Hosts` with worker processes.

    Args:
        user: Whom the processes run as; None: the server's user.

    Attributes:
        spare: Starts the process of the next session.
        hosts: The processes that have not ended.
    """

    def __init__(self, user: User | None = None) -> None:
        self._user = user
        self.spare: asyncio.Task[WorkerHost] | None = None
        self.hosts: set[WorkerHost] = set()
        self._devices: asyncio.Task[list[str]] | None = None
        self._closed = False

    def prepare(self) -> None:
        """Begins to start the spare process; see `Hosts`."""
        if self.spare is None and not self._closed:
            self.spare = asyncio.get_running_loop().create_task(self._launch())

    async def start(self, start: Start) -> Host:
        """Opens a session in the spare process, and begins to start a new spare; see `Hosts`."""
        self.prepare()
        spare, self.spare = self.spare, None
        if spare is None:
            raise HostGone("the server is shutting down")
        host = await spare
        self.prepare()
        if host.ended.done():  # the spare process died while it waited
            host = await self._launch()
        try:
            await host.open(start)
        except BaseException:
            await host.end("it could not be started")
            raise
        return host

    async def devices(self) -> list[str]:
        """Asks a process of its own, once; see `Hosts`."""
        if self._devices is None:
            self._devices = asyncio.get_running_loop().create_task(asyncio.to_thread(present_devices))
        return list(await asyncio.shield(self._devices))

    async def close(self) -> None:
        """Ends every process; see `Hosts`."""
        self._closed = True
        if self.spare is not None:
            with contextlib.suppress(OSError):
                await self.spare
        await asyncio.gather(*[host.end("the server shut down") for host in self.hosts])

    async def _launch(self) -> WorkerHost:
        host = WorkerHost(*await asyncio.to_thread(start_process, worker_process.main, self._user))
        self.hosts.add(host)
        host.ended.add_done_callback(lambda _: self.hosts.discard(host))
        return host
