"""The log of requests: one line each, in the logger `teletape.access`, if the settings ask for it.

`2026-11-22T12:00:00.000Z POST /v1/run 200 61 0.0123 ann 4f0c…`: the time of the answer's end, method, path without the
query, status, bytes of the answer's body, seconds, name of the key, and the request's id. What is not known is `-`.
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
    method: str, path: str, status: int, length: int, seconds: float, *, owner: str | None, request_id: str
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
    """
    plain = _NOT_PLAIN.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), path[:_LONGEST])
    now = timestamp(time.time())
    _LOG.info("%s %s %s %d %d %.4f %s %s", now, method, plain, status, length, seconds, owner or "-", request_id)


def write_to_stderr() -> None:
    """Writes the lines as they are, without the prefix of other logs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False
