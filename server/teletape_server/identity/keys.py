"""The API keys and tokens that are valid now, in memory: to know one again costs a digest and a look into a table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from teletape_server.budgets.limits import Limits
from teletape_server.identity.key_texts import digest
from teletape_server.identity.principals import ALL, LOCAL, Principal, Role, Scope

#: Ids of the keys of the environment begin with it, then comes their name; those of the store never do.
ENVIRONMENT: Final = "env-"
_MOST_TOKENS: Final = 10_000  # that are known without a check


class StoreError(Exception):
    """Raised if the keys cannot be read or written; the message is for the operator, and has no password."""


class Known(NamedTuple):
    """What a store says of who may do what.

    Attributes:
        keys: All of its keys, in the order of their creation.
        limits: That accounts have of their own.
        token_ends: Before which time tokens of each owner count no more that an issuer has given; in Unix seconds.
    """

    keys: list[Key]
    limits: dict[str, Limits]
    token_ends: dict[str, float]


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


class Token(NamedTuple):
    """A token of an issuer that is known; see `Keys.add_token`."""

    principal: Principal
    ends: float
    issued: float


class Keys:
    """The API keys of a server. There is nothing else in this process that knows what opens it.

    Once there has been a key, the server requires one, also after the last one has ended.

    Args:
        fixed: Those of the environment: they end with the server.
        clock: Returns Unix seconds.
        has_issuer: Whether tokens of an issuer open the server too; then it requires a key or a token.

    Attributes:
        generation: Another number for each set of valid keys: what was decided with another set does not count.
        owners: How many have a valid key; at least 1.
        used: Ids of the keys that were presented since this was last cleared.
    """

    def __init__(
        self, fixed: Iterable[Key] = (), clock: Callable[[], float] = time.time, *, has_issuer: bool = False
    ) -> None:
        self.fixed, self._clock, self._has_issuer = tuple(fixed), clock, has_issuer
        self._tokens: dict[bytes, Token] = {}  # by digest
        self._token_ends: Mapping[str, float] = {}
        self._token_groups: dict[str, str] = {}  # by account, as the last token of each says
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
        """The group of each account: that of its last token, or of its newest key.

        A key counts for this after its end too, so an owner leaves no group by ending keys.
        """
        return {key.account: key.group for key in self._oldest_first()} | self._token_groups

    def group_of(self, account: str) -> str:
        """Returns the group of a further key of an account, or of an owner; empty: none."""
        return ({key.owner: key.group for key in self._oldest_first()} | self.groups).get(account, "")

    def _oldest_first(self) -> list[Key]:
        return sorted(self.all, key=lambda key: key.created or 0.0)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls a function after each change of the set of valid keys."""
        self._listeners.append(listener)

    def replace(self, stored: Iterable[Key], token_ends: Mapping[str, float] | None = None) -> None:
        """Takes what the store has now; see `Known`."""
        self._stored = tuple(stored)
        self._token_ends = token_ends or {}
        self._settle()

    def add_token(self, token: str, principal: Principal, ends: float, issued: float) -> bool:
        """Takes a token: from now on it is known as keys are.

        Args:
            token: The token.
            principal: Who sends it.
            ends: When it ends by itself, in Unix seconds.
            issued: When the issuer gave it, likewise.

        Returns:
            Whether it counts: an admin has not ended it.
        """
        if issued < self._token_ends.get(principal.owner, -math.inf):
            return False
        if len(self._tokens) >= _MOST_TOKENS:  # what is forgotten is checked anew
            del self._tokens[min(self._tokens, key=lambda known: self._tokens[known].ends)]
        self._tokens[digest(token)] = Token(principal, ends, issued)
        self._by_digest[digest(token)] = principal
        self._next_end = min(self._next_end, ends)
        if self._token_groups.get(principal.account) != principal.group:
            self._token_groups[principal.account] = principal.group
            self._changed()
        return True

    def end_expired(self) -> None:
        """Lets keys end whose time has come; to be called several times a second."""
        if self._clock() >= self._next_end:
            self._settle()

    def _settle(self) -> None:
        now, keys = self._clock(), self.all
        before = self._token_ends
        self._tokens = {
            known: token
            for known, token in self._tokens.items()
            if now < token.ends and token.issued >= before.get(token.principal.owner, -math.inf)
        }
        valid = {key.digest: key.principal for key in keys if key.is_valid(now)}
        valid |= {known: token.principal for known, token in self._tokens.items()}
        ends = [key.expires for key in keys if key.expires and key.is_valid(now)]
        self._next_end = min([*ends, *(token.ends for token in self._tokens.values())], default=float("inf"))
        is_open = not keys and not self._has_issuer
        if valid == self._by_digest and self._is_open == is_open:
            return
        self._by_digest, self._is_open = valid, is_open
        self._changed()

    def _changed(self) -> None:
        self.owners = max(len({principal.owner for principal in self._by_digest.values()}), 1)
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

    def name_and_end(self, principal: Principal) -> tuple[str, float | None]:
        """Returns the name of a principal's key, and when its key or token ends by itself; None: never."""
        for key in self.all:
            if key.id == principal.key:
                return key.name, key.expires
        return "", next((token.ends for token in self._tokens.values() if token.principal == principal), None)

    def is_valid(self, principal: Principal) -> bool:
        """Returns whether a principal of an earlier request would still be let in."""
        return principal in self._by_digest.values() or (self._is_open and principal is LOCAL)
