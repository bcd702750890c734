"""When a request is sent again: what an answer asks for, and how long one call is patient with the server.

A server that does not answer, or is busy, is asked again until the call's patience ends. A server that answers 202 with
its progress computes: it is asked again for as long as it says so, which its own limits bound. The 202 has the
request's address, where a GET waits for the answer, so the request is not sent again.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # a program without a server loads no HTTP
    from teletape.network.frame_socket import Response

_LONGEST_WAIT: Final = 10.0  #: Seconds between two attempts, at most, whatever the server names.
_RETRIED: Final = frozenset((429, 502, 503, 504))
_ANSWERS: Final = frozenset((200, 201, 202, 204))  #: Statuses of a server's answers that are no refusals.
_ADDRESS: Final = re.compile(r"/v1/requests/[A-Za-z0-9_-]+$", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?", re.ASCII)


_most: Final[list[float]] = []  # seconds, of a program that ends


def limit_patience(seconds: float) -> None:
    """Lets no call be patient for longer from now on: the program ends."""
    _most.append(seconds)


class Patience:
    """How long one call has waited in vain. Other calls of the connection have their own.

    Args:
        url: The server's address, for messages.
        seconds: How long a server may not answer, or be busy, until the call raises.
        retries: How often the request is sent again because of that; None: as often as there is time for.
    """

    def __init__(self, url: str, seconds: float, retries: int | None = None) -> None:
        self._url, self._seconds, self._retries, self._left = url, seconds, retries, retries
        self._since: float | None = None
        self._reason = ""

    @property
    def trouble(self) -> str | None:
        """What is wrong, as a line for people; None: nothing is."""
        if self._since is None:
            return None
        return f"{self._reason}, trying again, {time.monotonic() - self._since:.0f} s of {self._seconds:.0f}"

    def unanswered(self, began: float, wait: float) -> bool:
        """Notes that there was no answer; returns whether the request is to be sent again.

        Args:
            began: When the silence began.
            wait: Seconds until it would be sent again.
        """
        return self._goes_on(f"no answer from {self._url}", began, wait)

    def wait_after(self, response: Response, wait: float) -> float | None:
        """Returns the seconds after which a response asks for a retry; None: it asks for none, or patience has ended.

        Args:
            response: The server's answer.
            wait: The seconds, if it names none.
        """
        seconds = _named_seconds(response, wait)
        if is_progress(response):
            self._since, self._left = None, self._retries
            return seconds
        busy = f"{self._url} is busy (HTTP {response.status})"
        return seconds if is_retried(response) and self._goes_on(busy, time.monotonic(), seconds) else None

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
    if response.status == 202 and response.retry_after is not None:  # progress, or nothing that a server says
        return False
    return response.status in _ANSWERS or response.status >= 400


def is_retried(response: Response) -> bool:
    """Whether a request is sent again: the status of its response says so, or the server did."""
    return response.status in _RETRIED or (response.status >= 400 and response.retry_after is not None)


def is_progress(response: Response) -> bool:
    """Whether a response says that the request still runs: the same request, sent again, joins it."""
    if response.status != 202 or response.retry_after is None:
        return False
    facts = facts_of(response)
    return facts is not None and facts.get("status") == "running"


def address_of(response: Response) -> str | None:
    """Returns where to wait for the answer to a request that still runs; None: the request has to be sent again.

    Something between here and the server may have put its own address before the path.
    """
    if response.location is None or not is_progress(response):
        return None
    match = _ADDRESS.search(response.location)
    return None if match is None else match[0]


def facts_of(response: Response) -> dict[str, Any] | None:
    """Returns the JSON object that is a response's body; None: it is none, as a page is."""
    try:
        facts = json.loads(bytes(response.body))
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def retry_seconds(response: Response) -> float | None:
    """Returns the seconds that a response names in Retry-After; None: it names none, or a date, which is not read."""
    named = response.retry_after
    return None if named is None or _SECONDS.fullmatch(named.strip()) is None else float(named)


def _named_seconds(response: Response, default: float) -> float:
    """Returns the seconds that a response names in Retry-After, at most `_LONGEST_WAIT`."""
    named = retry_seconds(response)
    return default if named is None else min(named, _LONGEST_WAIT)
