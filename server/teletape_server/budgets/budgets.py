"""The accounts of keys and groups: what each may use, what it has used, and what is refused beyond that.

An account is an owner's, by the owner's name; or that of a key with limits of its own, OWNER:ID; or a group's, @NAME.
What a session uses counts for the account of the key that has created it, and for that account's group.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from teletape_server.budgets.history import History, hour_of
from teletape_server.budgets.limits import GROUP, NO_LIMITS, WINDOWS, Limits, Present, Use
from teletape_server.budgets.rates import Rate
from teletape_server.budgets.timeline import Minutes
from teletape_server.problems import Problem
from teletape_wire import timestamp

WARNED: Final = 0.8  #: The part of a limit from which on its users are warned.
_STEP: Final = 20  # warnings are new at each twentieth of a limit
_FULL: Final = 1.0
_UNITS: Final = {"memory_bytes": "bytes of memory", "disk_bytes": "bytes of files"}

Unwritten = dict[tuple[str, int], Use]  #: By account and hour.


class Standing(NamedTuple):
    """How much of a limit is used.

    Attributes:
        account: Whose limit it is.
        name: Of the limit.
        used, limit: In its unit.
        frees: When less than the limit will be used, in Unix seconds; None: that is not known before.
    """

    account: str
    name: str
    used: float
    limit: float
    frees: float | None = None

    @property
    def part(self) -> float:
        """Used, of the limit."""
        return self.used / self.limit if self.limit else _FULL

    @property
    def limit_text(self) -> str:
        """The limit for people."""
        window = WINDOWS.get(self.name)
        unit = f"{window.words} within {window.days} d" if window else _UNITS.get(self.name, self.name)
        return f"{_number(self.limit)} {unit}"

    @property
    def text(self) -> str:
        """All of it for people."""
        return f"{whose(self.account)} used {_number(self.used)} of {self.limit_text}"


class Room(NamedTuple):
    """How many sessions an account may have, and how many have a place.

    Attributes:
        account: Whose limit it is.
        used, limit: Sessions.
    """

    account: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """How many more there may be."""
        return max(self.limit - self.used, 0)


class Budgets:
    """What all accounts may use, and have used.

    Args:
        defaults: Limits of owners and keys that have none of their own.
        clock: Returns Unix seconds.
        ticks: Returns seconds of a clock that is never set.

    Attributes:
        present: Returns what each account uses now.
        present_of: The same of those that count for one of some accounts, without a look at all others.
        frees: Returns when the next session of an account gives up what it has; None: that is not known. It takes the
            account, None for all, and whether one that lasts is parked for that.
        over: Accounts for which nothing new runs, as of the last look.
        warnings: Sentences for accounts that have used most of a limit, as of the last look.
        unwritten: Use that no store has yet.
        minutes: When accounts have computed in the last hours; groups have none.
    """

    def __init__(
        self,
        defaults: Limits = NO_LIMITS,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._defaults, self._clock, self._ticks = defaults, clock, ticks
        self._own: Mapping[str, Limits] = {}
        self._groups: Mapping[str, str] = {}
        self._histories: defaultdict[str, History] = defaultdict(History)
        self._rates: dict[str, Rate] = {}
        self._rated: dict[str, bool] = {}  # whether the requests of an account are counted
        self.present: Callable[[], Mapping[str, Present]] = dict
        self.present_of: Callable[[Collection[str]], Mapping[str, Present]] = lambda _: self.present()
        self.frees: Callable[[str | None, bool], float | None] = lambda *_: None
        self.over: Mapping[str, Standing] = {}
        self.warnings: Mapping[str, str] = {}
        self.unwritten: Unwritten = {}
        self.minutes = Minutes()

    # ------------------------------------------------------------------------------------------------------ what is set
    def set_limits(self, own: Mapping[str, Limits]) -> None:
        """Takes the limits that accounts have of their own."""
        self._own = own
        self._rated.clear()

    def has_own(self, account: str) -> bool:
        """Returns whether an account has limits of its own."""
        return account in self._own

    def set_groups(self, groups: Mapping[str, str]) -> None:
        """Takes the groups of accounts."""
        self._groups = groups
        self._rated.clear()

    def load(self, use: Mapping[str, Mapping[int, Use]]) -> None:
        """Takes what a store has of some hours, with what it does not have yet."""
        for account, hours in use.items():
            more = {hour: self.unwritten.get((account, hour), Use()) for hour in hours}
            self._histories[account].replace({hour: hours[hour].plus(more[hour]) for hour in hours})

    def own_limits(self, account: str) -> Limits:
        """Returns the limits that an account has of its own."""
        return self._own.get(account, NO_LIMITS)

    def limits(self, account: str) -> Limits:
        """Returns the limits that hold for an account, without those of its group."""
        own = self.own_limits(account)
        return own if account.startswith(GROUP) else own.or_else(self._defaults)

    def group(self, account: str) -> str:
        """Returns the account of an account's group; empty: it is in none."""
        group = self._groups.get(account, "")
        return group and GROUP + group

    def chain(self, account: str) -> tuple[str, ...]:
        """Returns the accounts for which something counts: an account, and that of its group."""
        group = self.group(account)
        return (account, group) if group else (account,)

    def chain_limits(self, account: str, name: str) -> list[tuple[str, float]]:
        """Returns each limit of a name that holds for an account, with the account whose limit it is."""
        limits = [(part, self.limits(part).named.get(name)) for part in self.chain(account)]
        return [(part, limit) for part, limit in limits if limit is not None]

    @property
    def accounts(self) -> list[str]:
        """All that are known, in the order of their names."""
        groups = (GROUP + group for group in self._groups.values() if group)
        return sorted({*self._own, *self._histories, *self._groups, *groups, *self.present()})

    # ------------------------------------------------------------------------------------------------------------ using
    def charge(self, account: str, use: Use) -> None:
        """Counts what was used just now."""
        now = self._clock()
        self.minutes.add(account, now, use.compute_seconds)
        for name in self.chain(account):
            self._histories[name].add(now, use)
            key = name, hour_of(now)
            self.unwritten[key] = self.unwritten.get(key, Use()).plus(use)

    def history(self, account: str) -> History:
        """Returns what an account has used."""
        return self._histories[account]

    def now_used(self, account: str, present: Mapping[str, Present] | None = None) -> Present:
        """Returns what an account uses now; a group's is the sum of its members'."""
        present = self.present_of((account,)) if present is None else present
        total = Present()
        for name, used in present.items():
            if account in self.chain(name):
                total = total.plus(used)
        return total

    def standings(self, account: str, present: Mapping[str, Present] | None = None) -> list[Standing]:
        """Returns how much of each limit is used that holds for an account, its group's too; but those of a second."""
        chain, now = self.chain(account), self._clock()
        present = self.present_of(chain) if present is None else present
        return [standing for name in chain for standing in self._standings(name, now, present)]

    def _standings(self, account: str, now: float, present: Mapping[str, Present]) -> Iterator[Standing]:
        named = self.limits(account).named
        used = self.now_used(account, present) if named.keys() & {*Present._fields} else Present()
        for name, limit in named.items():
            if name in WINDOWS:
                total = self.history(account).used(name, now)
                frees = self.history(account).frees(name, now, limit) if total >= limit else None
                yield Standing(account, name, total, limit, frees)
            elif name in Present._fields:
                yield Standing(account, name, getattr(used, name), limit)

    # --------------------------------------------------------------------------------------------------------- checking
    def look(self) -> set[str]:
        """Looks at all accounts; returns those of which something is refused, or warned of, that was not before.

        To be called once a second.
        """
        present, now = self.present(), self._clock()
        over, warnings = dict[str, Standing](), dict[str, str]()
        by_name: dict[str, list[Standing]] = {}
        for account in {*present, *self._histories, *self._groups} - {""}:
            if account.startswith(GROUP):
                continue
            for name in self.chain(account):
                if name not in by_name:
                    by_name[name] = [*self._standings(name, now, present)]
                for standing in by_name[name]:
                    if standing.name in WINDOWS and standing.part >= _FULL:
                        over[account] = standing
            all_of_it = [standing for name in self.chain(account) for standing in by_name[name]]
            most = max(all_of_it, key=_part, default=None)
            if most is not None and most.part >= WARNED:
                percent = min(math.floor(most.part * _STEP) * (100 // _STEP), 100)
                limit = f"{_whom(most.account)} may use {most.limit_text}"
                warnings[account] = f"{percent} % of a limit is used: {limit}; GET /v1/me shows all"
        before, self.over, self.warnings = (self.over, self.warnings), over, warnings
        names = {*over, *warnings, *before[0], *before[1]}
        return {name for name in names if _state(name, *before) != _state(name, over, warnings)}

    def check_work(self, account: str) -> None:
        """Checks that an account may have something computed.

        Raises:
            Problem: over_budget.
        """
        if account in self.over and (standing := self._over_now(account)) is not None:
            raise self.refusal(standing)

    def _over_now(self, account: str) -> Standing | None:
        full = [standing for standing in self.standings(account, {}) if standing.frees is not None]
        return max(full, key=lambda standing: standing.frees or 0.0, default=None)

    def refusal(self, standing: Standing) -> Problem:
        """Returns the problem of work for which nothing of a window is left."""
        frees = self._clock() if standing.frees is None else standing.frees
        return Problem(
            "over_budget",
            f"{standing.text}, so nothing new is computed until {timestamp(frees)}, when enough of that is older. What "
            "is there can be read, written down and deleted; GET /v1/me shows all limits",
            account=standing.account,
            name=standing.name,
            used=round(standing.used, 3),
            asked=None,
            limit=standing.limit,
            **self._retry(frees),
        )

    def _retry(self, frees: float | None) -> dict[str, Any]:
        """Returns what a refusal says of when to try again: a header, and a detail; None: that is not known."""
        if frees is None:
            return {}
        seconds = max(math.ceil(frees - self._clock()), 1)
        return {"headers": {"Retry-After": str(seconds)}, "frees_at": timestamp(frees)}

    def check_room(self, room: Room | None) -> None:
        """Checks that there is room for one more session; see `tightest`.

        Raises:
            Problem: too_many_sessions.
        """
        if room is not None and not room.left:
            raise Problem(
                "too_many_sessions",
                f"{whose(room.account)} {room.used} sessions, the limit is {room.limit}: end one (GET /v1/sessions), "
                "or send the request again later",
                account=room.account,
                name="sessions",
                used=room.used,
                asked=1,
                limit=room.limit,
                **self._retry(self.frees(room.account, True)),
            )

    def check_memory(self, account: str, more: int = 0, present: Mapping[str, Present] | None = None) -> None:
        """Checks that the sessions of an account may have more memory.

        Args:
            account: Which.
            more: Bytes.
            present: What each account uses now; None: as of the last look.

        Raises:
            Problem: resource_exhausted.
        """
        for name, limit in self.chain_limits(account, "memory_bytes"):
            used = self.now_used(name, present).memory_bytes
            if used + max(more, 1) <= limit:
                continue
            raise Problem(
                "resource_exhausted",
                f"{Standing(name, 'memory_bytes', used, limit).text}: release tensors, or end or park a session "
                "(GET /v1/sessions)",
                account=name,
                name="memory_bytes",
                used=used,
                asked=more,
                limit=limit,
                **self._retry(None if more > limit else self.frees(name, False)),  # what is too much stays so
            )

    def tightest(self, account: str, sessions: Iterable[str]) -> Room | None:
        """Returns the room for sessions that an account has, or its group if that has less; None: as much as there is.

        Args:
            account: Whose sessions they are.
            sessions: The account of each session that has a place.
        """
        counts: defaultdict[str, int] = defaultdict(int)
        for other in sessions:
            for name in self.chain(other):
                counts[name] += 1
        limits = self.chain_limits(account, "sessions")
        rooms = [Room(name, counts[name], int(limit)) for name, limit in limits]
        return min(rooms, key=lambda room: room.left, default=None)

    def is_limited(self, account: str) -> bool:
        """Returns whether each request of an account has to be looked at: its work or its requests are limited."""
        if account in self.over:
            return True
        is_rated = self._rated.get(account)
        if is_rated is None:
            is_rated = self._rated[account] = bool(self.chain_limits(account, "requests_per_second"))
        return is_rated

    def take_request(self, account: str) -> None:
        """Counts a request of an account against its requests a second.

        Raises:
            Problem: busy.
        """
        for name, limit in self.chain_limits(account, "requests_per_second"):
            now = self._ticks()
            rate = self._rates.get(name) or self._rates.setdefault(name, Rate(now))
            if wait := rate.take(limit, now):
                raise Problem(
                    "busy",
                    f"{whose(name)} sent {_number(limit)} requests a second, the limit: the next may come in "
                    f"{wait:.3f} s",
                    headers={"Retry-After": str(math.ceil(wait))},
                    account=name,
                    name="requests_per_second",
                    used=limit,
                    asked=1,
                    limit=limit,
                    seconds=round(wait, 3),
                )


def whose(account: str) -> str:
    """Returns the beginning of a sentence about an account's use."""
    return f"{_whom(account)} {'has' if account.startswith(GROUP) or ':' in account else 'have'}"


def _whom(account: str) -> str:
    if account.startswith(GROUP):
        return f"the group {account[1:]}"
    owner, colon, id = account.partition(":")
    return f"the key {id} of {owner}" if colon else f"the keys of {owner}"


def _part(standing: Standing) -> float:
    return standing.part


def _state(name: str, over: Mapping[str, Standing], warnings: Mapping[str, str]) -> tuple[bool, str]:
    return name in over, warnings.get(name, "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.4g}"
