"""Who computed when: the seconds of computing of each account, by minutes of the last hours, by hours and by days."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from teletape_server.budgets.history import HOUR

Step: TypeAlias = Literal["minutes", "hours", "days"]

MINUTE: Final = 60.0
#: Seconds of a step, and how many there are.
STEPS: Final[dict[Step, tuple[float, int]]] = {"minutes": (MINUTE, 180), "hours": (HOUR, 48), "days": (24 * HOUR, 30)}


class Minutes:
    """Seconds of computing in each of the last minutes, by account; what is before them is forgotten."""

    def __init__(self) -> None:
        self._last = 0  # the minute in which something was added last
        self._seconds: dict[str, dict[int, float]] = {}

    def add(self, account: str, now: float, seconds: float) -> None:
        """Adds what an account has computed just now, in Unix seconds."""
        if not seconds:
            return
        minute = math.floor(now / MINUTE)
        if minute > self._last:
            self._last = minute
            self._forget(minute - STEPS["minutes"][1])
        mine = self._seconds.setdefault(account, {})
        mine[minute] = mine.get(minute, 0.0) + seconds

    def _forget(self, last: int) -> None:
        for account, minutes in [*self._seconds.items()]:
            later = {minute: seconds for minute, seconds in minutes.items() if minute > last}
            if later:
                self._seconds[account] = later
            else:
                del self._seconds[account]

    def of(self, account: str) -> Mapping[int, float]:
        """Returns the seconds of an account, by the minute of Unix time."""
        return self._seconds.get(account, {})


class Timeline(NamedTuple):
    """Seconds of computing in steps of equal length, the last of which is the present one.

    Attributes:
        began: When the first step began, in Unix seconds.
        step: Seconds of a step.
        seconds: Of each step, by account; accounts that have not computed are left out.
    """

    began: float
    step: float
    seconds: Mapping[str, list[float]]

    @classmethod
    def of(cls, step: Step, used: Mapping[str, Mapping[int, float]], now: float) -> Timeline:
        """Returns the timeline of accounts.

        Args:
            step: Its steps.
            used: Seconds by account, and by the minute of Unix time for minutes, else by the hour.
            now: Unix seconds.
        """
        length, count = STEPS[step]
        first = math.floor(now / length) - count + 1
        numbers = round(length / (MINUTE if step == "minutes" else HOUR))  # of minutes or hours, in a step
        seconds = {account: [0.0] * count for account in used}
        for account, known in used.items():
            for number, more in known.items():
                if 0 <= (place := number // numbers - first) < count:
                    seconds[account][place] += more
        return cls(first * length, length, {account: total for account, total in seconds.items() if any(total)})
