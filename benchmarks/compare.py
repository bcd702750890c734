"""Compares the speed of two commits in one run: Teletape's rows of the benchmark, in-process and through servers.

    make bench-check                      # the branch main and this checkout
    make bench-check ARGS='HEAD~3 HEAD --only chain'

Each side is a commit, or the root of an installed checkout. Both run the programs of this checkout, in processes of
their own. A pair is one run of each, the first alternating, and the ratio is that of a pair: so other work of the
machine disturbs both alike. Below 1 the new side is faster. In the process CPU time counts, which other work disturbs
less.

A row is slower if the median of the ratios is above the limit, and the interval that holds the true median with 95 %
confidence is above 1. While the interval has both 1 and the limit in it, the row is unclear: it is measured again, at
most three times, and all pairs count. The exit status is 1 if a row is slower; rows that stay unclear are listed.
"""

import argparse
import contextlib
import math
import signal
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from suite.checkouts import checkout
from suite.processes import Process
from suite.rows import ROWS, Row
from suite.systems import SYSTEMS

OURS = ("eager", "function", "remote", "remote-function")
RUN_SECONDS = 0.03  #: One run repeats its program until it takes this long.
ATTEMPTS = 3


def cases(only: str) -> list[tuple[str, str]]:
    """The rows and systems to compare, those of one system together: its processes start once."""
    names = [(name, system) for system in OURS for name, row in ROWS.items() if system in row.systems and row.compared]
    return [(name, system) for name, system in names if any(part in f"{system} {name}" for part in only.split(","))]


def interval(ratios: list[float]) -> tuple[float, float]:
    """Where the true median is with 95 % confidence: order statistics of the sample, whatever its distribution."""
    ordered, count = sorted(ratios), len(ratios)
    first = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)))
    return ordered[first], ordered[count - 1 - first]


def verdict(ratios: list[float], limit: float) -> str:
    """`slower`, `unclear` or nothing."""
    low, high = interval(ratios)
    if statistics.median(ratios) > limit and low > 1:
        return "slower"
    return "unclear" if low <= 1 and high > limit and statistics.median(ratios) > (1 + limit) / 2 else ""


def pairs_of(old: Process, new: Process, row: Row, count: int) -> list[tuple[float, float]]:
    """The seconds (old, new) of a call in each pair."""
    for process in (old, new):
        process.ask("load", program=row.program, size=row.size)
    once = max(
        process.ask("run", repeats=1, callers=row.callers)["seconds"] for process in (old, new) for _ in range(3)
    )
    repeats, pairs = max(1, round(RUN_SECONDS / once)), []
    for turn in range(count):
        order = (old, new) if turn % 2 == 0 else (new, old)
        seconds = {
            id(side): side.ask("run", repeats=repeats, callers=row.callers)["seconds"] / repeats for side in order
        }
        pairs.append((seconds[id(old)], seconds[id(new)]))
    for process in (old, new):
        process.ask("leave")
    return pairs


def main() -> None:
    """Measures and prints a table."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the servers end too
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?", default="main", help="a commit, or the root of a checkout (main)")
    parser.add_argument("new", nargs="?", default=".", help="another (this checkout)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each row (20)")
    parser.add_argument("--only", default="", help="rows whose system and name have this in them; several: with commas")
    parser.add_argument("--limit", type=float, default=1.05, help="a ratio above this is a loss (1.05)")
    arguments = parser.parse_args()
    print(f"{'new / old':34}{'old µs':>10}{'new µs':>10}{'median':>9}   95 %             pairs", flush=True)
    verdicts: dict[str, list[str]] = {"slower": [], "unclear": [], "": []}
    with contextlib.ExitStack() as stack:
        pythons = [stack.enter_context(checkout(side)) for side in (arguments.old, arguments.new)]
        running: tuple[str, int] | None = None
        processes = stack.enter_context(contextlib.ExitStack())
        for name, system in cases(arguments.only):
            row = ROWS[name]
            if running != (system, row.threads):
                processes.close()
                sides = [Process(system, row.threads, python, busy=True) for python in pythons]
                for side in sides:
                    processes.callback(side.close)
                running = (system, row.threads)
            pairs: list[tuple[float, float]] = []
            for _ in range(ATTEMPTS):
                pairs += pairs_of(sides[0], sides[1], row, arguments.pairs)
                ratios = [after / before for before, after in pairs]
                result = verdict(ratios, arguments.limit)
                if result != "unclear":
                    break
            label = f"{SYSTEMS[system].label}{' (HTTP)' if SYSTEMS[system].server else ''}: {name}"
            before, after = (statistics.median(side) * 1e6 for side in zip(*pairs, strict=True))
            low, high = interval(ratios)
            print(f"{label:34}{before:10.0f}{after:10.0f}{statistics.median(ratios):9.3f}", end="")
            print(f"   {low:.3f} to {high:.3f}   {len(pairs):5}   {result}", flush=True)
            verdicts[result].append(label)
    conclude(verdicts["slower"], verdicts["unclear"], arguments.limit)


def conclude(slower: list[str], unclear: list[str], limit: float) -> None:
    """Prints what is unclear, and ends with status 1 if a row is slower."""
    if unclear:
        print(f"unclear after {ATTEMPTS} attempts: {', '.join(unclear)}: measure on a quieter machine")
    if slower:
        sys.exit(f"slower by more than {limit - 1:.0%}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
