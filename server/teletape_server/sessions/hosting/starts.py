"""Starts hosts for sessions: on which device, with which limits, and what a failure is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.durable.open_logs import OpenLog
from teletape_server.hosts.placement import placed
from teletape_server.hosts.protocols import Host, HostGone, Hosts, Start
from teletape_server.problems import overloaded
from teletape_server.sessions.hosting.growth import Growth
from teletape_server.sessions.record import SessionRecord


class Starts:
    """Starts hosts.

    Args:
        hosts: What starts them.
        max_body: Bytes of the largest request.
        max_iterations: Iterations that the loops of one command may take.
        time_limit: Seconds that a request may compute.
        idempotency_window: Seconds for which a session knows an Idempotency-Key.
        slow_after: See `Start`.
    """

    def __init__(
        self,
        hosts: Hosts,
        *,
        max_body: int,
        max_iterations: int,
        time_limit: float,
        idempotency_window: float,
        slow_after: float = math.inf,
    ) -> None:
        self._hosts = hosts
        self._max_body, self._max_iterations = max_body, max_iterations
        self._time_limit, self._idempotency_window = time_limit, idempotency_window
        self._slow_after = slow_after

    async def host(
        self,
        record: SessionRecord,
        in_use: Callable[[], Mapping[str, int]],
        log: OpenLog | None = None,
        last_client: int = 0,
        memory: Growth | None = None,
    ) -> tuple[Host, str]:
        """Starts a host for a session; returns it with the device that it computes on.

        Args:
            record: The session's.
            in_use: Returns how many sessions each device has.
            log: The session's log; None: it has none.
            last_client: See `Start`.
            memory: What is reserved for it, until the host ends; None: its limit alone counts.

        Raises:
            Problem: overloaded, unknown_device; internal, as the process says.
        """
        device = record.device
        try:
            if device != "cpu":
                device = placed(device, await self.devices(), in_use())
            start = Start(
                device,
                record.limits.memory,
                self._max_body,
                max_iterations=self._max_iterations,
                time_limit=self._time_limit,
                slow_after=self._slow_after,
                idempotency_window=self._idempotency_window,
                dedicated=record.limits.dedicated,
                resets=record.is_run,
                log=log,
                last_client=last_client,
                owner=record.owner,
                memory=memory if device == "cpu" else None,
            )
            host = await self._hosts.start(start)
            if memory is not None:
                memory.note_started(device)
                host.ended.add_done_callback(lambda _: memory.release())
            return host, device
        except (OSError, HostGone) as error:  # too many files or processes, a disk that fails: another try may succeed
            raise overloaded(f"the session's process could not be started ({error})") from error

    def lack(self) -> str:
        """Returns why no host could start now; empty: one could."""
        return self._hosts.lack()

    async def devices(self) -> list[DeviceFacts]:
        """Returns what is known of the machine's devices.

        Raises:
            Problem: overloaded.
        """
        try:
            return await self._hosts.devices()
        except OSError as error:  # too many files or processes
            raise overloaded(f"the devices could not be read ({error})") from error
