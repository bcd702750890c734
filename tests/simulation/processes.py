"""The processes of a simulated server: the front with its event loop, and those of sessions; the code is the server's.

Between them are real socket pairs, so that messages and descriptors go their way as they do outside. Not simulated are
the front's own connections: requests come to the application as its framework gets them.
"""

import asyncio
import contextlib
import selectors
import socket
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from fastapi import FastAPI

from simulation.disk import Disk
from simulation.network import Exchange
from simulation.world import Killed, Process, World
from teletape_server.app import create_app
from teletape_server.hosts.processes.worker_pool import WorkerPool
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.control import Sockets, Watcher, socket_pairs
from teletape_server.ipc.processes import ProcessKind
from teletape_server.sessions.store import DiskStore
from teletape_server.settings import Settings
from teletape_server.worker.main import Worker

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


class BlockingSocket:
    """A socket of a process that waits for it: while it does, other threads run."""

    def __init__(self, world: World, sock: socket.socket) -> None:
        self._world, self._sock = world, sock
        sock.setblocking(False)

    def setsockopt(self, *_: Any) -> None:
        """How long the system lets it wait: here that is `_wait`."""

    def fileno(self) -> int:
        return self._sock.fileno()

    def _wait(self) -> None:
        self._world.call()
        self._world.wait(60.0, file=self._sock.fileno())

    def recvmsg_into(self, buffers: Sequence[Any], space: int) -> Any:
        self._wait()
        answer = self._sock.recvmsg_into(buffers, space)
        thread = self._world.thread
        assert thread is not None
        for _, _, data in answer[1]:
            files = array("i")
            files.frombytes(data)
            thread.process.files.update(files)
        return answer

    def recv(self, length: int, flags: int = 0) -> bytes:
        while True:
            self._wait()
            with contextlib.suppress(BlockingIOError):
                return self._sock.recv(length, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        self._world.call()
        return self._sock.send(data, flags)

    def sendmsg(self, *parts: Any) -> int:
        self._world.call()
        return self._sock.sendmsg(*parts)

    def shutdown(self, how: int) -> None:
        self._sock.shutdown(how)

    def close(self) -> None:
        self._sock.close()


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is the world's."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__(_Selector(world))

    def time(self) -> float:
        return self._world.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Arguments], _Result], *args: *_Arguments
    ) -> asyncio.Future[_Result]:
        """Runs it at once: no other thread may run."""
        future: asyncio.Future[_Result] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class _Selector(selectors.EpollSelector):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> Any:
        self._world.wait(timeout, file=self.fileno())
        return super().select(0)


class Hosts(WorkerPool):
    """Starts the processes of sessions in the world."""

    def __init__(self, front: "Front") -> None:
        super().__init__()
        self._front = front

    async def _started(self, kind: ProcessKind) -> tuple[Any, Sockets]:
        assert kind is ProcessKind.SESSION
        world = self._front.world
        await asyncio.sleep(world.rng.choice([0.0, 0.05, 0.3]))
        ours, theirs = socket_pairs()
        self._front.process.sockets += ours
        return self._front.start_worker(theirs), ours


