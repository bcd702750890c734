"""Measures a row: its systems in turn, round after round, so that other work of the machine disturbs all alike."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from suite.processes import Failed, Process
from suite.rows import Row

RUN_SECONDS = 0.03  #: One run repeats its program until it takes this long.
MOST_ROUNDS = 31
AGREEMENT = 1e-2  #: How far sums and norms of results may differ from the first system's, relative to the norm.
THOUSAND_SECONDS = 2.0  #: A thousand calls are measured if they take no longer; otherwise they are extrapolated.


def measure(row: Row, process_of: Callable[[str], Process], seconds: float, least: int = 5) -> dict[str, Any]:
    """The samples of each system, in seconds of a call.

    Args:
        row: What to measure.
        process_of: Returns the running process of a system.
        seconds: How long the rounds may take together.
        least: How many rounds there are at least.

    Returns:
        For each system `samples`, `first`, `tenth` and `thousandth` (seconds until that answer) and whether the last is
        `extrapolated`; or `error`.
    """
    results: dict[str, dict[str, Any]] = {}
    processes: dict[str, Process] = {}
    expected: list[list[float]] | None = None
    for name in row.systems:
        try:
            process = process_of(name)
            loaded = process.ask("load", program=row.program, size=row.size)
            if loaded["summary"]:
                expected = expected or loaded["summary"]
                _check(loaded["summary"], expected)
        except Failed as error:
            results[name] = {"error": str(error)}
            continue
        results[name] = {"first": loaded["first"], "tenth": loaded["last"], "samples": []}
        processes[name] = process
    repeats: dict[str, int] = {}
    for name in list(processes):
        with _named(name, processes, results):
            repeats[name] = _repeats(row, processes[name], results[name])
    deadline, order = time.monotonic() + seconds, list(processes)
    for turn in range(MOST_ROUNDS):
        if turn >= least and time.monotonic() > deadline:
            break
        for name in [name for name in order if name in processes]:
            with _named(name, processes, results):
                reply = processes[name].ask(
                    "run", repeats=repeats[name], callers=row.callers, in_threads=row.in_threads
                )
                results[name]["samples"].append(reply["seconds"] / repeats[name] / row.callers)
        order = order[1:] + order[:1]
    for name in list(processes):
        with _named(name, processes, results):
            _thousandth(row, processes[name], results[name])
            processes[name].ask("leave")
    return results


@contextlib.contextmanager
def _named(name: str, processes: dict[str, Process], results: dict[str, Any]) -> Iterator[None]:
    """A block in which a system may fail: the row names it, and goes on without it."""
    try:
        yield
    except Failed as error:
        results[name] = {"error": str(error)}
        del processes[name]


def _check(summary: list[list[float]], expected: list[list[float]]) -> None:
    if len(summary) != len(expected):
        raise Failed(f"{len(summary)} results, others have {len(expected)}")
    for (total, norm), (expected_total, expected_norm) in zip(summary, expected, strict=True):
        scale = AGREEMENT * max(abs(expected_norm), 1e-6) * 10
        if not (abs(total - expected_total) <= scale and abs(norm - expected_norm) <= scale):
            raise Failed(f"results differ: sum {total:g}, norm {norm:g}; others {expected_total:g}, {expected_norm:g}")


def _repeats(row: Row, process: Process, result: dict[str, Any]) -> int:
    """How often a run repeats the program, from the mean of the first calls and a run of one."""
    mean = (result["tenth"] - result["first"]) / 9
    once = process.ask("run", repeats=1, callers=row.callers, in_threads=row.in_threads)["seconds"]
    return max(1, round(RUN_SECONDS / max(min(mean, once), 1e-6)))


def _thousandth(row: Row, process: Process, result: dict[str, Any]) -> None:
    middle = sorted(result["samples"])[len(result["samples"]) // 2]
    result["extrapolated"] = row.callers > 1 or 1000 * middle > THOUSAND_SECONDS
    if result["extrapolated"]:
        result["thousandth"] = result["tenth"] + 990 * middle
    else:
        result["thousandth"] = process.ask("load", program=row.program, size=row.size, calls=1000)["last"]
