"""The log of requests: one line each, in the logger `teletape.access`, if the settings ask for it.

`2026-11-22T12:00:00.000Z POST /v1/run 200 61 0.0123 ann 4f0c… 192.0.2.7`: the time of the answer's end, method, path
without the query, status, bytes of the answer's body, seconds, name of the key, the request's id, and the address of
its caller. What is not known is `-`.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Final

from teletape_wire import timestamp

_LOG: Final = logging.getLogger("teletape.access")
_NOT_PLAIN: Final = re.compile(r"[^!-~]")
_LONGEST: Final = 500  # characters of a path


def log_request(
    method: str,
    path: str,
    status: int,
    length: int,
    seconds: float,
    *,
    owner: str | None,
    request_id: str,
    caller: str | None,
) -> None:
    """Writes the line of a request that is answered.

    Args:
        method: Of the request.
        path: As the caller has sent it; what is not plain ASCII is shown as its bytes in hexadecimal.
        status: Of the answer; 499: the caller left before it.
        length: Bytes of the answer's body.
        seconds: Since the request's head.
        owner: The name of the key; None: it had none that is known.
        request_id: The request's id.
        caller: The address of the caller; see `auth.caller_address`.
    """
    now, by = timestamp(time.time()), (owner or "-", request_id, _plain(caller or "-"))
    _LOG.info("%s %s %s %d %d %.4f %s %s %s", now, method, _plain(path), status, length, seconds, *by)


def _plain(text: str) -> str:
    return _NOT_PLAIN.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text[:_LONGEST])


class LogFormatter(logging.Formatter):
    """The server's other lines: the time as in the lines of requests, level, logger, text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Returns the time of a line: RFC 3339, UTC."""
        return timestamp(record.created)


def write_to_stderr() -> None:
    """Writes the lines as they are, without the prefix of other logs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False
