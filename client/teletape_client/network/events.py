"""Server-sent events: their parser, and what reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

EVENTS: Final = "text/event-stream"


class Event(NamedTuple):
    """An event of the server.

    Attributes:
        name: What it is: progress, session, …
        data: Its JSON; models are in its place once it was read.
    """

    name: str
    data: Any


class Parser:
    """Finds the events in the pieces of a stream."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def events(self, piece: bytes) -> Iterator[Event]:
        """Yields the events that are complete with this piece; comments are passed over."""
        start = max(len(self._pending) - 1, 0)  # the end of an event may lie across two pieces
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
