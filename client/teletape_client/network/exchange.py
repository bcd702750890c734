"""The exchange of a call: requests, retries, the wait for a later answer, and the answer.

It is a generator that yields network actions and is sent their results, so one code serves threads and event loops:
`drivers` performs the actions of both. Long because it has all decisions about one call.
"""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, NamedTuple

import httpx

from teletape_client.errors import BusyError, DeadlineExceededError, NoAnswerError, ServiceError
from teletape_client.network.actions import (
    RUN,
    Action,
    Begun,
    Call,
    Close,
    Exchange,
    Pause,
    ReadMore,
    ReadRest,
    Send,
    query_of,
)
from teletape_client.network.events import EVENTS, Parser
from teletape_client.network.known import QUICK, SMALL, Known
from teletape_client.network.options import Options
from teletape_client.network.refusals import refusal_from, refusal_of, retry_after
from teletape_client.tensors.answers import answer_of
from teletape_client.tensors.bodies import JSON, body_of
from teletape_client.tensors.safetensors import SAFETENSORS

CONNECT_LIMIT: Final = 10.0  #: Seconds in which a connection must open.
READ_LIMIT: Final = 30.0  #: Seconds without a byte after which a request is sent again; the server answers 202 at 20.
LONGEST_WAIT: Final = 10.0  #: The longest wait between two attempts, in seconds, whatever Retry-After says.
TIME_LIMIT: Final = "Teletape-Time-Limit"  #: The header with the seconds that a request may take from its arrival.
FAREWELL: Final = 1.0  #: Seconds that each request of a cancellation may take.
_PART: Final = b'"complete"'  #: A part of each answer that does not have all elements of a tensor.
_KEEP: Final = ("outputs", "remainder", "accumulate")  #: Fields of questions that keep something in the session.
_TICK: Final = 0.02  #: Seconds before the deadline in which no attempt begins.
_BUSY: Final = frozenset((429, 502, 503, 504))
_GONE: Final = frozenset((404, 410))
_ADDRESS: Final = re.compile(r"/v1/requests/[A-Za-z0-9_-]+$", re.ASCII)
_WAITS: Final = random.Random()  #: Not the program's generator, whose draws do not depend on requests.


class Answer(NamedTuple):
    """A response of the server, and its reader."""

    response: httpx.Response
    read: Callable[[], Any]


def exchange(
    call: Call, options: Options, known: Known, *, events: bool = False, clock: Callable[[], float] = time.monotonic
) -> Exchange:
    """Makes a call, and returns its `Answer`.

    Args:
        call: The call.
        options: How it is made.
        known: The client's facts about its questions.
        events: Whether the progress is yielded as events before the answer.
        clock: Returns seconds.

    Raises:
        ServiceError: There is no answer, or it is a refusal.
        TypeError: Something in the body cannot be sent.
    """
    attempt = Attempt(call, options, known, events, clock)
    try:
        answer = yield from attempt.plainly()
        return answer if answer is not None else (yield from attempt.until_answered())
    except GeneratorExit:  # no action is performed any more
        raise
    except BaseException as error:
        if not isinstance(error, Exception):  # the caller leaves: Ctrl-C, the cancellation of a task
            yield from attempt.cancelled_there()
        raise


