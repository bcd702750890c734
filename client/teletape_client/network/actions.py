"""Calls of programs, and the network actions that perform them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import quote

import httpx

from teletape_client.network.events import Event
from teletape_client.tensors.answers import Reader

RUN: Final = "/v1/run"  #: The path of requests without a session, which keep nothing.


class Call(NamedTuple):
    """A program's request.

    Attributes:
        method: GET, POST, PUT or DELETE.
        path: Below the server's address, with ids quoted.
        read: Reads the answer's JSON; None: there is none.
        fields: Of the body; None: there is no body.
        query: Parameters; None is left out, and a list is repeated.
        headers: Further ones; None is left out.
        takes_file: Whether the body may be safetensors.
        offers_file: Whether the answer may be safetensors.
        has_full: Whether the answer has only a part of a large tensor, unless the query has `full`.
        is_work: Whether a session's process, or one for the request alone, answers it.
        function: The path of the function that it asks a question about; empty: it asks none. `/v1/run`, which keeps
            nothing, is its own.
    """

    method: str
    path: str
    read: Reader | None = None
    fields: Mapping[str, Any] | None = None
    query: Mapping[str, Any] | None = None
    headers: Mapping[str, str | None] | None = None
    takes_file: bool = False
    offers_file: bool = False
    has_full: bool = False
    is_work: bool = True
    function: str = ""


class Send(NamedTuple):
    """Send a request: the result is the response, read to its end unless it is streamed."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes | None
    timeout: httpx.Timeout
    is_streamed: bool = False
    is_farewell: bool = False  # it cancels another request, also if the caller is being cancelled
    is_plain: bool = False  # its head is the same each time


class Pause(NamedTuple):
    """Wait."""

    seconds: float


class ReadMore(NamedTuple):
    """Read on: the result is the next bytes of a streamed response, or None at its end."""

    response: httpx.Response


class ReadRest(NamedTuple):
    """Read a streamed response to its end."""

    response: httpx.Response


class Close(NamedTuple):
    """Close a streamed response."""

    response: httpx.Response


class Begun(NamedTuple):
    """The events of a request have begun."""


Action: TypeAlias = Send | Pause | ReadMore | ReadRest | Close | Begun | Event
Exchange: TypeAlias = Generator[Action, Any, Any]


def quoted(id: str) -> str:
    """Returns an id as a part of a path."""
    return quote(str(id), safe="")


def query_of(query: Mapping[str, Any] | None, *, full: bool) -> str:
    """Returns the query of a URL with these parameters, and with `full` if the call has it."""
    pairs = [("full", "true")] if full else []
    for name, value in (query or {}).items():
        if isinstance(value, list | tuple):
            pairs += [(name, _in_query(item)) for item in cast("Sequence[Any]", value)]
        elif value is not None:
            pairs.append((name, _in_query(value)))
    return "?" + "&".join(f"{name}={quoted(value)}" for name, value in pairs) if pairs else ""


def _in_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "id", value))
