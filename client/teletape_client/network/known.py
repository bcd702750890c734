"""Facts that a client has learned about questions: quick ones that change nothing are sent plainly.

A plain request has no idempotency key, since it may be computed twice, and asks for JSON. Its head is the same each
time, so the server needs half the time for it. The first request of a kind is never plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import httpx

from teletape_client.network.actions import Call

QUICK: Final = 5.0  #: Seconds in which a question must have been answered, so that the next one may be plain.
SMALL: Final = 16 << 10  #: The largest number of bytes of its answer.
Head: TypeAlias = tuple[Mapping[str, str], httpx.Request]
_MOST: Final = 10_000  #: The largest number of kinds of questions.


class Known:
    """The known facts about a client's questions, by their paths.

    Attributes:
        heads: For a plain question its headers, and the request that httpx has built with them.
    """

    def __init__(self) -> None:
        self.heads: dict[str, Head] = {}
        self._quick: set[tuple[str, int]] = set()
        self._is_pure: dict[str, bool] = {}

    def is_quick(self, call: Call, content: bytes) -> bool:
        """Whether the last question of this kind, of about this length, had a small and quick answer."""
        return _kind(call, content) in self._quick

    def note(self, call: Call, content: bytes, *, is_quick: bool) -> None:
        """Notes whether a question had a small and quick answer."""
        if not is_quick:
            self._quick.discard(_kind(call, content))
        elif len(self._quick) < _MOST:
            self._quick.add(_kind(call, content))

    def is_pure(self, function: str) -> bool | None:
        """Whether the function at this path assigns to no variable; None: it is not known."""
        return self._is_pure.get(function)

    def note_function(self, function: str, facts: Mapping[str, Any]) -> None:
        """Notes the server's facts about a function."""
        if len(self._is_pure) >= _MOST:
            self._is_pure.clear()
        self._is_pure[function] = facts.get("assigns") == []

    def note_head(self, path: str, headers: Mapping[str, str], request: httpx.Request) -> Head:
        """Notes the head of a plain question, and returns it."""
        if len(self.heads) >= _MOST:
            self.heads.clear()
        head = self.heads[path] = headers, request
        return head

    def note_change(self, call: Call) -> None:
        """Forgets the functions that a call may have replaced."""
        creates = call.method == "POST" and call.path.endswith(("/functions", "/sessions", "/run"))
        if self._is_pure and (creates or call.method == "DELETE"):
            place = call.path.removesuffix("run")
            self._is_pure = {path: pure for path, pure in self._is_pure.items() if not path.startswith(place)}


def _kind(call: Call, content: bytes) -> tuple[str, int]:
    return call.path, len(content).bit_length()
