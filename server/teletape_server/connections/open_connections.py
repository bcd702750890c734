"""All open connections: how many there may be, and the sweep that once a second ends what has stalled.

This runs before authentication.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from typing import Any, Final, Protocol

from teletape_server.identity.keys import Keys
from teletape_server.settings import Settings

_SWEEP_SECONDS: Final = 1.0
_MAX_REFUSED: Final = 256  # connections that may wait at the same time until their callers have read why

log = logging.getLogger("teletape")


def most_connections(settings: Settings) -> int:
    """Returns the number of connections to allow: the setting, and at most half of the process's file descriptors.

    The other half is for the sessions, whose processes take some each. The process's soft limit is raised to its hard
    limit first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY or hard // 2 >= settings.connections:
        return settings.connections
    log.warning("this process may open %d files, so it takes %d connections at most: raise ulimit -n", hard, hard // 2)
    return hard // 2


class ServerState(Protocol):
    """What uvicorn's server looks at while it ends.

    Attributes:
        connections: It calls `shutdown` of each, and waits until there are none.
        tasks: It waits for them.
    """

    connections: set[Any]
    tasks: set[asyncio.Task[None]]


class Lent(Protocol):
    """What is needed of the lending of a connection.

    Attributes:
        loan: The present one; None: it is not lent.
    """

    @property
    def loan(self) -> object | None:
        """The present loan."""


class OpenConnection(Protocol):
    """What the sweep and the server's end need of a connection.

    Attributes:
        client: The address of its other end; None: a Unix socket's.
        lending: Whether a session's process has it.
    """

    transport: asyncio.Transport
    client: tuple[str, int] | None

    @property
    def lending(self) -> Lent | None:
        """The lending, if it may be lent."""

    @property
    def is_unanswered(self) -> bool:
        """Whether a request has no complete answer yet."""

    def check(self, seconds: float) -> None:
        """Ends the connection if it has stalled."""

    def keys_changed(self, keys: Keys) -> None:
        """Goes on with those alone whose keys are valid."""


class Connections:
    """All open connections of a server.

    Attributes:
        most: How many there may be.
        stall_limit: Seconds after which a connection that sends or reads nothing is ended.
        min_rate: Bytes a second at which a body has to arrive.
        max_body: Bytes of a body that are received although its request is answered.
        refusals: How many were refused, or ended before a request was complete, by code.
        open: The connections that are served, the oldest first.
        refused: The connections that take no more requests, and wait for their callers to read the last answer.
    """

    def __init__(self, settings: Settings, refusals: Counter[str]) -> None:
        self.refusals = refusals
        self.most = most_connections(settings)
        self.stall_limit = settings.stall_limit
        self.min_rate = settings.min_rate
        self.max_body = settings.max_body
        self.open: dict[OpenConnection, None] = {}
        self._of_address: Counter[str] = Counter()
        self.refused: set[OpenConnection] = set()
        self._interval = min(_SWEEP_SECONDS, self.stall_limit / 4)
        self._sweep_timer: asyncio.TimerHandle | None = None

    def add(self, connection: OpenConnection) -> bool:
        """Adds a connection, and returns True; returns False if there are as many as there may be.

        Then an address with more connections than that of the new one gives up its oldest that waits for a request, or
        for the rest of its head: nobody takes the connections of all others.
        """
        if self._sweep_timer is None:
            self._sweep_timer = asyncio.get_running_loop().call_later(self._interval, self._sweep)
        if len(self.open) >= self.most and not self._makes_room(connection):
            return False
        self.open[connection] = None
        self._of_address[_address(connection)] += 1
        return True

    def _makes_room(self, connection: OpenConnection) -> bool:
        """Closes a connection of the address with the most of them; returns False if there is none to be closed."""
        [(address, count)] = self._of_address.most_common(1)
        if count <= self._of_address[_address(connection)] + 1:
            return False
        for other in self.open:
            is_lent = other.lending is not None and other.lending.loan is not None
            if _address(other) == address and not is_lent and not other.is_unanswered:
                self._remove(other)
                other.transport.abort()
                return True
        return False

    def _remove(self, connection: OpenConnection) -> None:
        if connection in self.open:
            del self.open[connection]
            address = _address(connection)
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def refuse(self, connection: OpenConnection) -> bool:
        """Stops serving a connection; returns whether it may stay open until its caller has read the last answer."""
        self._remove(connection)
        if len(self.refused) >= _MAX_REFUSED:
            return False
        self.refused.add(connection)
        return True

    def discard(self, connection: OpenConnection) -> None:
        """Removes a closed connection."""
        self._remove(connection)
        self.refused.discard(connection)

    def keys_changed(self, keys: Keys) -> None:
        """Lets no connection go on for a key that has ended."""
        for connection in [*self.open]:
            connection.keys_changed(keys)

    def _sweep(self) -> None:
        self._sweep_timer = None
        try:
            for connection in [*self.open, *self.refused]:
                connection.check(self._interval)
        finally:
            if self.open or self.refused:
                self._sweep_timer = asyncio.get_running_loop().call_later(self._interval, self._sweep)


def _address(connection: OpenConnection) -> str:
    """Returns under which address a connection counts; all of a Unix socket count together."""
    return "" if connection.client is None else connection.client[0]
