"""One simulation: a server with its disk, clients that work, and an operator that pulls every plug."""

import contextlib
import gc
import logging
import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from simulation.disk import Disk
from simulation.ledger import Violation
from simulation.network import Network
from simulation.processes import Front, application
from simulation.programs import Frames, Plan, Program, Reader, Rest
from simulation.system import simulated
from simulation.world import Process, World
from teletape.core.network.progress import Notice
from teletape_server.durable import records
from teletape_server.durable.syncer import SYNC_SECONDS
from teletape_server.settings import Settings
from teletape_server.worker import durability, main

_LIMIT: Final = 400.0  # seconds of the world's time in which every client has to come to its end
#: Seconds before a power cut whose work a session with a journal may lose: between two syncs, and what all syncs take.
_BEHIND: Final = SYNC_SECONDS + 0.25
_RESTARTS: Final = 6  # of the server, after which a session that is still damaged counts as lost
_VERSIONS: Final = ("1.0", "1.1")


class Faults(NamedTuple):
    """How often each thing happens, in relation to the others; 0: never."""

    kill_worker: int = 4
    kill_server: int = 2
    kill_all: int = 2
    stop: int = 2
    upgrade: int = 1
    power_cut: int = 3
    full_disk: int = 1
    failing_disk: int = 1
    partition: int = 2
    lost_folder: int = 0  # at most once, at the end


class Outcome(NamedTuple):
    """What came of a seed.

    Attributes:
        acknowledged: Additions that were acknowledged.
        counts: What has happened, by kind.
        seconds: Of the world's time.
    """

    acknowledged: int
    counts: Counter[str]
    seconds: float


