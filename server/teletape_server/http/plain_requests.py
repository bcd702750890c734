"""Plain requests: JSON both ways, and everything else as if it were not there.

Such a request is known by its head: which method of the session's process it calls, and with which parameters.
`connections` answers it without the framework, which would look for all that a request may also have.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import teletape_wire as wire
from teletape_server import handlers  # noqa: F401  # it registers the endpoints
from teletape_server.handlers.endpoints import ENDPOINTS, PREFIX, Endpoint
from teletape_server.hosts.protocols import Running
from teletape_server.hosts.running import Joinable
from teletape_server.models.published.questions import QUESTIONS
from teletape_server.sessions.counted_bodies import CountedBody
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.tensor_files.metadata import REQUEST

_SEGMENT: Final = r"([A-Za-z0-9._~-]+)"  # a parameter in a path, without anything that would have to be decoded
_JSON: Final = frozenset({"*/*", "application/*", wire.JSON_TYPE})


class PlainRequest(NamedTuple):
    """What a plain request asks of its session's process.

    Attributes:
        session: The id in its path; empty: it has none.
        route: The path with its parameters' names.
        operation: The method.
        params: Of the method.
        status: Of a successful answer.
        verb: Of HTTP.
        published: The published function that it asks, as its path names it; empty: it asks none.
    """

    session: str
    route: str
    operation: str
    params: dict[str, Any]
    status: int
    verb: str = "POST"
    published: str = ""

    @property
    def is_run(self) -> bool:
        """Whether it is a request without a session."""
        return self.route == RUN

    @property
    def is_retriable(self) -> bool:
        """It has no key, so a retry is another request."""
        return False

    def running_in(self, session: SessionEntry) -> None:
        """No request that runs already is the same."""

    def submit(
        self, registry: Registry, session: SessionEntry, body: CountedBody | None, earlier: Joinable | None = None
    ) -> tuple[Running, bool]:
        """Submits the request, which joins no other one.

        Raises:
            Problem: busy, session_ended, shutting_down.
        """
        return registry.submit(session, self.operation, self.params, content_type=wire.JSON_TYPE, body=body), False

    def note(self, session: SessionEntry, running: Running) -> None:
        """No retry can join it."""


class _Route(NamedTuple):
    endpoint: Endpoint
    pattern: re.Pattern[str]
    path: str


def _routes() -> dict[str, list[_Route]]:
    """Returns the endpoints that take JSON by POST, and whose answers have no tag, by the last part of their path."""
    routes: dict[str, list[_Route]] = {}
    for endpoint in ENDPOINTS.values():
        if endpoint.verb != "POST" or endpoint.body is None or endpoint.conditions or endpoint.has_tag:
            continue
        for path in filter(None, (endpoint.path, endpoint.other_path)):
            whole = PREFIX + path
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", lambda _: _SEGMENT, re.escape(whole)))
            last = whole.rpartition("/")[2]
            routes.setdefault(last, []).append(_Route(endpoint, pattern, whole))
    return routes


_ROUTES: Final = _routes()
RUN: Final = "/v1/run"  #: The path of requests without a session.
PUBLISHED: Final = "/v1/published/"  #: The beginning of the paths of published functions.
_QUESTION: Final = re.compile(rf"{PUBLISHED}([A-Za-z0-9._-]+(?:@[A-Za-z0-9._-]+)?)/(\w+)(\?full=true)?")
HEALTH: Final = PlainRequest("", "/v1/health", "", {}, 200, "GET")  #: The server answers by itself.
_RUN_PARAMS: Final = {"full": False, "accept": wire.JSON_TYPE, REQUEST: None, "idempotency_key": None}


def plain_question(url: str, accept: str) -> PlainRequest | None:
    """Returns what a POST request asks of a published function; None: it is not plain.

    Args:
        url: Its path, and no query but for `full=true`.
        accept: The type of the answer.
    """
    match = _QUESTION.fullmatch(url)
    if match is None or match[2] not in QUESTIONS:
        return None
    params = {"full": match[3] is not None, "accept": accept, REQUEST: None}
    return PlainRequest("", f"{PUBLISHED}{{name}}/{match[2]}", match[2], params, 200, published=match[1])


def plain_request(path: str, accept: str) -> PlainRequest | None:
    """Returns what a POST request with a body in JSON and this head asks for; None: it is not plain.

    Args:
        path: Without a query.
        accept: The header Accept.
    """
    if not all(entry.partition(";")[0].strip().lower() in _JSON for entry in accept.split(",")):
        return None
    if path == RUN:
        return PlainRequest("", RUN, "run", _RUN_PARAMS, 200)
    for route in _ROUTES.get(path.rpartition("/")[2], ()):
        match = route.pattern.fullmatch(path)
        if match is not None:
            session, *ids = match.groups()
            params = {
                **route.endpoint.defaults,
                **dict(zip(route.endpoint.ids.values(), ids, strict=True)),
                "accept": wire.JSON_TYPE,
                "collection": path,
                "idempotency_key": None,
            }
            return PlainRequest(session, route.path, route.endpoint.operation, params, route.endpoint.status)
    return None
