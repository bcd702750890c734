"""Time, threads and processes of a simulation: one thread runs at a time, and the seed decides which.

Every thread of the simulation is a real one that runs only while it has the turn. It gives the turn back where a thread
of a real process would enter the system: it waits for a socket, sleeps, syncs a file. Time is a number, which moves
when every thread waits. So a seed gives one order of events, however busy the machine is.
"""

import contextlib
import gc
import heapq
import os
import random
import select
import socket
import threading
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

_STEPS: Final = 2_000_000  # after which a simulation counts as one without end
_STACK: Final = 512 << 10  # bytes of a thread's stack


class Killed(SystemExit):
    """Raised in the threads of a process that was killed, wherever they are."""


class Stuck(AssertionError):
    """Raised if every thread waits for something that cannot come, or if the simulation does not end."""


class Thread:
    """A thread of the simulation.

    Args:
        world: Its world.
        process: The process that it belongs to.
        target: What it runs.
        name: Its name.

    Attributes:
        ended: Whether it has ended.
    """

    def __init__(self, world: "World", process: "Process", target: Callable[[], object], name: str) -> None:
        self.world, self.process, self.name = world, process, name
        self.ended = False
        self.file: int | None = None  # a descriptor that it waits for, until it can be read
        self.until: float | None = 0.0  # when it goes on at the latest; None: it waits for something else
        self.holds: Callable[[], bool] | None = None  # a state that it waits for
        self._target = target
        self._turn = threading.Lock()
        self._turn.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        process.threads.append(self)
        world.threads.append(self)
        self._thread.start()

    def _run(self) -> None:
        self._turn.acquire()
        self.world.local.thread = self
        try:
            if not self.process.is_dead:
                self._target()
        except Killed:
            pass
        except BaseException as error:
            self.world.failures.append(error)
        finally:
            self.ended = True
            self.process.threads.remove(self)
            self.world.threads.remove(self)
            self.world.turn.release()

    def go_on(self) -> None:
        """Gives it the turn, and returns when it gives it back."""
        self._turn.release()
        self.world.turn.acquire()

    def wait(self) -> None:
        """Gives the turn back, and returns with the next one.

        Raises:
            Killed: Its process was killed meanwhile.
        """
        self.world.turn.release()
        self._turn.acquire()
        self.file, self.holds, self.until = None, None, 0.0
        if self.process.is_dead:
            raise Killed


class Process:
    """A process of the simulation: its threads, and what it has open.

    Args:
        world: Its world.
        name: Its name.

    Attributes:
        ended_at: When it has ended; None: it has not.
    """

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name = world, name
        self.threads: list[Thread] = []
        self.files: set[int] = set()
        self.sockets: list[socket.socket] = []
        self.is_dead = False
        self.calls_left: int | None = None  # of the system, after which it is killed; None: it is not
        self.pid = next(world.pids)
        self.sentinel, self._alive = os.pipe()
        self.exitcode: int | None = None
        self.ended_at: float | None = None
        self.on_end: Callable[[], None] = lambda: None

    def start(self, target: Callable[[], object], name: str = "main") -> Thread:
        """Starts a thread."""
        return Thread(self.world, self, target, f"{self.name}.{name}")

    def kill(self, status: int = -9) -> None:
        """Ends it at once: nothing of it has an effect any more, and what it has open is closed."""
        if self.is_dead:
            return
        self.is_dead, self.exitcode, self.ended_at = True, status, self.world.now
        self.world.note(f"{self.name} ends with status {status}")
        for sock in self.sockets:
            sock.close()
        for file in self.files:
            os.close(file)
        self.files.clear()
        os.close(self._alive)
        self.on_end()
        for thread in self.threads:  # each unwinds when it has its next turn
            thread.until = 0.0

    # What a host needs of a process, besides `kill`
    def join(self, timeout: float | None = None) -> None:
        """Its status is known already."""

    def close(self) -> None:
        """Closes what shows its end."""
        os.close(self.sentinel)


