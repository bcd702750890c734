"""Processes that are the server's own, and no session: those of published functions, and the one that looks up prices.

They are started as those of sessions are, and what they use is reserved of the machine's memory in the same way.
"""

from __future__ import annotations

import time

from teletape_server.hosts.protocols import Host
from teletape_server.ipc.leases import Terms
from teletape_server.sessions.hosting.parking import Parking
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.record import SessionLimits, SessionRecord, new_uid


class ServerProcesses:
    """Starts them.

    Args:
        starts: Starts hosts.
        parking: Makes room in the machine's memory.
    """

    def __init__(self, starts: Starts, parking: Parking) -> None:
        self._starts, self._parking = starts, parking

    async def start(self, name: str, device: str, limits: SessionLimits) -> Host:
        """Starts a process.

        Args:
            name: What it is for. In place of an owner it has this in control groups and in the machine's memory; it has
                spaces, as no owner has.
            device: Where it computes.
            limits: What it may use.

        Raises:
            Problem: overloaded, unknown_device; internal, as the process says.
        """
        assert " " in name, "a key could have this name"
        forever = Terms(float("inf"), float("inf"))
        record = SessionRecord(new_uid(), name, name, device, limits, time.time(), forever)
        memory = await self._parking.reserve_process(name, limits.memory)
        try:
            host, _ = await self._starts.host(record, dict, memory=memory)
        except BaseException:
            memory.release()
            raise
        host.name, host.log_facts = f"the process of {name}", {}
        return host
