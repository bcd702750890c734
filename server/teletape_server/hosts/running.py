"""A request that a host runs, and its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

#: The id of the request that this task handles, for the log.
REQUEST_ID: Final = ContextVar("REQUEST_ID", default="-")


class Reply(NamedTuple):
    """The answer to a request.

    Attributes:
        code: None, or a problem's code; then `facts` holds its message and details.
        content_type: Of the body.
        body: The body's bytes; the host reuses their memory after every view of it is gone.
        facts: What the front needs to know without reading the body: bytes_in_use, headers.
    """

    code: str | None
    content_type: str
    body: memoryview
    facts: Mapping[str, Any]


class HostGone(Exception):  # a state, which the caller turns into a problem
    """Raised when a host ended before it answered; the message gives the reason."""


@dataclass(eq=False)
class Running:
    """A submitted request. Any number of callers may wait for its reply.

    Attributes:
        reply: Resolves to the reply, or raises HostGone.
        done, total: Number of commands done, and in all (0: not known yet).
        iteration, iterations: Iterations done by the loop in the next command, and in all (0: not known).
        loss: Of training: that of the last step that is known.
        request_id: Of the HTTP request that was submitted first.
    """

    reply: asyncio.Future[Reply]
    done: int = 0
    total: int = 0
    iteration: int = 0
    iterations: int = 0
    loss: float | None = None
    request_id: str = field(default_factory=REQUEST_ID.get)
