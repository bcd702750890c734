"""Counts what sessions use for the accounts of their keys: computing, memory over time, requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from teletape_server.budgets.budgets import Budgets
from teletape_server.budgets.limits import Present, Use
from teletape_server.hosts.protocols import HostFacts
from teletape_server.sessions.entry import Metered, SessionEntry

_GIB_HOUR: Final = (1 << 30) * 3600.0  # in byte seconds
_DOUBTED: Final = 1.0  # CPU seconds that a page may be ahead of the kernel's clock: both are read one after the other

log = logging.getLogger("teletape")


class Meter:
    """Counts what sessions use.

    A session's process says in its page what it has computed. On a CPU the kernel says so too, of all its threads, and
    that is what counts: no process can change it. On a GPU, what counts is for how long its requests have run.

    Args:
        budgets: Where it counts.
        clock: Returns Unix seconds.
    """

    def __init__(self, budgets: Budgets, clock: Callable[[], float]) -> None:
        self._budgets, self._clock = budgets, clock

    def note(self, entry: SessionEntry, facts: HostFacts) -> None:
        """Counts what the host of a session has used since the last look, or since it was open."""
        before, now = entry.metered, self._clock()
        seconds, requests = _seconds(entry, facts), facts.durations.total
        is_doubted = 0.0 < facts.kernel_seconds < facts.cpu_seconds - _DOUBTED
        entry.metered = Metered(now, seconds, requests, facts.bytes_in_use, is_doubted)
        if is_doubted and not before.is_doubted:
            log.warning(
                "session %s of %s: its process says that it has computed %.1f s, and the kernel knows of %.1f s",
                *(entry.id, entry.owner, facts.cpu_seconds, facts.kernel_seconds),
                extra=entry.log_facts,
            )
        use = Use(
            max(seconds - before.seconds, 0.0),
            facts.bytes_in_use * max(now - before.at, 0.0) / _GIB_HOUR,
            max(requests - before.requests, 0),
        )
        if any(use):
            self._budgets.charge(entry.account, use)


def _seconds(entry: SessionEntry, facts: HostFacts) -> float:
    """Returns the seconds that a host has computed."""
    if entry.device == "cpu":
        return facts.kernel_seconds or facts.cpu_seconds
    return max(facts.kernel_seconds, facts.compute_seconds)


def present(entries: Iterable[SessionEntry]) -> Mapping[str, Present]:
    """Returns what each account uses, memory as of the last look; sessions of single requests take no place."""
    total: dict[str, Present] = {}
    for entry in entries:
        is_counted = entry.has_place and not entry.record.is_run
        mine = Present(int(is_counted), entry.metered.bytes_in_use if entry.host is not None else 0, entry.disk_bytes)
        total[entry.account] = total.get(entry.account, Present()).plus(mine)
    return total
