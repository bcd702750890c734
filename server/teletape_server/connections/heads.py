"""The heads of frames and plain requests: which a connection answers itself, and how it knows a head without parsing.

A connection answers the plain case only. Whatever is not plain, and whatever would be refused for its head, goes to the
framework before a byte of its body is read, so each of these refusals is written once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders, State
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.connections.reader import Head
from teletape_server.guard import Guard, sent_request_id
from teletape_server.http.access import principal_of
from teletape_server.http.bodies import check_length, declared_length
from teletape_server.http.frames import TYPES, batch_params
from teletape_server.http.negotiation import answer_type, body_type, wants_events
from teletape_server.http.parameters import time_limit
from teletape_server.http.plain_requests import HEALTH, PUBLISHED, RUN, PlainRequest, plain_question, plain_request
from teletape_server.identity.addresses import caller_address
from teletape_server.identity.keys import Keys
from teletape_server.identity.principals import Principal
from teletape_server.ipc.heads import HeadBytes
from teletape_server.long_requests import LongRequests
from teletape_server.middleware.compression import SMALLEST, accepts_gzip
from teletape_server.middleware.metrics import Metrics
from teletape_server.middleware.rate_limits import add_rate_limits, add_warning
from teletape_server.models.published.contract import Name, Published
from teletape_server.problems import Problem
from teletape_server.published.pool import Pool
from teletape_server.published.store import Catalogue
from teletape_server.sessions.counted_bodies import MOST_EARLY
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.settings import Settings
from teletape_server.waiting.waits import Waits
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

if TYPE_CHECKING:  # it needs packages that not every server has
    from teletape_server.middleware.tracing import Tracing

#: The URL of a plain frame: no query, nothing that would have to be decoded.
_URL: Final = re.compile(rb"/v1/sessions/([A-Za-z0-9._~-]+)/batch")
_SESSIONS: Final = b"/v1/sessions/"
BATCH: Final = "/v1/sessions/{session}/batch"  #: The path of a frame.
_RUN: Final = RUN.encode()
_PUBLISHED: Final = PUBLISHED.encode()
_FILES: Final = (SAFETENSORS_TYPE, wire.JSON_TYPE)  # types of questions to published functions, and of their answers
#: A request with one of these is not plain.
_SPECIAL: Final = ("expect", "idempotency-key", "origin", "prefer", "transfer-encoding", "upgrade")


@dataclass(frozen=True)
class FrameHead:
    """What an accepted head says. It says the same each time it comes, until the server's keys change.

    Attributes:
        principal, session: Who sends it, and for which session; no principal: whoever does.
        path: Of the URL.
        params: Of the batch; see `batch_params`.
        plain: What a plain request asks for; None: it is a frame.
        accepts_gzip: Whether its answer may be compressed, if it is text.
        request_id: The one that the caller has sent; None: each request gets its own.
        keep_alive: Whether the connection stays open after the answer.
        forwarded: Whom proxies name as the caller.
        parent: The caller's span, if it traces the request.
    """

    principal: Principal | None
    session: str
    path: str
    params: dict[str, Any]
    plain: PlainRequest | None
    accepts_gzip: bool
    request_id: str | None
    keep_alive: bool
    forwarded: str | None
    parent: Any = None

    @property
    def owner(self) -> str:
        """Whose request it is; empty: whoever asks gets the same."""
        return "" if self.principal is None else self.principal.owner

    @property
    def account(self) -> str:
        """Which account it counts for; empty: none."""
        return "" if self.principal is None else self.principal.account

    @property
    def is_run(self) -> bool:
        """Whether it is a request without a session."""
        return self.plain is not None and self.plain.is_run

    @property
    def published(self) -> str:
        """The published function that it asks; empty: it asks none."""
        return "" if self.plain is None else self.plain.published

    @property
    def uncompressed(self) -> float:
        """Bytes of the longest answer that is sent as it is; a longer one is compressed."""
        return SMALLEST - 1 if self.plain is not None and self.accepts_gzip else math.inf


class FrameHeads:
    """Decides which frames a connection answers itself.

    Args:
        state: Of the application: its settings, keys, guard and registry.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def registry(self) -> Registry:
        """The sessions; there are none before the application has started."""
        registry: Registry = self._state.registry
        return registry

    @property
    def long_requests(self) -> LongRequests:
        """The requests that have an address."""
        long_requests: LongRequests = self._state.long_requests
        return long_requests

    @property
    def waits(self) -> Waits:
        """Why requests wait."""
        waits: Waits = self._state.waits
        return waits

    @property
    def settings(self) -> Settings:
        """The server's settings."""
        settings: Settings = self._state.settings
        return settings

    @property
    def catalogue(self) -> Catalogue:
        """The published functions."""
        catalogue: Catalogue = self._state.catalogue
        return catalogue

    @property
    def pool(self) -> Pool:
        """The processes that compute them."""
        pool: Pool = self._state.pool
        return pool

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        metrics: Metrics = self._state.metrics
        return metrics

    @property
    def tracing(self) -> Tracing | None:
        """What makes spans of requests; None: nothing does."""
        tracing: Tracing | None = self._state.tracing
        return tracing

    @property
    def guard(self) -> Guard:
        """The rules for every request."""
        guard: Guard = self._state.guard
        return guard

    @property
    def keys(self) -> Keys:
        """The server's keys."""
        keys: Keys = self._state.keys
        return keys

    def accepted(self, request: Head, client: tuple[str, int] | None) -> tuple[FrameHead, int] | None:
        """Returns what the head of a plain frame or request says, and its length; None: the framework has to answer.

        Args:
            request: The head.
            client: The address of its connection; None: a Unix socket's.
        """
        if request.method == HEALTH.verb.encode() and request.url == HEALTH.route.encode():
            return self._health(request)
        if request.method != b"POST" or request.version != "1.1":
            return None
        is_published = request.url.startswith(_PUBLISHED)
        if not (is_published or request.url.startswith(_SESSIONS) or request.url == _RUN):
            return None
        named = Headers(raw=request.headers)
        if any(name in named for name in _SPECIAL) or wants_events(named):
            return None
        proxies = self.settings.trusted_proxies
        address = caller_address(client and client[0], named.get("x-forwarded-for"), proxies)
        if self._state.identity.wrong_keys.seconds(address or ""):
            return None
        url, plain, params = request.url.decode("latin-1"), None, {}
        path = url.partition("?")[0]
        try:
            self.guard.check(path, named)
            principal = principal_of(named, self.keys, "POST", path)
            content_type = body_type(named, _FILES if is_published else TYPES)
            length = declared_length(named, self.settings.max_body, content_type)
            match = _URL.fullmatch(request.url)
            if is_published:
                plain = plain_question(url, answer_type(named, _FILES, wire.JSON_TYPE))
                params = {"content_type": content_type}
            elif match is None:
                plain = plain_request(url, named.get("accept", "*/*")) if content_type == wire.JSON_TYPE else None
            elif content_type == wire.FRAME_TYPE:
                params = batch_params(named, wire.FRAME_TYPE)
            if plain is not None:
                plain = plain._replace(params=plain.params | time_limit(named))
        except Problem:
            return None
        if plain is not None:
            session = plain.session
        elif match is not None and params.get("accept") == wire.FRAME_TYPE:
            session = match[1].decode()
        else:
            return None
        gzip = plain is not None and accepts_gzip(named.get("accept-encoding", ""))
        request_id, forwarded = sent_request_id(named), named.get("x-forwarded-for")
        parent = None if self.tracing is None else self.tracing.parent(named)
        head = FrameHead(
            principal, session, path, params, plain, gzip, request_id, request.keep_alive, forwarded, parent
        )
        return head, length

    def _health(self, request: Head) -> tuple[FrameHead, int] | None:
        """Returns what the head of a plain request for the server's health says."""
        named = Headers(raw=request.headers)
        if request.version != "1.1" or "content-length" in named or any(name in named for name in _SPECIAL):
            return None
        try:
            self.guard.check(HEALTH.route, named)
        except Problem:
            return None
        request_id, forwarded = sent_request_id(named), named.get("x-forwarded-for")
        head = FrameHead(None, "", HEALTH.route, {}, HEALTH, False, request_id, request.keep_alive, forwarded)
        return head, 0

    def complete(
        self,
        response: Response,
        head: FrameHead,
        session: SessionEntry | None,
        request_id: str,
        *,
        is_alone: bool = False,
    ) -> None:
        """Adds to the answer of a request the headers of every answer.

        Args:
            response: The answer.
            head: The request's.
            session: Its session.
            request_id: Its id.
            is_alone: Whether its session has no other request when it is answered.
        """
        headers = MutableHeaders(raw=response.raw_headers)
        self.guard.complete(headers, head.path, request_id)
        if head.plain is not None:
            state = {"principal": head.principal, "session": None if head.is_run else session}
            add_rate_limits(headers, self.registry, head.path, state, is_alone=is_alone)
            headers.add_vary_header("Accept-Encoding")
        add_warning(headers, self.registry.budgets, head.account)

    def can_receive(self, head: FrameHead, length: int) -> bool:
        """Returns whether a body of `length` bytes can be received now; if not, the framework has to answer."""
        if self.guard.is_stopping():
            return False
        if head.plain is HEALTH:
            return True
        if self.registry.budgets.is_limited(head.account):
            return False
        if head.published and head.account != head.owner:  # what processes count themselves is by owner
            return False
        if length < (wire.PREFIX_LENGTH if head.plain is None else 1):
            return False
        if (head.is_run or head.published) and length > MOST_EARLY:
            return False
        try:
            check_length(length, self.settings.max_body, wire.FRAME_TYPE if head.plain is None else wire.JSON_TYPE)
        except Problem:
            return False
        return True

    def published(self, head: FrameHead) -> tuple[Name, Published] | None:
        """Returns the published function that a question is for; None if the framework has to answer."""
        assert head.principal is not None
        try:
            return self.catalogue.find(head.principal.owner, head.published, sees_all=head.principal.is_admin)
        except Problem:
            return None

    def session(self, head: FrameHead) -> SessionEntry | None:
        """Returns the session of a request; None if the framework has to answer."""
        try:
            session = self.registry.find(head.owner, head.session)
        except Problem:
            return None
        if session.host is None or session.account in self.registry.budgets.over:  # the framework wakes or refuses it
            return None
        session.host.reclaim()
        return session


class KnownHead(NamedTuple):
    """A head in the bytes that were accepted, which need not be parsed again.

    Attributes:
        data: The bytes.
        request, head: What they say.
        generation: Of the keys that accepted it: with others it may say something else.
    """

    data: HeadBytes
    request: Head
    head: FrameHead
    generation: int