class Attempt:
    """A call under way."""

    def __init__(self, call: Call, options: Options, known: Known, events: bool, clock: Callable[[], float]) -> None:
        self.call, self.options, self.known, self.events, self.clock = call, options, known, events, clock
        self.began = clock()
        self.deadline = None if options.timeout is None else self.began + options.timeout
        self.path = call.path + query_of(call.query, full=call.has_full)
        body = None if call.fields is None else body_of(call.fields, takes_file=call.takes_file and options.binary)
        self.content = None if body is None else body.content
        wants_file = call.offers_file and options.binary and not events and (body is None or body.has_file_dtypes)
        accept = EVENTS if events else f"{SAFETENSORS}, {JSON};q=0.5" if wants_file else JSON
        self.headers = {"Accept": accept, **options.headers}
        self.is_json = body is not None and body.content_type == JSON
        if body is not None:
            self.headers["Content-Type"] = body.content_type
        if call.is_work and call.method != "GET":  # the server would store the answer, which may be large
            self.headers["Idempotency-Key"] = _new_key()
        self.headers |= {name: value for name, value in (call.headers or {}).items() if value is not None}
        self.address: str | None = None  # the address at which the answer is waited for
        self.is_sent = False

    # ------------------------------------------------------------------------------------------------ a plain question
    def plainly(self) -> Generator[Action, Any, Answer | None]:
        """Asks a question plainly, if it may be; returns its answer, or None: it has to be sent with a key."""
        call, content, options = self.call, self.content, self.options
        if not self._is_question() or not self.known.is_quick(call, content or b""):
            return None
        if call.function != RUN and not (yield from self._is_pure()):
            return None
        headers = {"Accept": JSON, "Accept-Encoding": "identity", "Content-Type": JSON, **options.headers}
        if options.timeout is not None:  # the head is the same each time: the time that has passed is not subtracted
            headers[TIME_LIMIT] = f"{options.timeout:g}"
        try:
            response = yield Send(call.method, call.path, headers, content, self._http_timeout(), is_plain=True)
        except httpx.RequestError:
            self._note(is_quick=False)
            return None
        if response.status_code == 200 and _PART not in response.content:
            if self.clock() - self.began > QUICK:
                self._note(is_quick=False)
            return Answer(response, lambda: self._read(response))
        self._note(is_quick=False)
        refusal = None if response.status_code < 300 else refusal_of(response)
        if refusal is not None and response.status_code not in _BUSY and refusal.retry_after is None:
            raise refusal
        return None

    def _is_question(self) -> bool:
        """Whether the call keeps nothing, if its function assigns nothing."""
        is_asked = bool(self.call.function) and self.is_json and not self.events
        fields = self.call.fields or {}
        return is_asked and not any(fields.get(name) for name in _KEEP)

    def _is_pure(self) -> Generator[Action, Any, bool]:
        """Returns whether the function assigns to no variable; one request asks the server."""
        function = self.call.function
        is_pure = self.known.is_pure(function)
        if is_pure is None:
            headers = {"Accept": JSON, **self.options.headers}
            try:
                response = yield Send("GET", function, headers, None, self._http_timeout())
            except httpx.RequestError:
                return False
            if response.status_code != 200:
                return False
            self.known.note_function(function, response.json())
            is_pure = self.known.is_pure(function)
        return bool(is_pure)

    def _note(self, *, is_quick: bool) -> None:
        self.known.note(self.call, self.content or b"", is_quick=is_quick)

    def _note_answer(self, response: httpx.Response) -> None:
        """Notes the answer to a question with a key, or the changes of another call."""
        if self._is_question():
            is_soon = self.clock() - self.began < QUICK and self.address is None
            self._note(is_quick=is_soon and len(response.content) <= SMALL)
        else:
            self.known.note_change(self.call)

    # ----------------------------------------------------------------------------------------------------- the answer
    def until_answered(self) -> Exchange:
        """Sends until there is an answer, and returns it."""
        failures = 0
        while True:
            wait = min(0.25 * 2**failures, 4.0) * (0.5 + _WAITS.random())
            try:
                self.is_sent = True
                response = yield self.request()
                answer = yield from self._answer(response, is_retry=failures > 0)
            except httpx.RequestError as error:
                if self.call.method == "GET" and isinstance(error, httpx.ReadTimeout):  # it waits for what runs
                    self._check_time(0.0, error)
                    continue
                self._check_time(wait if failures < self.options.max_retries else 0.0, error)
                if failures >= self.options.max_retries or isinstance(error, httpx.UnsupportedProtocol):
                    raise self.no_answer(error) from error
            else:
                if isinstance(answer, Answer):
                    self._note_answer(answer.response)
                    return answer
                if isinstance(answer, ServiceError):
                    if failures >= self.options.max_retries:
                        raise answer
                    wait = wait if answer.retry_after is None else min(answer.retry_after, LONGEST_WAIT)
                    self._check_time(wait, answer)
                else:  # it runs, and the next request waits for it
                    if answer:
                        yield Pause(min(answer, self._seconds(answer)))
                    continue
            failures += 1
            yield Pause(wait)

    def request(self) -> Send:
        """Returns the next request: the call's, or one that waits at its address."""
        timeout = self._http_timeout()
        if self.address is not None:
            waiting = {"Accept": self.headers["Accept"], **self.options.headers}
            return Send("GET", self.address, waiting, None, timeout, self.events)
        headers = self.headers
        if self.call.is_work and self.deadline is not None:  # then the server stops it
            headers = {**headers, TIME_LIMIT: f"{self.deadline - self.clock():.3f}"}
        return Send(self.call.method, self.path, headers, self.content, timeout, self.events)

    def _answer(
        self, response: httpx.Response, is_retry: bool
    ) -> Generator[Action, Any, Answer | ServiceError | float]:
        """Returns the answer in a response, the refusal after which the request is sent again, or the seconds to wait.

        Raises:
            ServiceError: It is refused, and a retry would be too.
        """
        status = response.status_code
        if self.events:
            if status < 300 and response.headers.get("Content-Type", "").startswith(EVENTS):
                return (yield from self._last_event(response))
            yield ReadRest(response)
        if status == 202 and (address := _address_of(response)) is not None:
            is_new = address != self.address
            self.address = address
            return 0.0 if is_new else min(retry_after(response) or 0.0, LONGEST_WAIT)
        if self.address is not None and status == 404:  # the answer is forgotten, or the server was started again
            self.address = None
            return 0.0
        self.is_sent = False
        if status < 300:
            return Answer(response, lambda: self._read(response))
        if status == 406 and self.call.method == "GET" and self.headers["Accept"].startswith(SAFETENSORS):
            self.headers = {**self.headers, "Accept": JSON}  # safetensors has no name for its dtype
            return 0.0
        if status in _GONE and self.call.method == "DELETE" and is_retry:  # the first attempt has deleted it
            return Answer(response, lambda: None)
        refusal = refusal_of(response)
        if status in _BUSY or (refusal.retry_after is not None and status >= 400):
            return refusal
        raise refusal

    def _read(self, response: httpx.Response) -> Any:
        if self.call.read is None:
            return None
        try:
            facts, tensors = answer_of(response.content, response.headers.get("Content-Type", ""))
            return self.call.read(facts, tensors)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreadable(response, error) from error

    def _read_event(self, facts: Any) -> Any:
        return None if self.call.read is None else self.call.read(facts, {})

    def _last_event(self, response: httpx.Response) -> Generator[Action, Any, Answer]:
        """Yields the progress of a request, and returns its answer."""
        parser = Parser()
        yield Begun()
        try:
            while (piece := (yield ReadMore(response))) is not None:
                for event in parser.events(piece):
                    if event.name == "answer":
                        self.is_sent = False
                        yield Close(response)
                        return Answer(response, partial(self._read_event, event.data))
                    if event.name == "problem":
                        self.is_sent = False
                        raise refusal_from(event.data, response.status_code, response.headers)
                    yield event
                if self._seconds(1.0) <= 0:
                    raise self._late()
            raise httpx.RemoteProtocolError("the connection ended before the answer came")
        except GeneratorExit:
            raise
        except BaseException:
            yield Close(response)
            raise

    # ------------------------------------------------------------------------------------------------------- the end
    def cancelled_there(self) -> Exchange:
        """Cancels the request on the server if it may still run there; a missing answer is ignored."""
        if not self.is_sent or not self.call.is_work or self.call.method not in ("POST", "PUT"):
            return
        timeout = httpx.Timeout(FAREWELL)
        own = dict(self.options.headers)
        try:
            if self.address is None:  # sent again with its key it has an address at once
                headers = {**self.headers, "Prefer": "respond-async"}
                if self.events:
                    headers["Accept"] = JSON
                send = Send(self.call.method, self.path, headers, self.content, timeout, is_farewell=True)
                self.address = _address_of((yield send))
            if self.address is not None:
                yield Send("DELETE", self.address, own, None, timeout, is_farewell=True)
        except httpx.RequestError:
            return

    def _http_timeout(self) -> httpx.Timeout:
        """Returns the limits of the next request.

        Raises:
            DeadlineExceededError: There is no time for it.
        """
        seconds = self._seconds(READ_LIMIT)
        if seconds < _TICK:
            raise self._late()
        return httpx.Timeout(seconds, connect=min(seconds, CONNECT_LIMIT))

    def _seconds(self, most: float) -> float:
        return most if self.deadline is None else min(most, self.deadline - self.clock())

    def _check_time(self, wait: float, error: Exception) -> None:
        """Raises unless there is time for another attempt."""
        if self._seconds(wait + _TICK) > wait:
            return
        if isinstance(error, ServiceError):
            raise error
        if isinstance(error, httpx.TimeoutException):
            raise self._late() from error
        raise self.no_answer(error) from error

    def _late(self) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"{self.call.method} {self.call.path}: no answer within {self.options.timeout:g} s, and the server stops "
            "it by then. Allow more time: with_options(timeout=…)",
            code="timeout",
        )

    def no_answer(self, error: Exception) -> NoAnswerError:
        """Returns the error of a call without an answer."""
        return NoAnswerError(
            f"{self.call.method} {self.call.path}: no answer ({type(error).__name__}: {error}); is the server running "
            "there, and is the address right?",
            code="no_answer",
        )

    def _unreadable(self, response: httpx.Response, error: Exception) -> NoAnswerError:
        return NoAnswerError(
            f"{self.call.method} {self.call.path}: the answer is not that of a Teletape server ({error}); found "
            f"{response.content[:100]!r}: is something else at this address?",
            code="no_answer",
            status=response.status_code,
        )