class Front:
    """A server.

    Args:
        world: Its world.
        disk: Its folder for data.
        settings: Its settings.
        app: The application; see `application`.

    Attributes:
        process: Its process.
        workers: The processes of its sessions, those that have ended too.
        takes_requests: Whether it answers.
        has_begun: Whether it ever did: the logs of its sessions are on the disk before.
        has_ended: Whether it has ended by itself.
    """

    def __init__(
        self, world: World, disk: Disk, settings: Settings, parts: dict[str, Any], app: FastAPI, number: int
    ) -> None:
        self.world, self.settings, self._folder = world, settings, str(disk.root / "data")
        self.process = Process(world, f"server {number}")
        self.workers: list[Process] = []
        self.takes_requests = self.has_begun = self.has_ended = False
        self.app = app
        self.loop: Loop | None = None
        self._parts = parts
        self._stop = False
        self._stopping: asyncio.Event | None = None
        self._exchanges: set[asyncio.Task[None]] = set()
        self._open: set[Exchange] = set()
        self.process.on_end = self._on_end
        world.wants_collection = number % 4 == 0
        self.process.start(self._run)

    # ------------------------------------------------------------------------------------------------- in its process
    def _run(self) -> None:
        loop = self.loop = Loop(self.world)
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._on_exception)
        try:
            loop.run_until_complete(self._serve())
        except OSError as error:  # it could not start; whoever started it starts it again
            self.world.note(f"{self.process.name} raises {type(error).__name__}: {error}")
            self.process.kill(1)
        finally:
            if self.process.is_dead:
                for task in asyncio.all_tasks(loop):
                    _end(task)
            loop.close()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self.process.is_dead and not isinstance(error, Killed):
            self.world.note(f"the loop has met {context}")
            self.world.failures.append(error or AssertionError(str(context)))

    async def _serve(self) -> None:
        """Serves until it is stopped, as `teletape_server.server` does."""
        self._stopping = asyncio.Event()
        self._parts["hosts"] = Hosts(self)
        self._parts["store"] = DiskStore(self._folder, self.now())
        async with self.app.router.lifespan_context(self.app):
            self.takes_requests = self.has_begun = True
            if not self._stop:
                await self._stopping.wait()
            await self.app.state.registry.drain(self.settings.shutdown_grace)
            if self._exchanges:
                await asyncio.wait(self._exchanges, timeout=1.0)
            self.takes_requests = False
            for exchange in [*self._open]:
                exchange.break_off()
        self.has_ended = True
        self.world.note(f"{self.process.name} has stopped")

    def now(self) -> float:
        """Unix seconds."""
        return 1_800_000_000.0 + self.world.now

    def start_worker(self, sockets: Sockets) -> Process:
        """Starts the process of a session on its ends of the sockets."""
        process = Process(self.world, f"{self.process.name}, worker {len(self.workers) + 1}")
        process.sockets += sockets
        requests, control = (BlockingSocket(self.world, sock) for sock in sockets)

        def main() -> None:
            watcher = Watcher(control)  # type: ignore[arg-type]  # all that it uses of one
            watcher.start()
            channel = Channel(requests, takes_files=True)  # type: ignore[arg-type]  # all that it uses of one
            Worker(channel, watcher).serve()

        def run() -> None:
            try:
                main()
            except Killed:
                raise
            except BaseException as error:  # a process that raises has died
                self.world.note(f"{process.name} raises {type(error).__name__}: {error}")
                if not isinstance(error, OSError):
                    self.world.failures.append(error)
            finally:
                process.kill(1)

        process.start(run)
        self.workers.append(process)
        return process

    # ------------------------------------------------------------------------------------------- by whoever holds it
    def stop(self) -> None:
        """Begins its orderly end, as a signal does."""
        self._stop = True
        if self.loop is not None and self._stopping is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stopping.set)

    def kill(self) -> None:
        """Ends it at once; the processes of sessions learn of it."""
        self.process.kill()

    def _on_end(self) -> None:
        self.takes_requests = False
        for exchange in [*self._open]:
            exchange.break_off()

    def kill_all(self) -> None:
        """Ends it and all processes of sessions at once."""
        self.kill()
        for worker in self.workers:
            worker.kill()

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it runs."""
        ended = self.process.is_dead or not self.process.threads
        return ended and all(worker.is_dead for worker in self.workers)

    def begin(self, exchange: Exchange) -> None:
        """Takes a request from the network."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._begin, exchange)

    def _begin(self, exchange: Exchange) -> None:
        task = asyncio.ensure_future(self._answered(exchange))
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)

    async def _answered(self, exchange: Exchange) -> None:
        self._open.add(exchange)
        gone = asyncio.Event()
        loop = self.loop
        exchange.on_left = lambda: None if loop is None or loop.is_closed() else loop.call_soon_threadsafe(gone.set)
        if exchange.has_left:
            gone.set()
        parts = iter([{"type": "http.request", "body": exchange.body, "more_body": False}])

        async def receive() -> Any:
            if (part := next(parts, None)) is not None:
                return part
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if self.process.is_dead:
                raise Killed
            exchange.take(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": exchange.method,
            "scheme": "http",
            "path": exchange.path,
            "raw_path": exchange.path.encode(),
            "query_string": exchange.query,
            "root_path": "",
            "headers": exchange.headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        try:
            await self.app(scope, receive, send)
        finally:
            self._open.discard(exchange)
            if not exchange.is_whole:
                exchange.break_off()


def _end(task: asyncio.Task[Any]) -> None:
    """Ends a task of a process that is dead: here, where nothing that it still does has an effect."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it has no public name
    with contextlib.suppress(BaseException):
        task.get_coro().close()


def application(settings: Settings) -> tuple[FastAPI, dict[str, Any]]:
    """Returns an application for all servers of all worlds, one at a time, and a dict of what each puts into it.

    To make it takes longer than to simulate a seed.
    """
    parts: dict[str, Any] = {"now": lambda: 1_800_000_000.0}
    store = _Current(parts)
    app = create_app(settings, clock=lambda: parts["now"](), hosts=lambda: parts["hosts"], store=store)
    return app, parts


class _Current:
    """The store of the server that runs."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parts["store"], name)
