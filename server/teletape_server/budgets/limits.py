"""What an account may use: numbers at a time, and totals of rolling windows of days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

GROUP: Final = "@"  #: First character of a group's account: no owner's name has it.


class Limits(NamedTuple):
    """The limits of an account; None: there is none.

    Attributes:
        sessions: That have a place at a time.
        memory_bytes: Of the arrays of all its sessions, at a time.
        disk_bytes: Of the files of all its sessions, at a time.
        requests_per_second: That it sends; as many may come at once.
        compute_seconds_1d, compute_seconds_7d, compute_seconds_30d: Of its sessions, within so many days.
        gib_hours_1d, gib_hours_7d, gib_hours_30d: GiB of memory times the hours for which its sessions have had them.
    """

    sessions: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    requests_per_second: float | None = None
    compute_seconds_1d: float | None = None
    compute_seconds_7d: float | None = None
    compute_seconds_30d: float | None = None
    gib_hours_1d: float | None = None
    gib_hours_7d: float | None = None
    gib_hours_30d: float | None = None

    @property
    def named(self) -> dict[str, float]:
        """Those that there are, by name."""
        return {name: limit for name, limit in self._asdict().items() if limit is not None}

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self.named

    def or_else(self, others: Limits) -> Limits:
        """Returns these, and of the others what these do not name."""
        return Limits(**{**others._asdict(), **self.named})

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> Limits:
        """Returns limits by name, without names that there are not."""
        return cls(**{name: limit for name, limit in named.items() if name in cls._fields})


NO_LIMITS: Final = Limits()  #: Of an account that may use as much as there is.


class Window(NamedTuple):
    """What is added up over days.

    Attributes:
        measure: A field of `Use`.
        days: How many.
        words: What is counted, for people.
    """

    measure: str
    days: int
    words: str


#: The limits on what is added up, by name.
WINDOWS: Final[dict[str, Window]] = {
    f"{measure}_{days}d": Window(measure, days, words)
    for measure, words in (("compute_seconds", "compute seconds"), ("gib_hours", "GiB-hours"))
    for days in (1, 7, 30)
}
DAYS: Final = 30  #: Of the longest window.


class Use(NamedTuple):
    """What was used in some time.

    Attributes:
        compute_seconds: That sessions have computed.
        gib_hours: GiB of memory times hours.
        requests: That have run.
    """

    compute_seconds: float = 0.0
    gib_hours: float = 0.0
    requests: int = 0

    def plus(self, other: Use) -> Use:
        """Returns the sum."""
        return Use(
            self.compute_seconds + other.compute_seconds,
            self.gib_hours + other.gib_hours,
            self.requests + other.requests,
        )

    @classmethod
    def sum(cls, uses: Iterable[Use]) -> Use:
        """Returns the sum of several."""
        total = cls()
        for use in uses:
            total = total.plus(use)
        return total


class Present(NamedTuple):
    """What is in use now.

    Attributes:
        sessions: That have a place.
        memory_bytes: Of arrays.
        disk_bytes: Of files.
    """

    sessions: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0

    def plus(self, other: Present) -> Present:
        """Returns the sum."""
        return Present(*(mine + more for mine, more in zip(self, other, strict=True)))