class Simulator:
    """Runs simulations, one after the other.

    Args:
        folder: An empty folder in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = Settings(
            data_dir=str(folder / "published"), shutdown_grace=1.0, patience=2.0, idle_limit=30.0, memory_limit=64 << 20
        )
        self._app, self._parts = application(self._settings)

    def run(self, seed: int) -> Outcome:
        """Runs one seed.

        Raises:
            Violation: Something acknowledged was lost or done twice.
            AssertionError: Something else came that may not; its notes say what has happened.
        """
        world = World(seed)
        disk = Disk(self._folder / "disk", world.rng)
        disk.clear()
        with _small(world), simulated(world, disk):
            simulation = _Simulation(world, disk, self._settings, self._app, self._parts)
            try:
                return simulation.run()
            except BaseException as error:
                notes = "\n".join(world.notes[-60:])
                error.add_note(f"seed {seed}, in the order in which it has happened:\n{notes}")
                raise
            finally:
                simulation.end()
                gc.collect()


@contextlib.contextmanager
def simulator() -> Iterator[Simulator]:
    """Yields a simulator; it has a folder of its own in memory."""
    level, interval = logging.root.manager.disable, sys.getswitchinterval()
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()  # what it ends would run in whichever thread has the turn
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="teletape-simulation-") as folder:
        try:
            yield Simulator(Path(folder))
        finally:
            logging.disable(level)
            sys.setswitchinterval(interval)
            gc.enable()
            gc.unfreeze()


@contextlib.contextmanager
def _small(world: World) -> Iterator[None]:
    """A block in which what is large is small, so that a simulation meets its edges."""
    own = records.versions()
    edges = {
        (durability, "_LEAST_LOG"): world.rng.choice([2048, 8192, 64 << 20]),
        (durability, "_LOOK_BYTES"): 512,
        (durability, "_DIGESTS"): world.rng.choice([3, 256]),
        (records, "_RESERVED"): 4096,
        (main, "limit_memory"): lambda *_: None,  # of this process
        (Notice, "show"): lambda *_: None,
        (records, "versions"): lambda: own | {"teletape": world.version},
    }
    before = {place: getattr(*place) for place in edges}
    for place, value in edges.items():
        setattr(*place, value)
    try:
        yield
    finally:
        for place, value in before.items():
            setattr(*place, value)


class _Simulation:
    def __init__(self, world: World, disk: Disk, settings: Settings, app: Any, parts: dict[str, Any]) -> None:
        self.world, self.disk, self.settings, self.app, self.parts = world, disk, settings, app, parts
        self.rng = random.Random(world.rng.random())
        self.fronts: list[Front] = []
        self.network = Network(world, self._listening)
        self.plan = Plan(world, self.network)
        self.counts: Counter[str] = Counter()
        weights = Faults()._asdict()
        kinds = [name for name in Faults._fields if self.rng.random() < 0.6 and weights[name]] or ["kill_all"]
        self.faults = [name for name in kinds for _ in range(weights[name])]
        self.loses_folder = self.rng.random() < 0.05
        self.operator = Process(world, "operator")
        self.programs: list[Program] = []
        self.failed_at = self.healed_at = math.inf  # when the disk began to fail since the last power cut, and ended to
        self.is_over = False

    @property
    def front(self) -> Front:
        """The server that was started last."""
        return self.fronts[-1]

    def _listening(self) -> Front | None:
        return self.front if self.front.takes_requests else None

    def run(self) -> Outcome:
        self._start()
        operations = self.rng.choice([2, 4, 10])
        for number, level in enumerate(self.rng.sample(["journal", "journal-sync"], self.rng.choice([1, 1, 2]))):
            rest = Rest(self.plan, f"rest{number}", f"s{number}", level, operations)
            self.programs += [rest, Frames(self.plan, f"frames{number}", f"s{number}", level, operations)]
            if self.rng.random() < 0.3:
                self.programs.append(Reader(self.plan, f"reader{number}", rest, 2 * operations))
        self.operator.start(self._operate)
        began = self.world.now
        self.world.run(lambda: self.is_over or self.world.now - began > _LIMIT)
        if not self.is_over:
            waiting = [program.name for program in self.programs if not program.has_compared]
            raise Violation(f"after {_LIMIT:g} s these have not come to their end: {', '.join(waiting)}")
        return Outcome(self.plan.acknowledged, self.counts, self.world.now - began)

    def end(self) -> None:
        """Ends all processes, whatever state they are in."""
        programs = [program.process for program in self.programs]
        fronts = [process for front in self.fronts for process in (front.process, *front.workers)]
        for process in (self.operator, *programs, *fronts):
            process.kill()
        self.world.end([])
        for process in (self.operator, *programs, *fronts):
            with contextlib.suppress(OSError):
                process.close()

    # -------------------------------------------------------------------------------------------------- the operator
    def _start(self) -> None:
        self.parts["now"] = lambda: 1_800_000_000.0 + self.world.now
        self.fronts.append(Front(self.world, self.disk, self.settings, self.parts, self.app, len(self.fronts) + 1))
        self.world.note(f"server {len(self.fronts)} starts with version {self.world.version}")

    def _operate(self) -> None:
        world = self.world
        left = self.rng.choice([1, 2, 4, 10])
        while not all(program.has_worked for program in self.programs):
            world.wait(
                self.rng.choice([0.01, 0.1, 0.5, 2.0]) if left else 60.0,
                holds=lambda: all(program.has_worked for program in self.programs) or self.plan.damaged > 0,
            )
            self._mend()
            self._ensure_served()
            if left:
                left -= 1
                self._happen(self.rng.choice(self.faults) if left or not self.loses_folder else "lost_folder")
        self.network.is_calm = True
        self._heal()
        self._ensure_served()
        self._restart()
        self.plan.is_final = True
        self._until_compared()
        self.is_over = True

    def _until_compared(self) -> None:
        for _ in range(_RESTARTS):
            self.world.wait(
                300.0, holds=lambda: self.plan.damaged > 0 or all(program.has_compared for program in self.programs)
            )
            if all(program.has_compared for program in self.programs):
                return
            self._mend()
        raise Violation("a session stays damaged, whatever is tried")

    def _mend(self) -> None:
        """Does what an operator does with a damaged session: starts the server again, with each version in turn."""
        if self.plan.damaged:
            self._heal()
            self._change_version()
            self._ensure_served()
            self._restart()
            self.world.wait(0.5)
            self.plan.damaged = 0

    def _change_version(self) -> None:
        self.world.version = _VERSIONS[self.world.version == _VERSIONS[0]]

    def _ensure_served(self) -> None:
        """Starts a server again and again, if there is none that serves."""
        while self.front.process.is_dead or self.front.has_ended:
            self._wait_for_end()
            self._start()
            self.world.wait(60.0, holds=lambda: self.front.takes_requests or self.front.process.is_dead)

    def _restart(self) -> None:
        """Stops the server in order, and starts it again."""
        self.front.stop()
        self._wait_for_end()
        self._start()

    def _wait_for_end(self) -> None:
        self.world.wait(120.0, holds=lambda: self.front.is_gone)
        if not self.front.is_gone:
            raise Violation("the server does not end")
        self.world.wait(self.rng.choice([0.0, 0.1, 3.0]))

    def _happen(self, fault: str) -> None:
        world, rng = self.world, self.rng
        self.counts[fault] += 1
        world.note(fault)
        living = [worker for worker in self.front.workers if not worker.is_dead]
        soon = rng.choice([None, 0, 1, 2, 3, 5, 8, 13, 21])  # calls of the system until it is killed; None: at once
        if fault == "kill_worker" and living:
            worker = rng.choice(living)
            if soon is None:
                worker.kill()
            else:
                worker.calls_left = soon
        elif fault == "kill_server":
            if soon is None:
                self.front.kill()
            else:
                self.front.process.calls_left = soon
                world.wait(5.0, holds=lambda: self.front.process.is_dead)
                self.front.kill()
            self._wait_for_end()
            self._start()
        elif fault == "kill_all":
            self.front.kill_all()
            self._wait_for_end()
            self._start()
        elif fault == "stop":
            self._restart()
        elif fault == "upgrade":
            self._change_version()
            self._restart()
        elif fault == "power_cut":
            if soon is not None and living:
                rng.choice([self.front.process, *living]).calls_left = soon
                world.wait(rng.choice([0.0, 0.05, 1.0]))
            for program in self.programs:
                for account in program.accounts:
                    account.begin_doubt(min(self._last_synced(), self._last_sure(program.session)) - _BEHIND)
            self.failed_at = self.healed_at = math.inf
            self.front.kill_all()
            self.disk.is_full = self.disk.fails = False
            self._wait_for_end()
            self.network.power_cuts += 1
            self.disk.cut_power()
            world.note("the power is back")
            self._start()
        elif fault == "full_disk":
            self.disk.is_full = True
            world.later(rng.choice([0.01, 0.5, 5.0]), self._heal)
        elif fault == "failing_disk":
            self.disk.fails = True
            self.failed_at = min(self.failed_at, world.now)
            self.healed_at = math.inf
            world.later(rng.choice([0.01, 0.5, 5.0]), self._heal)
        elif fault == "lost_folder":
            self.plan.is_lost = True
            self.front.kill_all()
            self._wait_for_end()
            self.disk.clear()
            self._start()
        elif fault == "partition":
            self.network.cut(rng.choice(self.programs).name, rng.choice([0.1, 2.0, 70.0]))

    def _last_synced(self) -> float:
        """When logs were last brought to the disk: a server does so at its beginning, and until it ends."""
        last = self.world.now
        for front in reversed(self.fronts):
            last = last if front.process.ended_at is None else min(front.process.ended_at, last)
            if front.has_begun:
                break
        return last

    def _last_sure(self, session: str) -> float:
        """When the disk began to fail: what it lost is written anew with the session's first answer afterwards."""
        accounts = [account for program in self.programs if program.session == session for account in program.accounts]
        is_written = any(account.times and account.times[-1] > self.healed_at for account in accounts)
        return math.inf if is_written else self.failed_at

    def _heal(self) -> None:
        if self.disk.fails:
            self.healed_at = self.world.now
        self.disk.is_full = self.disk.fails = False
