"""The server's log on stderr: as text for people, or a JSON object a line for programs.

Each request has a line in the logger `teletape.access`, if the settings ask for it. As text:
`2026-11-22T12:00:00.000Z POST /v1/run 200 61 0.0123 ann 4f0c… 192.0.2.7`: the time of the answer's end, method, path
without the query, status, bytes of the answer's body, seconds, name of the key, the request's id, and the address of
its caller. What is not known is `-`; in JSON it is null.

Other lines may have facts beside their text, as `extra` of logging has them: `session`, `owner`, `request_id`.
"""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Any, Final

from teletape_server.hosts.running import REQUEST_ID
from teletape_wire import timestamp

_ACCESS: Final = logging.getLogger("teletape.access")
_NOT_PLAIN: Final = re.compile(r"[^!-~]")
_LONGEST: Final = 500  # characters of a path
#: What every record has, and no `extra` of ours.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(level: str, style: str, *, logs_requests: bool) -> None:
    """Writes log lines to stderr from now on.

    Args:
        level: The least level of a line: debug, info, warning or error.
        style: text or json.
        logs_requests: Whether each request gets a line.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if logs_requests:
        _ACCESS.addHandler(handler)
        _ACCESS.setLevel(logging.INFO)
        _ACCESS.propagate = False


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
    facts = {
        "method": method,
        "path": _plain(path),
        "status": status,
        "bytes": length,
        "seconds": round(seconds, 6),
        "owner": owner,
        "request_id": request_id,
        "caller": caller and _plain(caller),
    }
    now, by = timestamp(time.time()), (owner or "-", request_id, facts["caller"] or "-")
    _ACCESS.info("%s %s %s %d %d %.4f %s %s %s", now, method, facts["path"], status, length, seconds, *by, extra=facts)


def _plain(text: str) -> str:
    return _NOT_PLAIN.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text[:_LONGEST])


class TextFormatter(logging.Formatter):
    """Lines of requests as they are; others have the time, in the same form, level and logger before their text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Returns a line."""
        return record.getMessage() if record.name == _ACCESS.name else super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Returns the time of a line: RFC 3339, UTC."""
        return timestamp(record.created)


class JsonFormatter(logging.Formatter):
    """An object a line: time, level, logger, message (none for requests), the facts, and a traceback, if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns a line."""
        line: dict[str, Any] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if record.name != _ACCESS.name:
            line["message"] = record.getMessage()
            if (request_id := REQUEST_ID.get()) != "-":
                line["request_id"] = request_id
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
