"""Retries: when a request is sent again, and for how long a call is patient with the server.

If a server does not answer, or is busy, the request is sent again until the call's patience ends. A server that answers
202 with its progress computes: there is no limit but its own. The 202 has the request's address, at which a GET waits
for the answer, so the request is not sent again.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # a program without a server loads no HTTP
    from teletape.core.network.frame_socket import Response

_LONGEST_WAIT: Final = 10.0  #: The longest time between two attempts, in seconds, whatever the server names.
_OUTAGES: Final = frozenset((502, 503, 504))
_RETRIED: Final = _OUTAGES | {429}
_ANSWERS: Final = frozenset((200, 201, 202, 204))  #: Statuses of successful answers.
_ADDRESS: Final = re.compile(r"/v1/requests/[A-Za-z0-9_-]+$", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?", re.ASCII)


_most: Final[list[float]] = []  # seconds, of a program that ends


def limit_patience(seconds: float) -> None:
    """Limits the patience of all calls from now on, because the program ends."""
    _most.append(seconds)


class Patience:
    """The patience of one call: the time for which it has waited in vain. Each call of a connection has its own.

    Args:
        url: The server's address, for messages.
        seconds: The time for which a server may be silent or busy until the call raises.
        retries: The largest number of retries because of that; None: no limit but the time.
    """

    def __init__(self, url: str, seconds: float, retries: int | None = None) -> None:
        self._url, self._seconds, self._retries, self._left = url, seconds, retries, retries
        self._since: float | None = None
        self._reason = ""

    @property
    def trouble(self) -> str | None:
        """The trouble, as a line for people; None: there is none."""
        if self._since is None:
            return None
        return f"{self._reason}, trying again, {time.monotonic() - self._since:.0f} s of {self._seconds:.0f}"

    def unanswered(self, began: float, wait: float) -> bool:
        """Notes that there was no answer; returns whether the request is to be sent again.

        Args:
            began: The beginning of the silence.
            wait: Seconds until it would be sent again.
        """
        return self._goes_on(f"no answer from {self._url}", began, wait)

    def wait_after(self, response: Response, wait: float) -> float | None:
        """Returns the seconds after which a response asks for a retry.

        None: it asks for none, patience has ended, or what it lacks is not free soon, such as a budget.

        Args:
            response: The server's answer.
            wait: The seconds, if it names none.
        """
        seconds = _named_seconds(response, wait)
        if is_progress(response):
            self._since, self._left = None, self._retries
            return seconds
        soon = min(self._seconds, _LONGEST_WAIT)  # what is free later is said at once: the user may free it sooner
        is_late = response.status not in _OUTAGES and (retry_seconds(response) or 0.0) > soon
        if is_late or not is_retried(response):
            return None
        busy = f"{self._url} is busy (HTTP {response.status})"
        return seconds if self._goes_on(busy, time.monotonic(), seconds) else None

    def _goes_on(self, reason: str, began: float, wait: float) -> bool:
        since = began if self._since is None else self._since
        if self._left is not None:
            if not self._left:
                return False
            self._left -= 1
        if time.monotonic() + wait > since + min([self._seconds, *_most]):
            return False
        self._reason, self._since = reason, since
        return True


def is_answer(response: Response) -> bool:
    """Whether a response is a server's answer, or a refusal; a redirect is neither."""
    if response.status == 202 and response.retry_after is not None:  # progress, or no answer of a server
        return False
    return response.status in _ANSWERS or response.status >= 400


def is_retried(response: Response) -> bool:
    """Whether a request is sent again, by the status of its response or its Retry-After."""
    return response.status in _RETRIED or (response.status >= 400 and response.retry_after is not None)


def is_progress(response: Response) -> bool:
    """Whether a response says that the request still runs; the same request, sent again, joins it."""
    if response.status != 202 or response.retry_after is None:
        return False
    facts = facts_of(response)
    return facts is not None and facts.get("status") == "running"


def address_of(response: Response) -> str | None:
    """Returns the address at which to wait for the answer to a running request; None: send the request again.

    A proxy may have put its own address before the path.
    """
    if response.location is None or not is_progress(response):
        return None
    match = _ADDRESS.search(response.location)
    return None if match is None else match[0]


def facts_of(response: Response) -> dict[str, Any] | None:
    """Returns the JSON object in a response's body; None: the body is something else, such as a page."""
    try:
        facts = json.loads(bytes(response.body))
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def retry_seconds(response: Response) -> float | None:
    """Returns the seconds in a response's Retry-After; None: there is none, or a date, which is ignored."""
    named = response.retry_after
    return None if named is None or _SECONDS.fullmatch(named.strip()) is None else float(named)


def _named_seconds(response: Response, default: float) -> float:
    """Returns the seconds in a response's Retry-After, at most `_LONGEST_WAIT`."""
    named = retry_seconds(response)
    return default if named is None else min(named, _LONGEST_WAIT)
