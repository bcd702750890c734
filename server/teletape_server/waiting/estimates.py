"""How long requests that wait or run will still take, from those that the same session has answered: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from teletape_server.hosts.protocols import HostFacts, Running


def typical_seconds(facts: HostFacts) -> float | None:
    """Returns the seconds that a request of a session has run on average; None: none has run yet."""
    total = facts.durations.total
    return facts.compute_seconds / total if total else None


def seconds_left(running: Running, facts: HostFacts) -> float | None:
    """Returns the seconds that a request which runs will still take, by its loop, its commands, or earlier requests.

    Args:
        running: The request.
        facts: Of its session; `running_seconds` is how long it has run.

    Returns:
        The seconds; None: nothing says how many, or it takes longer than was to be expected.
    """
    ran = facts.running_seconds
    for done, total in ((running.iteration, running.iterations), (running.done, running.total)):
        if 0 < done <= total:
            return ran * (total - done) / done
    typical = typical_seconds(facts)
    return None if typical is None or typical < ran else typical - ran


def seconds_until(left: float | None, others: int, typical: float | None) -> float | None:
    """Returns the seconds until the turn of a request that waits for the one that runs, and for others after that.

    Args:
        left: Seconds that the one that runs will still take; None: not known.
        others: How many wait before it.
        typical: Seconds that each of these takes; None: not known.
    """
    if left is None or (others and typical is None):
        return None
    return left + others * (typical or 0.0)


def seconds_until_place(position: int, places: int, typical: float | None) -> float | None:
    """Returns the seconds until one of several places is free for the request at a position; places end at any time.

    Args:
        position: From 1.
        places: How many there are.
        typical: Seconds for which a place is taken on average; None: not known.
    """
    return None if typical is None else typical * position / places


def total_seconds(parts: Sequence[float | None]) -> float | None:
    """Returns the sum; None: one of them is not known."""
    return None if None in parts else sum(part for part in parts if part is not None)