def watch(call: Call, options: Options) -> Exchange:
    """Yields the events of a request that has no end, and connects again when the connection has ended."""
    attempt = Attempt(call, options._replace(timeout=None), Known(), True, time.monotonic)
    failures = 0
    is_first = True
    while True:
        try:
            response = yield attempt.request()
            if not response.is_success or not response.headers.get("Content-Type", "").startswith(EVENTS):
                yield ReadRest(response)
                raise refusal_of(response)
            if is_first:
                yield Begun()
            is_first = False
            parser = Parser()
            try:
                while (piece := (yield ReadMore(response))) is not None:
                    for event in parser.events(piece):
                        failures = 0
                        yield event
            except GeneratorExit:
                raise
            except BaseException:
                yield Close(response)
                raise
            yield Close(response)
        except (httpx.RequestError, BusyError) as error:
            if failures >= options.max_retries:
                raise error if isinstance(error, BusyError) else attempt.no_answer(error) from error
        failures += 1
        yield Pause(min(0.25 * 2**failures, 4.0) * (0.5 + _WAITS.random()))


def _new_key() -> str:
    return secrets.token_hex(16)


def _address_of(response: httpx.Response) -> str | None:
    """Returns the path at which to wait for the answer to a running request; None: it does not run."""
    match = _ADDRESS.search(response.headers.get("Location", "")) if response.status_code == 202 else None
    return None if match is None else match[0]
