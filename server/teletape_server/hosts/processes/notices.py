"""What a session's process says of its requests for the log: defects of the server, and requests that ran for long."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from teletape_server.hosts.running import Running

_DEFECT: Final = "%s: request %s met a defect of the server\n%s"
_SLOW: Final = "%s: request %s has run for %.3g s, after %.3g s of waiting: %s%s"

log = logging.getLogger("teletape")


class _Host(Protocol):
    """Whose requests they are."""

    name: str
    log_facts: dict[str, str]


class Notices:
    """Writes what a process says into the log, with the ids of the requests.

    Args:
        host: The process's session.
    """

    def __init__(self, host: _Host) -> None:
        self._host = host
        self._defects: dict[int, str] = {}  # of requests that the process has read itself, until their replies

    def defect(self, number: int, text: str, running: Running | None) -> None:
        """Takes the traceback of a defect.

        Args:
            number: The request's; below 0: the process has read it itself.
            text: The traceback.
            running: The request; None: it is known with its reply.
        """
        if number < 0 and running is None:
            self._defects[number] = text
        else:
            facts = self._facts(running)
            log.error(_DEFECT, self._host.name, facts["request_id"], text.rstrip(), extra=facts)

    def on_reply(self, number: int, running: Running | None) -> None:
        """Writes the defect that a request has met, if it has; `running`: the request, if the server waits for it."""
        if (text := self._defects.pop(number, None)) is not None:
            facts = self._facts(running)
            log.error(_DEFECT, self._host.name, facts["request_id"], text.rstrip(), extra=facts)

    def ran(self, running: Running | None, facts: Mapping[str, Any], *, is_slow: bool) -> None:
        """Notes what a request ran in its trace, and writes it into the log if it ran for long.

        Args:
            running: The request; None: the process has read it itself, and answers it.
            facts: `method`, `compute_seconds`, `queue_seconds`, and `ops`: how often the batch names each.
            is_slow: Whether it ran for long.
        """
        if running is not None and running.trace is not None:
            running.trace.note(facts)
        if not is_slow:
            return
        known = self._facts(running)
        ops = ", ".join(f"{count} {name}" for name, count in facts["ops"].items())
        what = (facts["method"], f" with {ops}" if ops else "")
        seconds = (facts["compute_seconds"], facts["queue_seconds"])
        log.warning(_SLOW, self._host.name, known["request_id"], *seconds, *what, extra={**known, **facts})

    def _facts(self, running: Running | None) -> dict[str, str]:
        return {**self._host.log_facts, "request_id": "-" if running is None else running.request_id}
