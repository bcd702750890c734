"""A process that computes published functions: which versions it has loaded, and how it gets another one."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from teletape_server.handlers.published.batching import Waiting
from teletape_server.hosts.protocols import BodyBuffer, Host, HostGone, Reply, Running
from teletape_server.ipc.leases import Times
from teletape_server.models.published.contract import Published
from teletape_server.problems import Problem
from teletape_server.published.calls import Call
from teletape_server.published.store import Catalogue

log = logging.getLogger("teletape")


@dataclass(eq=False)
class Process:
    """A process.

    Attributes:
        host: It.
        loaded: The versions that it has, or that it loads before anything that is submitted now.
        refused: Why it could not load a version.
        busy: Whether it computes.
        idle_since: When it ended its last work, on the monotonic clock.
        pinned: Calls whose body is in its memory: each is computed by itself, before others.
        receiving: Bodies that are received into its memory.
        computed: CPU seconds that it had used at the last look.
    """

    host: Host
    loaded: set[str] = field(default_factory=set)
    refused: dict[str, Problem] = field(default_factory=dict)
    busy: bool = False
    idle_since: float = 0.0
    pinned: deque[Waiting[Call]] = field(default_factory=deque)
    receiving: int = 0
    computed: float = 0.0

    def times(self) -> Times:
        """Returns what answers say of its end: nothing; see `LendingSession`."""
        return Times(time.time(), *(math.inf,) * 3)

    def note_running(self, running: Running) -> None:
        """See `LendingSession`: it is not ended while a connection is lent to it, and its host knows what runs."""

    def load(self, published: Published, catalogue: Catalogue) -> None:
        """Has it load a version before what is submitted next.

        Raises:
            HostGone: It has ended.
            OSError: Its weights cannot be opened.
        """
        version = published.version
        if version in self.loaded:
            return
        if published.weights_hash:
            self.host.map(version, catalogue.open_weights(published.weights_hash))
        record = json.dumps(published.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
        params = {"check": version not in catalogue.checked}
        running = self.host.submit("published-load", params, body=joined(self.host, [record]))
        self.loaded.add(version)
        self.refused.pop(version, None)

        def on_loaded(future: asyncio.Future[Reply]) -> None:
            with suppress(HostGone):
                reply = future.result()
                if reply.code is None:
                    catalogue.checked.add(version)
                    self.loaded.difference_update(reply.facts["dropped"])
                    return
                self.loaded.discard(version)
                problem = self.refused[version] = Problem(reply.code, reply.facts["message"], **reply.facts["details"])
                log.warning("the published version %s could not be loaded: %s", version, problem.detail)

        running.reply.add_done_callback(on_loaded)


def joined(host: Host, bodies: Sequence[bytes | bytearray | memoryview]) -> BodyBuffer | None:
    """Returns memory of a host with bodies one after the other.

    Raises:
        HostGone, OSError: There is none.
    """
    total = sum(map(len, bodies))
    if not total:
        return None
    buffer, position = host.body_buffer(total), 0
    for body in bodies:
        buffer.view[position : position + len(body)] = body
        position += len(body)
    return buffer
