"""Content types: which one a body has, and which one the Accept header asks the answer to have; and ETags."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.datastructures import Headers

import teletape_wire as wire
from teletape_server.problems import Problem

EVENTS_TYPE: Final = "text/event-stream"


def entity_tag(body: bytes | memoryview) -> str:
    """Returns a strong ETag of an answer: a hash of its body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def body_types(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the content types of the body that `declarations.takes` describes, that of one without a type last."""
    return tuple(reversed(declared["requestBody"]["content"]))


def answer_types(declared: Mapping[int | str, Any], status: int) -> tuple[str, ...]:
    """Returns the content types of the answer that `declarations.answers` describes; none: it has no body."""
    return tuple(declared.get(status, {}).get("content", ()))


def body_type(headers: Headers, supported: Sequence[str]) -> str:
    """Returns the body's content type, one of `supported`; the last of them if the headers name none.

    Raises:
        Problem: unsupported_media_type, also of a body that is compressed.
    """
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise Problem(
            "unsupported_media_type",
            f"Content-Encoding {coding[:60]!r} is not supported: send the body uncompressed, without this header",
            headers={"Accept-Encoding": "identity"},
            known=["identity"],
        )
    header = headers.get("content-type")
    if header is None:
        return supported[-1]
    name = _media_type(header)
    if name not in supported:
        raise Problem(
            "unsupported_media_type",
            f"Content-Type {name!r} is not supported here: send {' or '.join(supported)}",
            headers={"Accept": ", ".join(supported)},
            known=list(supported),
        )
    return name


def answer_type(headers: Headers, supported: Sequence[str], default: str) -> str:
    """Returns the content type of `supported` that Accept prefers; `default` if it prefers none.

    A request for events gets its last event as JSON.

    Raises:
        Problem: not_acceptable.
    """
    accept = headers.get("accept")
    if accept is None or (wants_events(headers) and wire.JSON_TYPE in supported):
        return default if accept is None else wire.JSON_TYPE
    preference: dict[str, tuple[float, int]] = {}  # quality and specificity of the entry that decides, by type
    for entry in accept.split(","):
        name, quality = _accept_entry(entry)
        for candidate in (default, *supported):
            specificity = _specificity(name, candidate)
            if specificity >= 0 and specificity >= preference.get(candidate, (0.0, -1))[1]:
                preference[candidate] = (quality, specificity)
    best = max(preference, key=lambda candidate: preference[candidate], default=None)
    if best is None or preference[best][0] <= 0:
        raise Problem(
            "not_acceptable",
            f"Accept {accept!r} names no type that this answer can have: ask for {' or '.join(supported)}",
            known=list(supported),
        )
    return best


def wants_events(headers: Headers) -> bool:
    """Returns whether Accept asks for events, which report the progress of the request."""
    accept = headers.get("accept", "")
    return any(_media_type(entry) == EVENTS_TYPE for entry in accept.split(","))


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _accept_entry(entry: str) -> tuple[str, float]:
    """Returns the media type or range of an entry of Accept, and its quality from 0 to 1."""
    name, *parameters = [part.strip().lower() for part in entry.split(";")]
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0


def _specificity(media_range: str, media_type: str) -> int:
    """Returns how closely a range names a type: 2 by its full name, 1 type/*, 0 */*, -1 not at all."""
    if media_range == media_type:
        return 2
    if media_range == media_type.partition("/")[0] + "/*":
        return 1
    return 0 if media_range == "*/*" else -1
