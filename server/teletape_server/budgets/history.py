"""What an account has used, by hours: the sums of rolling windows, and when some of a sum leaves its window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from teletape_server.budgets.limits import DAYS, WINDOWS, Use

HOUR: Final = 3600.0
_HOURS: Final = 24


def hour_of(now: float) -> int:
    """Returns the hour of a time in Unix seconds."""
    return math.floor(now / HOUR)


class History:
    """The use of each hour of the longest window.

    An hour counts until all of it has left the window: so a window is up to an hour longer than its days.

    Args:
        hours: Use by hour.
    """

    def __init__(self, hours: Mapping[int, Use] | None = None) -> None:
        self.hours: dict[int, Use] = dict(sorted((hours or {}).items()))
        self._hour = -1  # for which the sums hold
        self._sums: dict[int, Use] = {}  # by days

    def add(self, now: float, use: Use) -> None:
        """Adds what was used at a time, in Unix seconds."""
        self._roll(now)
        hour = hour_of(now)
        self.hours[hour] = self.hours.get(hour, Use()).plus(use)
        self._sums = {days: total.plus(use) for days, total in self._sums.items()}

    def replace(self, hours: Mapping[int, Use]) -> None:
        """Takes what is known elsewhere of some hours."""
        self.hours = dict(sorted({**self.hours, **hours}.items()))
        self._hour = -1

    def used(self, name: str, now: float) -> float:
        """Returns what counts against a limit of `WINDOWS`."""
        self._roll(now)
        window = WINDOWS[name]
        return float(getattr(self._sums[window.days], window.measure))

    def frees(self, name: str, now: float, limit: float) -> float:
        """Returns when less than the limit will have been used, if nothing is added; in Unix seconds."""
        window, used = WINDOWS[name], self.used(name, now)
        first = hour_of(now) - _HOURS * window.days
        for hour, use in self.hours.items():
            if hour >= first and used >= limit:
                used -= getattr(use, window.measure)
                now = max(now, (hour + 1 + _HOURS * window.days) * HOUR)
        return now

    def days(self, now: float) -> dict[int, Use]:
        """Returns the use of the last days, by the day of Unix time."""
        self._roll(now)
        days: dict[int, Use] = {}
        for hour, use in self.hours.items():
            days[hour // _HOURS] = days.get(hour // _HOURS, Use()).plus(use)
        return days

    def _roll(self, now: float) -> None:
        """Brings the sums up to date, once an hour."""
        if (hour := hour_of(now)) == self._hour:
            return
        self._hour = hour
        self.hours = {known: use for known, use in self.hours.items() if known >= hour - _HOURS * DAYS}
        self._sums = {
            days: Use.sum(use for known, use in self.hours.items() if known >= hour - _HOURS * days)
            for days in {window.days for window in WINDOWS.values()}
        }
