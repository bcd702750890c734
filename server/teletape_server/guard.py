"""The checks of every request: every answer gets a request id, and a server without keys serves its own machine alone.

Answers about sessions and requests also name the server's run, so that a client notices that a restart has ended its
session.
A path that is too long to name anything is refused before it is compared with the routes.

Any web page can make a browser send requests to loopback, so host names other than this server's are refused, and
origins other than this server's and those of the setting.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders

from teletape_server.identity.addresses import host_name, is_loopback, same_origin
from teletape_server.problems import Problem

BOOT_HEADER: Final = "teletape-boot-id"
_NAMED: Final = ("/v1/sessions", "/v1/requests")
_MAX_PATH: Final = 8 << 10  # characters: each is compared with the patterns of all routes
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """The rules for every request, whatever it asks for.

    Args:
        requires_key: Returns whether a request needs a key; if not, foreign host names and origins are refused.
        origins: Origins that are not refused.
        boot_id: The id of the server's run.
        is_stopping: Returns whether the server is about to end, so that no new request is taken.
    """

    def __init__(
        self,
        *,
        requires_key: Callable[[], bool],
        origins: frozenset[str],
        boot_id: str,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._requires_key = requires_key
        self._origins = origins
        self._boot_id = boot_id
        self.is_stopping = is_stopping

    def check(self, path: str, headers: Headers) -> None:
        """Checks where a request comes from, and its path.

        Raises:
            Problem: not_found, foreign_host, foreign_origin.
        """
        if len(path) > _MAX_PATH:
            raise Problem("not_found", f"a path has at most {_MAX_PATH} characters, this one has {len(path)}")
        if self._requires_key():
            return
        host = headers.get("host", "")
        if not is_loopback(host_name(host)):
            raise Problem(
                "foreign_host",
                f"this server has no API keys, so it answers as localhost or 127.0.0.1 only, not as {host!r}. Set "
                "TELETAPE_API_KEYS to use other names",
            )
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and not same_origin(origin, host):
            raise foreign_origin(origin)

    def complete(self, headers: MutableHeaders, path: str, request_id: str) -> None:
        """Adds to an answer's headers what every answer has."""
        headers.setdefault("x-request-id", request_id)
        if path.startswith(_NAMED):
            headers[BOOT_HEADER] = self._boot_id


def foreign_origin(origin: str) -> Problem:
    """Returns the problem of a request from a page whose origin is not allowed."""
    if "://" in origin:
        remedy = f"If you trust them, start the server with --allow-origin {origin} (TELETAPE_ALLOW_ORIGINS)"
    else:
        remedy = "Such a page is a file or a sandboxed frame: serve it over HTTP, and allow its origin (--allow-origin)"
    return Problem("foreign_origin", f"this server answers no requests from pages of {origin!r}. {remedy}")


def sent_request_id(headers: Headers) -> str | None:
    """Returns the id that the caller has given its request; None if there is none, or none that can be used."""
    request_id = headers.get("x-request-id", "")
    return request_id if _REQUEST_ID.fullmatch(request_id) else None


def new_request_id() -> str:
    """Returns an id for a request that has none."""
    return secrets.token_hex(8)
