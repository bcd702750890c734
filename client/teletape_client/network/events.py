"""Server-sent events and their parser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

EVENTS: Final = "text/event-stream"


class Event(NamedTuple):
    """An event of the server.

    Attributes:
        name: Its kind: progress, session, …
        data: Its JSON, or the models that were read from it.
    """

    name: str
    data: Any


class Parser:
    """Finds the events in the pieces of a stream."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def events(self, piece: bytes) -> Iterator[Event]:
        """Yields the events that this piece completes, without comments."""
        start = max(len(self._pending) - 1, 0)  # the end of an event may be split between two pieces
        self._pending += piece
        while (end := self._pending.find(b"\n\n", start)) >= 0:
            block = self._pending[:end].decode()
            del self._pending[: end + 2]
            start = 0
            name = "message"
            data: list[str] = []
            for line in block.split("\n"):
                field, _, text = line.partition(":")
                if field == "event":
                    name = text.removeprefix(" ")
                elif field == "data":
                    data.append(text.removeprefix(" "))
            if data:
                yield Event(name, json.loads("\n".join(data)))
