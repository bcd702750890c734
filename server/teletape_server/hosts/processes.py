"""Worker processes as hosts: one for each session, from a forkserver, with one spare kept ready.

A process starts in a thread, so that the event loop never waits for one; a spare makes a new session cost milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import Any, Final

from teletape_engine.errors import TeletapeError, tree
from teletape_server.hosts import Host, HostGone, Reply, Room, Running, Start
from teletape_server.hosts.channel import Channel, Loan
from teletape_server.worker import main as worker_process

_GRACE: Final = 2.0  # seconds that a process may take to end by itself
_AT_ONCE: Final = 16  # messages read before other tasks get their turn
_DEVICES_SECONDS: Final = 60.0  # a GPU's driver can take long to wake up

#: Threads of a worker's linear algebra. Two workers with a thread for each core slow each other down 60 times.
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class WorkerHost:
    """One worker process; see `Host`."""

    def __init__(self, process: BaseProcess, sock: socket.socket) -> None:
        self.device = ""
        self.running: set[Running] = set()
        self.pid = process.pid
        self._process = process
        self._channel = Channel(sock)
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._requests: dict[int, Running] = {}
        self._number = 0
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self._closing = False
        self._burial: asyncio.Task[int | None] | None = None
        sock.setblocking(False)
        self._loop.add_reader(sock, self._readable)

    async def open(self, start: Start) -> None:
        """Makes the session.

        Raises:
            TeletapeError: The device cannot be used.
            HostGone: The process ended.
        """
        self.device = start.device
        self._send(("open", dataclasses.asdict(start)))
        await self._opened

    def room(self, length: int) -> Loan:
        """Shared memory for a body; see `Host`."""
        if self._closing:
            raise HostGone("the session is ending")
        return self._channel.loan(length)

    def submit(
        self, kind: str, params: Mapping[str, Any], *, content_type: str = "", room: Room | None = None
    ) -> Running:
        """Sends the request to the process, which runs one at a time in order; see `Host`."""
        if self._closing:
            raise HostGone("the session is ending")
        assert room is None or isinstance(room, Loan), "a room of another host"
        self._number += 1
        running = Running(self._loop.create_future())
        head = ("do", self._number, kind, params, content_type, room is not None, time.monotonic())
        self._send(head, room)
        self._requests[self._number] = running
        self.running.add(running)
        return running

    def cancel(self) -> None:
        """Raises the flag of every request that has not been answered; see `Host`."""
        if not self._closing:
            for number in self._requests:
                self._send(("cancel", number))

    async def end(self, reason: str) -> None:
        """Closes the connection, upon which the process ends; kills it when it does not. See `Host`."""
        self._close()
        self._tell(reason)
        await self._bury()

    # -------------------------------------------------------------------------------------------------------- sending
    def _send(self, head: Any, loan: Loan | None = None) -> None:
        self._unsent.append(self._channel.encode(head, loan))
        if len(self._unsent) == 1:
            self._flush()
            if self._unsent:
                self._loop.add_writer(self._channel.sock, self._writable)

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._channel.transmit(*self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            pass
        except OSError:  # it has gone; the reader learns of it and tells everyone
            self._unsent.clear()

    def _writable(self) -> None:
        self._flush()
        if not self._unsent:
            self._loop.remove_writer(self._channel.sock)

    # -------------------------------------------------------------------------------------------------------- reading
    def _readable(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                message = self._channel.receive()
            except BlockingIOError:
                return
            except OSError:
                message = None
            if message is None:
                self._close()
                self._bury().add_done_callback(lambda burial: self._tell(_how(burial.result())))
                return
            self._told(*message)

    def _told(self, head: Any, body: memoryview | None) -> None:
        match head:
            case ("progress", number, done, total, iteration, iterations):
                if running := self._requests.get(number):
                    running.done, running.total, running.iteration, running.iterations = (
                        done,
                        total,
                        iteration,
                        iterations,
                    )
            case ("reply", number, code, content_type, facts):
                running = self._requests.pop(number)
                self.running.discard(running)
                if not running.reply.done():
                    running.reply.set_result(Reply(code, content_type, body or memoryview(b""), facts))
            case ("ready",):
                self._opened.set_result(None)
            case ("failed", code, text, details):
                self._opened.set_exception(tree().get(code, TeletapeError)(text, **details))

    # --------------------------------------------------------------------------------------------------------- ending
    def _close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._loop.remove_reader(self._channel.sock)
        self._loop.remove_writer(self._channel.sock)
        for _, fds in self._unsent:
            for fd in fds:
                os.close(fd)
        self._unsent.clear()
        self._channel.close()

    def _tell(self, reason: str) -> None:
        """Answers everyone who waits."""
        for running in self._requests.values():
            _fail(running.reply, reason)
        self._requests.clear()
        self.running.clear()
        _fail(self._opened, reason)
        if not self.ended.done():
            self.ended.set_result(reason)

    def _bury(self) -> asyncio.Task[int | None]:
        """Waits for the process, and kills it if need be; gives its exit status."""
        if self._burial is None:
            self._burial = self._loop.create_task(self._gone())
        return self._burial

    async def _gone(self) -> int | None:
        await asyncio.to_thread(self._process.join, _GRACE)
        if self._process.exitcode is None:
            self._process.kill()
            await asyncio.to_thread(self._process.join, _GRACE)
        return self._process.exitcode


def _how(status: int | None) -> str:
    """Words for a process that ended unasked."""
    if status is None or status >= 0:
        return f"its process ended with status {status}"
    how = f"its process was ended by signal {-status} ({signal.Signals(-status).name})"
    return how + (", as the system does when memory runs out" if -status == signal.SIGKILL else "")


def _fail(future: asyncio.Future[Any], reason: str) -> None:
    if not future.done():
        future.set_exception(HostGone(reason))
        future.exception()  # it may be that nobody waits: that is no error worth a warning


class Workers:
    """The forkserver and the processes made from it; see `Hosts`."""

    def __init__(self) -> None:
        self._spare: asyncio.Task[WorkerHost] | None = None
        self._hosts: set[WorkerHost] = set()
        self._devices: asyncio.Task[list[str]] | None = None
        self._closed = False

    def prepare(self) -> None:
        """Begins to start the spare process; see `Hosts`."""
        if self._spare is None and not self._closed:
            self._spare = asyncio.get_running_loop().create_task(self._launch())

    async def start(self, start: Start) -> Host:
        """Makes a session in the spare process, and a new spare; see `Hosts`."""
        self.prepare()
        spare, self._spare = self._spare, None
        if spare is None:
            raise HostGone("the server is shutting down")
        host = await spare
        self.prepare()
        if host.ended.done():  # the spare died while it waited
            host = await self._launch()
        try:
            await host.open(start)
        except BaseException:
            await host.end("it could not be started")
            raise
        return host

    async def devices(self) -> list[str]:
        """What a process of its own finds, once; see `Hosts`."""
        if self._devices is None:
            self._devices = asyncio.get_running_loop().create_task(asyncio.to_thread(present_devices))
        return list(await asyncio.shield(self._devices))

    async def close(self) -> None:
        """Ends every process; see `Hosts`."""
        self._closed = True
        if self._spare is not None:
            with contextlib.suppress(OSError):
                await self._spare
        await asyncio.gather(*[host.end("the server shut down") for host in self._hosts])

    async def _launch(self) -> WorkerHost:
        host = WorkerHost(*await asyncio.to_thread(_process, worker_process.main))
        self._hosts.add(host)
        host.ended.add_done_callback(lambda _: self._hosts.discard(host))
        return host


def present_devices() -> list[str]:
    """The devices of this machine, found by a process of its own: loading a GPU's driver is not for this one."""
    process, sock = _process(worker_process.devices)
    sock.settimeout(_DEVICES_SECONDS)
    channel = Channel(sock)
    try:
        message = channel.receive()
    except TimeoutError:
        message = None
    finally:
        channel.close()
        process.kill()
        process.join()
    return ["cpu"] if message is None else list(message[0])


_forking = threading.Lock()


def _process(target: Callable[[socket.socket], None]) -> tuple[BaseProcess, socket.socket]:
    """A process that runs `target` on one end of a socket pair, and the other end."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")  # the forkserver inherits it when it starts
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker_process.__name__])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, _forking:
        process = context.Process(target=target, args=(theirs,), daemon=True)
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
    return process, ours
