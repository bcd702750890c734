"""The texts that wait to be parsed: one at a time, in a thread, so that parsing takes at most a share of one core."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable
from typing import Final

from teletape_server.expressions.compiled import Compiled
from teletape_server.expressions.parser import MOST_CHARACTERS, parse
from teletape_server.problems import Problem

MOST_PER_KEY: Final = 8  #: Texts of one key that wait or are being parsed.
MOST: Final = 64  #: The same of all keys.
#: How much later a text of the longest length is due than an empty one. It takes about 0.1 s, a short one a hundredth.
_LONG_SECONDS: Final = 1.0


class ParseQueue:
    """Parses short texts before long ones; but none waits for those that come much later.

    Args:
        parse: Parses one text, as `parser.parse`.
    """

    def __init__(self, parse: Callable[[str, str], Compiled] = parse) -> None:
        self._parse = parse
        self._texts: list[tuple[float, int, str, str, asyncio.Future[Compiled]]] = []  # a heap
        self._of_key: Counter[str] = Counter()
        self._last_number = 0
        self._working: asyncio.Task[None] | None = None

    async def parse(self, owner: str, text: str, dtype: str) -> Compiled:
        """Returns the function that a text means.

        Args:
            owner: Whose text it is.
            text: The text.
            dtype: Of its constants; see `parser.parse`.

        Raises:
            Problem: invalid_expression; busy, if too many texts wait.
        """
        mine, in_all = self._of_key[owner], self._of_key.total()
        for count, limit, whose in ((mine, MOST_PER_KEY, "of your key"), (in_all, MOST, "of all keys")):
            if count >= limit:
                raise Problem(
                    "busy",
                    f"{count} expressions {whose} wait to be parsed, the limit: send the next one after an answer",
                    headers={"Retry-After": "1"},
                    found=count,
                    limit=limit,
                )
        loop = asyncio.get_running_loop()
        compiled: asyncio.Future[Compiled] = loop.create_future()
        due = loop.time() + _LONG_SECONDS * len(text) / MOST_CHARACTERS
        self._last_number += 1
        heapq.heappush(self._texts, (due, self._last_number, text, dtype, compiled))
        if self._working is None:
            self._working = loop.create_task(self._work())
        self._of_key[owner] += 1
        try:
            return await compiled
        finally:
            self._of_key[owner] -= 1

    async def _work(self) -> None:
        """Parses what waits."""
        while self._texts:
            *_, text, dtype, compiled = heapq.heappop(self._texts)
            if compiled.cancelled():
                continue
            try:
                result = await asyncio.to_thread(self._parse, text, dtype)
            except Exception as error:
                if not compiled.cancelled():
                    compiled.set_exception(error)
            else:
                if not compiled.cancelled():
                    compiled.set_result(result)
        self._working = None
