"""Measures the rows of the benchmark and writes JSON; with --publish also the page docs/benchmarks.md.

    make bench ARGS='--only chain --quick'

Each system runs in processes of its own, in turn in each row. Peers are in .venv/peers (make bench-peers); those that
are absent are named in the result.
"""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from suite import facts, page, sampling
from suite.processes import PEERS, Failed, Process
from suite.rows import ROWS, Row
from suite.servers import ROOT
from suite.systems import SYSTEMS

#: For the rounds of a row, and how many rounds there are at least.
USUAL, QUICK = (7.0, 5), (1.0, 3)


class Processes:
    """The processes that run, by system and number of threads, each started when a row first needs it."""

    def __init__(self, start: Callable[[str, int], Process], absent: dict[str, str]) -> None:
        self._start, self._absent = start, absent
        self._running: dict[tuple[str, int], Process] = {}

    def get(self, system: str, threads: int) -> Process:
        """The process of a system."""
        if system in self._absent:
            raise Failed(self._absent[system])
        process = self._running.get((system, threads))
        if process is None or process.ended:
            self._running[system, threads] = self._start(system, threads)
        return self._running[system, threads]

    def close(self) -> None:
        """Ends all."""
        while self._running:
            self._running.popitem()[1].close()


def memory(row: Row, process: Process) -> float:
    """The MB by which the peak of a fresh process rises; ends it."""
    try:
        mb: float = process.ask("memory", program=row.program, size=row.size)["mb"]
        return mb
    finally:
        process.close()


def run(names: list[str], seconds: float, least: int, own: Path, peers: Path, *, busy: bool) -> dict[str, Any]:
    """The result of a run of some rows."""
    begin = time.monotonic()
    needed = {system for name in names for system in ROWS[name].systems}
    versions, absent = {}, {}
    for system in SYSTEMS:
        if system in needed:
            python = peers / "bin" / "python" if SYSTEMS[system].peer else own
            numbers = facts.versions(python, SYSTEMS[system].packages)
            if isinstance(numbers, str):
                absent[system] = numbers
            else:
                versions |= numbers
    result = {"run": {**facts.of_run(own), "busy": busy}, "versions": versions, "absent": absent, "rows": {}}

    def start(system: str, threads: int) -> Process:
        return Process(system, threads, own, peers, busy=busy)

    with contextlib.closing(Processes(start, absent)) as processes:
        remote = False
        for name in names:
            row = ROWS[name]
            if not remote and any(SYSTEMS[system].server for system in row.systems):
                remote = True
                processes.close()  # the processes of the rows before need no memory and no core
            systems = sampling.measure(row, lambda system, row=row: processes.get(system, row.threads), seconds, least)
            if row.memory:
                for system in systems:
                    if "samples" in systems[system] and system != "tcp":
                        with contextlib.suppress(Failed):  # no number
                            systems[system]["memory"] = memory(row, start(system, row.threads))
            result["rows"][name] = systems
            present = {system: measured for system, measured in systems.items() if system not in absent}
            print(page.line(name, row, present), flush=True)
    result["run"]["load after"] = facts.load()
    result["run"]["seconds"] = round(time.monotonic() - begin)
    return result


def main() -> None:
    """Measures, prints and writes."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the servers end too
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name has this in it; several: separated by commas")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: two minutes instead of ten")
    parser.add_argument("--seconds", type=float, help="of the rounds of a row")
    parser.add_argument(
        "--busy", action="store_true", help="CPU time in the process, for a machine that does other work"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "benchmark.json", help="out/benchmark.json")
    parser.add_argument("--publish", action="store_true", help="write benchmarks/results/ and docs/benchmarks.md")
    parser.add_argument("--peers", type=Path, default=PEERS, help="the peers' environment: .venv/peers")
    arguments = parser.parse_args()
    names = [name for name in ROWS if any(part in name for part in arguments.only.split(","))]
    if not names:
        parser.error(f"no row is called {arguments.only!r}; there are {', '.join(ROWS)}")
    if arguments.publish and arguments.only:
        parser.error("--publish needs every row: leave --only out")
    seconds, least = QUICK if arguments.quick else USUAL
    seconds = seconds if arguments.seconds is None else arguments.seconds
    result = run(names, seconds, least, Path(sys.executable), arguments.peers.absolute(), busy=arguments.busy)
    for system, reason in result["absent"].items():
        print(f"absent: {SYSTEMS[system].label}: {reason}")
    out = page.RESULT if arguments.publish else arguments.out
    out.parent.mkdir(exist_ok=True, parents=True)
    out.write_text(page.text_of(result), encoding="utf-8")
    print(f"{result['run']['seconds']} s, load {result['run']['load']}: {out}")
    if arguments.publish:
        page.write(result)


if __name__ == "__main__":
    main()
