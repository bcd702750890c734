"""Publishes, names and deletes versions: one change after the other, each on the disk before it is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from teletape_server.hosts.protocols import Reply
from teletape_server.models.published.contract import Name, Published
from teletape_server.problems import Problem
from teletape_server.published.pool import Pool
from teletape_server.published.store import Catalogue

T = TypeVar("T")


class Publisher:
    """Changes what is published.

    Args:
        catalogue: What is published.
        pool: The processes that compute it.
        is_durable: Whether it outlives the server.
    """

    def __init__(self, catalogue: Catalogue, pool: Pool, *, is_durable: bool) -> None:
        self._catalogue, self._pool = catalogue, pool
        self.is_durable = is_durable
        self._turn = asyncio.Lock()

    async def publish(self, name: str, owner: str, prepared: Reply) -> bool:
        """Publishes what a process has prepared; returns whether the version is new.

        Args:
            name: Under which name.
            owner: Whose it is, if the name is new.
            prepared: The contract, then the weights, and in its facts what is said of the name.

        Raises:
            Problem: It cannot be written.
        """
        count = prepared.facts["record_bytes"]
        published = Published.from_json(json.loads(bytes(prepared.body[:count])))
        facts: Mapping[str, Any] = prepared.facts["name"]

        def change() -> bool:
            known = self._catalogue.names.get(name) or Name(name, owner)
            if published.weights_hash:
                self._catalogue.put_weights(published.weights_hash, prepared.body[count:])
            changes = {**facts, "group": tuple(facts["group"])} if facts else {}
            self._catalogue.put(replace(known, **changes).with_version(published))
            return published.version not in known.versions

        is_new = await self._changed(change)
        self._pool.warm()
        return is_new

    async def set_alias(self, name: str, alias: str, version: str) -> Name:
        """Makes an alias name a version; returns the name.

        Raises:
            Problem: It cannot be written.
        """

        def change() -> Name:
            known = self._catalogue.names[name]
            self._catalogue.put(replace(known, aliases={**known.aliases, alias: version}))
            return self._catalogue.names[name]

        return await self._changed(change)

    async def delete(self, name: str, version: str | None) -> None:
        """Deletes a name, or a version of it; of the last one also the name.

        Raises:
            Problem: The disk refuses.
        """

        def change() -> None:
            known = self._catalogue.names.get(name)
            if known is None:
                return
            rest = None if version is None else known.without_version(version)
            if rest is None or not (rest.versions or rest.damage):
                self._catalogue.remove(known)
            else:
                self._catalogue.put(rest)

        await self._changed(change)

    async def _changed(self, change: Callable[[], T]) -> T:
        """Makes a change in a thread, after those before it; a caller that leaves does not end it."""
        return await asyncio.shield(asyncio.ensure_future(self._in_turn(change)))

    async def _in_turn(self, change: Callable[[], T]) -> T:
        async with self._turn:
            try:
                changed = await asyncio.to_thread(change)
            except OSError as error:
                raise Problem("resource_exhausted", f"it could not be written to the disk: {error}") from error
            finally:
                await self._pool.lent.recall()  # what a name means was decided when a connection was lent
            return changed
