"""Errors for responses that are no answers: problems (RFC 9457), redirects, pages of something before the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import httpx

from teletape_client.errors import NoAnswerError, ServiceError, error_class

_GATEWAY: Final = frozenset((502, 503, 504))
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?", re.ASCII)


def refusal_of(response: httpx.Response) -> ServiceError:
    """Returns a response without an answer as an error."""
    status = response.status_code
    try:
        problem = response.json()
        return refusal_from(problem, status, response.headers)
    except (ValueError, KeyError, TypeError):
        pass
    facts: dict[str, Any] = {"status": status, "retry_after": retry_after(response), "code": "no_answer"}
    if 300 <= status < 400:
        place = response.headers.get("Location", "an address that it does not name")
        return NoAnswerError(f"what answers there is no Teletape server: it redirects to {place}", **facts)
    words = " ".join(re.sub(r"(?is)<(script|style|title)\b.*?</\1>|<[^>]*>", " ", response.text[:10_000]).split())
    error = NoAnswerError if status in _GATEWAY or status < 400 else error_class("", status)
    return error(f"HTTP {status}, not from a Teletape server: {words[:200]}", **facts)


def refusal_from(problem: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> ServiceError:
    """Returns a problem (RFC 9457) as an error.

    Raises:
        KeyError: It is no problem.
    """
    code, status = problem["code"], problem.get("status", status)
    request_id = str(problem.get("instance", "")).rpartition(":")[2] or headers.get("X-Request-Id")
    message = problem.get("detail") or problem["title"]
    error = error_class(code, status)
    seconds = _retry_seconds(headers.get("Retry-After"))
    return error(message, code=code, status=status, request_id=request_id, retry_after=seconds, problem=problem)


def retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds after which a request may be sent again; None: the response does not say."""
    return _retry_seconds(response.headers.get("Retry-After"))


def _retry_seconds(text: str | None) -> float | None:
    """Returns the seconds in Retry-After; a date is not read, and counts as a second."""
    if text is None:
        return None
    return float(text) if _SECONDS.fullmatch(text.strip()) else 1.0
