"""The API keys that are valid now, in memory: to know a key again costs a digest and a look into a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from teletape_server.identity.key_texts import digest
from teletape_server.identity.principals import ALL, LOCAL, Principal, Role, Scope

#: Ids of the keys of the environment begin with it, then comes their name; those of the store never do.
ENVIRONMENT: Final = "env-"


class StoreError(Exception):
    """Raised if the keys cannot be read or written; the message is for the operator, and has no password."""


@dataclass(frozen=True)
class Key:
    """What is known of an API key; times in Unix seconds.

    Attributes:
        id: Its public part.
        digest: Of the whole key; see `key_texts`.
        name: For people.
        owner, role, group, scopes: See `Principal`.
        created: When; None: it is of the environment.
        expires: When it ends by itself; None: never.
        revoked: When it was ended; None: it was not.
        used: When it was last used, to half a minute; None: never, as far as that is kept.
        own_account: What it counts for, if that is not the account of its owner; see `budgets`.
    """

    id: str
    digest: bytes
    name: str
    owner: str
    role: Role = "user"
    group: str = ""
    scopes: frozenset[Scope] = ALL
    created: float | None = None
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None
    own_account: str = ""

    @property
    def account(self) -> str:
        """Which account it counts for."""
        return self.own_account or self.owner

    @property
    def principal(self) -> Principal:
        """Who sends a request with it."""
        return Principal(self.owner, self.id, self.role, self.group, self.scopes, self.account)

    def is_valid(self, now: float) -> bool:
        """Returns whether it opens the server at a time."""
        return self.revoked is None and (self.expires is None or now < self.expires)


def environment_keys(keys: Mapping[str, str], admins: Collection[str]) -> tuple[Key, ...]:
    """Returns the keys of the environment.

    Args:
        keys: Owner to key.
        admins: Those who see the sessions of all.
    """
    return tuple(
        Key(ENVIRONMENT + owner, digest(text), owner, owner, "admin" if owner in admins else "user")
        for owner, text in keys.items()
    )


class Keys:
    """The API keys of a server. There is nothing else in this process that knows what opens it.

    Once there has been a key, the server requires one, also after the last one has ended.

    Args:
        fixed: Those of the environment: they end with the server.
        clock: Returns Unix seconds.

    Attributes:
        generation: Another number for each set of valid keys: what was decided with another set does not count.
        owners: How many have a valid key; at least 1.
        used: Ids of the keys that were presented since this was last cleared.
    """

    def __init__(self, fixed: Iterable[Key] = (), clock: Callable[[], float] = time.time) -> None:
        self.fixed, self._clock = tuple(fixed), clock
        self.generation = 0
        self.owners = 1
        self.used: set[str] = set()
        self._stored: tuple[Key, ...] = ()
        self._by_digest: dict[bytes, Principal] = {}
        self._is_open = True
        self._next_end = float("inf")
        self._listeners: list[Callable[[], None]] = []
        self._settle()

    def __bool__(self) -> bool:
        return not self._is_open

    @property
    def all(self) -> tuple[Key, ...]:
        """All of them, also those that have ended: of the environment first, then in the order of their creation."""
        return (*self.fixed, *self._stored)

    @property
    def groups(self) -> dict[str, str]:
        """The group of each account: that of its newest key that is valid."""
        now = self._clock()
        keys = sorted(self.all, key=lambda key: (key.is_valid(now), key.created or 0.0))
        return {key.account: key.group for key in keys}

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls a function after each change of the set of valid keys."""
        self._listeners.append(listener)

    def replace(self, stored: Iterable[Key]) -> None:
        """Takes what the store has now."""
        self._stored = tuple(stored)
        self._settle()

    def end_expired(self) -> None:
        """Lets keys end whose time has come; to be called several times a second."""
        if self._clock() >= self._next_end:
            self._settle()

    def _settle(self) -> None:
        now, keys = self._clock(), self.all
        valid = {key.digest: key.principal for key in keys if key.is_valid(now)}
        self._next_end = min([key.expires for key in keys if key.expires and key.is_valid(now)], default=float("inf"))
        if valid == self._by_digest and self._is_open == (not keys):
            return
        self._by_digest, self._is_open = valid, not keys
        self.owners = max(len({principal.owner for principal in valid.values()}), 1)
        self.generation += 1
        for listener in self._listeners:
            listener()

    def principal(self, presented: str | None) -> Principal | None:
        """Returns who sends a request with a key; None: it is wrong, has ended, or is missing.

        Keys are looked up by their digest, so the time says nothing about them.
        """
        if self._is_open:
            return LOCAL
        if presented is None:
            return None
        principal = self._by_digest.get(digest(presented))
        if principal is not None:
            self.used.add(principal.key)
        return principal

    def is_valid(self, principal: Principal) -> bool:
        """Returns whether a principal of an earlier request would still be let in."""
        return principal in self._by_digest.values() or (self._is_open and principal is LOCAL)