class World:
    """Everything of one simulation that is not a program.

    Args:
        seed: Decides all that is chance.

    Attributes:
        rng: The generator of that seed.
        now: Seconds since the beginning.
        local: Has the thread that runs, of each real thread.
        notes: What has happened, newest last.
        failures: Errors that no thread may raise.
        version: Of Teletape, as the processes that start from now on have it.
        wants_collection: Whether processes have ended whose memory is to be freed: a process frees it with its end.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.now = 1000.0
        self.local = threading.local()
        self.turn = threading.Lock()
        self.turn.acquire()
        self.threads: list[Thread] = []
        self.notes: list[str] = []
        self.failures: list[BaseException] = []
        self.pids = count(1)
        self.version = "1.0"
        self.wants_collection = False
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def note(self, text: str) -> None:
        """Notes what happens, for whoever looks at a seed that fails."""
        self.notes.append(f"{self.now - 1000:9.3f} {text}")

    # ------------------------------------------------------------------------------------------------ by its threads
    @property
    def thread(self) -> Thread | None:
        """The thread that runs; None: a real one, which is not of this world."""
        return getattr(self.local, "thread", None)

    def wait(
        self,
        seconds: float | None = None,
        *,
        file: int | None = None,
        holds: Callable[[], bool] | None = None,
    ) -> None:
        """Waits until a file can be read, a state holds, or time is over; None: that is never."""
        thread = self.thread
        assert thread is not None
        thread.file, thread.holds = file, holds
        thread.until = None if seconds is None else self.now + max(seconds, 0.0)
        thread.wait()

    def call(self) -> None:
        """A call of the system: other threads may run before it, and the process may be killed there."""
        thread = self.thread
        assert thread is not None
        process = thread.process
        if process.is_dead:
            raise Killed
        if process.calls_left is not None:
            process.calls_left -= 1
            if process.calls_left < 0:
                process.kill()
                raise Killed
        if self.rng.random() < 0.1:
            self.wait(self.rng.choice([0.0, 0.0, 0.0005]))

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls something at a later time."""
        heapq.heappush(self._timers, (self.now + seconds, next(self._numbers), call))

    # ------------------------------------------------------------------------------------------------------ the order
    def run(self, until: Callable[[], bool]) -> None:
        """Runs until a state holds.

        Raises:
            Stuck: It will not.
            BaseException: A thread has raised it.
        """
        for _ in range(_STEPS):
            if self.failures:
                raise self.failures[0]
            if until():
                return
            self._step()
        raise Stuck(f"nothing has come of {_STEPS:,} steps, in {self.now - 1000:.0f} s")

    def _step(self) -> None:
        if self.wants_collection:  # here, where what it ends is of no process
            self.wants_collection = False
            gc.collect()
        ready = self._ready()
        if ready:
            self.rng.choice(ready).go_on()
            return
        times = [thread.until for thread in self.threads if thread.until is not None]
        times += [self._timers[0][0]] if self._timers else []
        if not times:
            raise Stuck(f"every thread waits for ever: {', '.join(thread.name for thread in self.threads)}")
        self.now = max(self.now, min(times))
        while self._timers and self._timers[0][0] <= self.now:
            heapq.heappop(self._timers)[2]()

    def _ready(self) -> list[Thread]:
        now, poll, waiting = self.now, select.poll(), dict[int, Thread]()
        ready = []
        for thread in self.threads:
            if (thread.until is not None and thread.until <= now) or (thread.holds is not None and thread.holds()):
                ready.append(thread)
            elif thread.file is not None:
                poll.register(thread.file, select.POLLIN)
                waiting[thread.file] = thread
        return ready + [waiting[file] for file, _ in poll.poll(0)] if waiting else ready

    def end(self, processes: Iterable[Process]) -> None:
        """Ends what is left, so that the next world finds no thread of this one."""
        for process in processes:
            process.kill()
        while self.threads:
            self.threads[0].until = 0.0
            with contextlib.suppress(BaseException):
                self.threads[0].go_on()
