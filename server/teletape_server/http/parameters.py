"""Parameters that several routes take: headers, query and path parameters, with their descriptions."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, Any, Final, NamedTuple

from fastapi import Header, Path, Query
from starlette.datastructures import Headers

from teletape_server.handlers.bodies import DTYPE_HEADER, SHAPE_HEADER
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.problems import Problem

TIME_LIMIT_HEADER: Final = "Teletape-Time-Limit"  #: How many seconds a caller gives its request.
_KEY_LENGTH: Final = 255
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_WAIT: Final = re.compile(r'wait="?([0-9]{1,9})"?', re.ASCII)

Full = Annotated[bool, Query(description="Return every element of a large tensor, not only the first 1000")]
Dtype = Annotated[str | None, Header(alias=DTYPE_HEADER, description="For a binary body: the dtype, such as float32")]
Shape = Annotated[
    str | None,
    Header(alias=SHAPE_HEADER, description="For a binary body: the shape, such as 2,3; empty for a scalar"),
]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="A retry with the same key gets the first answer again"),
]
Prefer = Annotated[
    str | None,
    Header(
        alias="Prefer",
        description="respond-async: answered 202, with the address where GET waits for the answer; wait=N: after N s",
    ),
]
TimeLimit = Annotated[
    str | None,
    Header(
        alias=TIME_LIMIT_HEADER,
        description="Seconds that the request may take from its arrival: then it is stopped, deadline_exceeded",
    ),
]

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="An ETag: the request is refused if the variable has another version by now"),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", description="An ETag: GET answers 304 without a body if the version is still this"),
]


def path_id_of(resource: str, example: str) -> Any:
    """Returns the path parameter that holds the id of a `resource`."""
    return Path(description=f"The {resource}'s id; digits alone are an integer id", examples=[example])


def idempotency_key(headers: Headers) -> str | None:
    """Returns a request's Idempotency-Key, or None.

    Raises:
        Problem: invalid_request, if the key is empty or too long.
    """
    key = headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= _KEY_LENGTH:
        raise Problem("invalid_request", f"an Idempotency-Key has 1 to {_KEY_LENGTH} characters, found {len(key)}")
    return key


def time_limit(headers: Headers) -> dict[str, float]:
    """Returns the parameter of a method that says how many seconds its caller gives it; nothing: it does not say.

    Raises:
        Problem: invalid_request, if it is no number of seconds above 0.
    """
    text = headers.get(TIME_LIMIT_HEADER)
    if text is None:
        return {}
    seconds = float(text) if _SECONDS.fullmatch(text) else 0.0
    if not seconds:
        raise Problem("invalid_request", f"{TIME_LIMIT_HEADER} is a number of seconds above 0; found {text!r:.60}")
    return {TIME_LIMIT: seconds}


class Preference(NamedTuple):
    """What a request prefers (RFC 7240); what is not understood is passed over.

    Attributes:
        is_async: Whether its answer is to come later, at an address of its own.
        wait: Seconds for which its sender wants to wait; None: it does not say.
    """

    is_async: bool = False
    wait: int | None = None

    @property
    def at_once(self) -> bool:
        """Whether its answer is to come later in any case."""
        return self.is_async and not self.wait

    def patience(self, most: float) -> float:
        """Returns the seconds that a response may wait for the answer; the server waits for `most`."""
        if self.at_once:
            return 0.0
        return most if self.wait is None else min(self.wait, most)

    @property
    def applied(self) -> dict[str, str]:
        """The header of an answer that is as it was preferred."""
        wait = "" if self.wait is None else f", wait={self.wait}"
        return {"Preference-Applied": f"respond-async{wait}"} if self.is_async else {}


NO_PREFERENCE: Final = Preference()


def preference(headers: Headers) -> Preference:
    """Returns what a request prefers."""
    if "prefer" not in headers:
        return NO_PREFERENCE
    tokens = [part.partition(";")[0].strip().lower() for line in headers.getlist("prefer") for part in line.split(",")]
    waits = [match for match in map(_WAIT.fullmatch, tokens) if match is not None]
    return Preference("respond-async" in tokens, int(waits[0][1]) if waits else None)


def request_key(headers: Headers) -> str | None:
    """Returns a request's Idempotency-Key; that of one without, which is to be answered later, is new.

    Raises:
        Problem: invalid_request, if the key is empty or too long.
    """
    key = idempotency_key(headers)
    return secrets.token_urlsafe(24) if key is None and preference(headers).is_async else key
