"""The keys and limits of a server, and what is noted of their use, as its requests and its operator change them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from teletape_server.budgets.budgets import Budgets
from teletape_server.budgets.history import hour_of
from teletape_server.budgets.limits import DAYS, GROUP, NO_LIMITS, Limits, Use
from teletape_server.identity.entries import Action, Entry
from teletape_server.identity.key_texts import digest, new_text
from teletape_server.identity.keys import ENVIRONMENT, Key, Keys, Known, StoreError, environment_keys
from teletape_server.identity.principals import ALL, Principal, Role, Scope
from teletape_server.identity.store_turns import StoreTurns
from teletape_server.identity.token_rules import LEEWAY, TokenRules, is_token
from teletape_server.identity.wrong_keys import WrongKeys
from teletape_server.problems import Problem

if TYPE_CHECKING:
    from teletape_server.identity.store import Store
    from teletape_server.identity.tokens import Issuer

_HOURS: Final = 24 * DAYS  # of the longest window
_LOOK_SECONDS: Final = 0.25  # between two looks at keys that end, and at what is to be written
_USE_SECONDS: Final = 30.0  # between two notes of which keys were used
_BUDGET_SECONDS: Final = 10.0  # between two times that what accounts have used is written
_OLD_SECONDS: Final = 3600.0  # between two times that old entries of the audit are removed

log = logging.getLogger("teletape")


class Identity:
    """The keys and the audit of a server.

    Args:
        fixed: The keys of the environment.
        store: Has all others, and the audit; None: there are none, and nothing is noted.
        clock: Returns Unix seconds.
        defaults: Limits of accounts that have none of their own.
        audit_age: Seconds after which an entry of the audit is removed.
        issuer: Whose tokens open the server too; None: there is none.

    Attributes:
        keys: Those that are valid.
        wrong_keys: How often an address has sent others.
        budgets: What the keys may use, and have used.
    """

    def __init__(
        self,
        fixed: Sequence[Key],
        store: Store | None,
        clock: Callable[[], float] = time.time,
        defaults: Limits = NO_LIMITS,
        audit_age: float = math.inf,
        issuer: Issuer | None = None,
    ) -> None:
        self.keys = Keys(fixed, clock, has_issuer=issuer is not None)
        self.wrong_keys, self.budgets, self._issuer = WrongKeys(), Budgets(defaults, clock), issuer
        self._store, self._clock, self._audit_age = store, clock, audit_age
        self._turns = StoreTurns(store)
        self._unwritten: list[Entry] = []
        self._used = clock()  # when it was noted last which keys were used
        self._budgeted = clock()  # when use was written last
        self._removed = 0.0  # when old entries of the audit were
        self.keys.on_change(lambda: self.budgets.set_groups(self.keys.groups))
        self.budgets.set_groups(self.keys.groups)
        if store is not None:
            known = store.known()
            self.keys.replace(known.keys, known.token_ends)
            self.budgets.set_limits(known.limits)
            self.budgets.load(store.use(hour_of(clock()) - _HOURS))

    @classmethod
    def open(
        cls,
        *,
        environment: Mapping[str, str],
        admins: Collection[str],
        data_dir: str | None,
        database: str | None,
        clock: Callable[[], float] = time.time,
        defaults: Limits = NO_LIMITS,
        audit_age: float = math.inf,
        oidc: TokenRules | None = None,
    ) -> Identity:
        """Returns that of a server with these settings.

        Args:
            environment: Owner to key.
            admins: Owners of these who see the sessions of all.
            data_dir: The folder for data, which has the others; None: there is none.
            database: The URL of a database that has them instead.
            clock: Returns Unix seconds.
            defaults: Limits of accounts that have none of their own.
            audit_age: Seconds after which an entry of the audit is removed.
            oidc: Which tokens open the server too; None: none do.

        Raises:
            StoreError: The store cannot be opened, or what checks tokens is not installed.
        """
        store = issuer = None
        if oidc is not None:
            try:
                from teletape_server.identity.tokens import Issuer
            except ImportError as error:
                raise StoreError(f"--oidc needs further packages: pip install 'teletape[oidc]' ({error})") from None
            issuer = Issuer(oidc)
        if database is not None or data_dir is not None:
            # Imported here: it takes a fifth of a second, and a server without a store needs nothing of it.
            from teletape_server.identity.store import Store

            store = Store(database) if database is not None else Store.in_folder(data_dir or "")
        return cls(environment_keys(environment, admins), store, clock, defaults, audit_age, issuer)

    # --------------------------------------------------------------------------------------------------------- tokens
    async def take_token(self, presented: str | None) -> None:
        """Takes what a request presents, if it is a token of the issuer that is new here: it is known from now on.

        Raises:
            Problem: unauthenticated: it is a token, and not valid; overloaded: the issuer does not answer.
        """
        if self._issuer is None or presented is None or not is_token(presented):
            return
        if self.keys.principal(presented) is None:
            token = await self._issuer.principal(presented, self._group_of)
            if not self.keys.add_token(presented, *token):
                raise self._issuer.ended(token[0].owner)

    def _group_of(self, groups: list[str]) -> str:
        """Returns which of an owner's groups counts: the first one that has limits, or else the first one."""
        return next((name for name in groups if self.budgets.has_own(GROUP + name)), groups[0] if groups else "")

    # ----------------------------------------------------------------------------------------------------------- keys
    async def create(
        self,
        by: Principal,
        *,
        name: str,
        owner: str,
        role: Role = "user",
        group: str | None = None,
        scopes: frozenset[Scope] = ALL,
        expires: float | None = None,
        limits: Limits = NO_LIMITS,
        address: str = "",
    ) -> tuple[Key, str]:
        """Returns a new key and its text, which nothing shows again.

        Args:
            by: Who creates it.
            name: For people.
            owner: See `Principal`.
            role: Likewise.
            group: Likewise; None: the one that the account has.
            scopes: Likewise.
            expires: When it ends by itself, in Unix seconds; None: never.
            limits: Its own: then it counts by itself. Without any it counts with the others of its owner, or, if it is
                the owner who creates it, with the key of the request.
            address: Where `by` is.

        Raises:
            Problem: invalid_request: there is no place for keys.
        """
        id, text = new_text()
        account = by.account if by.owner == owner and not by.is_admin else ""
        if not limits.is_empty:
            account = f"{owner}:{id}"
        if group is None:
            group = self.keys.group_of(by.account if by.owner == owner and not by.is_admin else owner)
        key = Key(id, digest(text), name, owner, role, group, scopes, self._clock(), expires, own_account=account)

        def change(store: Store) -> None:
            store.add(key)
            if not limits.is_empty:
                store.set_limits(account, limits)

        await self._changed(change, by, "key.created", key, address)
        return key, text

    async def rotate(self, by: Principal, key: Key, *, overlap: float, address: str = "") -> tuple[Key, str]:
        """Returns a new key with what a valid one allows, and its text; the former one ends.

        Args:
            by: Who does it.
            key: The former one.
            overlap: Seconds for which both are valid.
            address: Where `by` is.

        Raises:
            Problem: invalid_request: it is of the environment.
        """
        _check_stored(key)
        now = self._clock()
        id, text = new_text()
        group = self.keys.group_of(key.account)  # it may have changed after this key
        new = replace(key, id=id, digest=digest(text), group=group, created=now, used=None)
        ends = min(now + overlap, key.expires or float("inf"))

        def change(store: Store) -> None:
            store.add(new)
            if overlap:
                store.end(key.id, expires=ends)
            else:
                store.end(key.id, revoked=now)

        await self._changed(change, by, "key.rotated", key, address, f"the new key is {id}")
        return new, text

    async def revoke(self, by: Principal, key: Key, *, address: str = "") -> None:
        """Ends a key, also on connections that are open; the second time nothing changes.

        Raises:
            Problem: invalid_request: it is of the environment.
        """
        _check_stored(key)
        if key.revoked is None:
            now = self._clock()
            await self._changed(lambda store: store.end(key.id, revoked=now), by, "key.revoked", key, address)

    async def _changed(
        self,
        change: Callable[[Store], None],
        by: Principal,
        action: Action,
        key: Key,
        address: str,
        more: str = "",
    ) -> None:
        """Changes the store, and then what is valid; the audit has it as soon as the store."""
        detail = ", ".join(filter(None, (f"{key.name} of {key.owner}", key.role, more)))
        entry = Entry(self._clock(), action, by.owner, by.key, address, key.id, detail)

        await self._change(change, entry)

    async def _change(self, change: Callable[[Store], None], entry: Entry) -> None:
        def work(store: Store) -> Known:
            change(store)
            store.append([entry])
            return store.known()

        await self._turns.do(work, self._take)

    def _take(self, known: Known) -> None:
        self.budgets.set_limits(known.limits)
        self.keys.replace(known.keys, known.token_ends)
        self.budgets.set_groups(self.keys.groups)

    async def revoke_tokens(self, by: Principal, owner: str, *, address: str = "") -> None:
        """Ends all tokens of an owner that the issuer has given so far, also on connections that are open.

        Raises:
            Problem: invalid_request: there is no place for that.
        """
        now = self._clock()
        entry = Entry(now, "tokens.revoked", by.owner, by.key, address, owner, "")
        await self._change(lambda store: store.end_tokens(owner, now + LEEWAY), entry)

    async def set_limits(self, by: Principal, account: str, limits: Limits, *, address: str = "") -> None:
        """Replaces the limits that an account has of its own; see `Budgets`.

        Raises:
            Problem: invalid_request: there is no place for them.
        """
        detail = ", ".join(f"{name}={value:.15g}" for name, value in limits.named.items()) or "none"
        entry = Entry(self._clock(), "limits.changed", by.owner, by.key, address, account, detail)

        await self._change(lambda store: store.set_limits(account, limits), entry)

    # ---------------------------------------------------------------------------------------------------------- audit
    def note(
        self, action: Action, subject: str, *, by: Principal | None = None, address: str = "", detail: str = ""
    ) -> None:
        """Notes something in the audit, which has it within a second; see `Entry`."""
        if self._store is not None:
            owner, key = ("", "") if by is None else (by.owner, by.key)
            self._unwritten.append(Entry(self._clock(), action, owner, key, address, subject, detail))

    async def entries(self, **wanted: Any) -> list[Entry]:
        """Returns entries of the audit; see `Store.entries`.

        Raises:
            Problem: invalid_request: there is no audit.
        """
        await self._write(is_patient=False)
        return await self._turns.do(lambda store: store.entries(**wanted))

    async def _write(self, *, is_patient: bool = True) -> None:
        """Writes what was noted, and which keys were used."""
        entries, self._unwritten = self._unwritten, []
        now, used = self._clock(), set[str]()
        if now - self._used >= _USE_SECONDS:
            used, self._used = {id for id in self.keys.used if not id.startswith(ENVIRONMENT)}, now
            self.keys.used.clear()
        if not entries and not used:
            return

        def work(store: Store) -> None:
            if entries:
                store.append(entries)
            if used:
                store.note_used(used, now)

        try:
            await self._turns.do(work, is_patient=True)
        except Exception:
            self._unwritten = entries + self._unwritten
            raise

    async def _write_use(self) -> None:
        """Writes what accounts have used, and reads what other servers have written of the last hours."""
        now, budgets, store = self._clock(), self.budgets, self._store
        if store is None or now - self._budgeted < _BUDGET_SECONDS:
            return
        self._budgeted, hour = now, hour_of(now)
        written, budgets.unwritten = budgets.unwritten, {}

        def work(store: Store) -> dict[str, dict[int, Use]]:
            store.add_use(written, hour - _HOURS)
            return store.use(hour - 1) if store.is_shared else {}

        try:
            if written or store.is_shared:
                budgets.load(await self._turns.do(work, is_patient=True))
        except Exception:
            for key, use in written.items():
                budgets.unwritten[key] = budgets.unwritten.get(key, Use()).plus(use)
            raise

    async def _remove_old(self) -> None:
        """Removes the entries of the audit that are too old."""
        now = self._clock()
        if now - self._removed >= _OLD_SECONDS:
            self._removed = now
            before = now - self._audit_age
            if number := await self._turns.do(lambda store: store.remove_entries(before), is_patient=True):
                log.info("%d entries of the audit were older than %g days", number, self._audit_age / 86400)

    # ------------------------------------------------------------------------------------------------------------ time
    async def watch(self) -> None:
        """Ends keys whose time has come, writes what was noted, and reads what other servers change; has no end."""
        has_failed = False
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.keys.end_expired()
            if self._store is None:
                continue
            try:
                await self._write()
                await self._write_use()
                await self._remove_old()
                if self._store.is_shared:
                    self._take(await self._turns.do(lambda store: store.known(), is_patient=True))
            except Exception as error:  # of the database, which may come back
                if not has_failed:
                    text = "keys and limits are those that are known, audit and use wait in memory: %s"
                    log.error(text, error.__cause__ or error)
                has_failed = True
            else:
                if has_failed:
                    log.warning("the database of keys answers again")
                has_failed = False

    async def close(self) -> None:
        """Writes what was noted, and closes the store."""
        if self._store is not None:
            self._used = self._budgeted = 0.0  # the last uses are noted too
            with suppress(Exception):
                await self._write()
                await self._write_use()
            self._store.close()


def _check_stored(key: Key) -> None:
    if key.created is None:
        raise Problem(
            "invalid_request",
            f"the key {key.id} is of the server's environment, which only its start reads: take it out of "
            "TELETAPE_API_KEYS",
        )
