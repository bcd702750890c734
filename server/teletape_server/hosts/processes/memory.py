"""What of the machine's memory a session's process has reserved and uses, and its questions for more."""

from __future__ import annotations

import asyncio
import json
import logging
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from teletape_server.hosts.protocols import Reserved
from teletape_server.ipc.control import Control, MemoryQuestion
from teletape_server.ipc.page import Page
from teletape_server.problems import Problem

_SPARE_BYTES: Final = 16 << 20  # that a process has reserved and does not use, before it is worth to give them back

log = logging.getLogger("teletape")


class ProcessMemory:
    """The memory of one process.

    Args:
        pid: Of the process.
        control: The connection on which its questions are answered.
        trim: Has the process give back what it has reserved and does not use.
    """

    def __init__(self, pid: int | None, control: Control, trim: Callable[[], None]) -> None:
        self._pid, self._control, self._trim = pid, control, trim
        self._page: Page | None = None
        self._reserved: Reserved | None = None
        self._before = self._last = 0
        self._answers: set[asyncio.Task[None]] = set()

    def begin(self, page: Page, reserved: Reserved | None) -> None:
        """Says in the page what is reserved for a session that the process gets; None: its limit alone counts."""
        self._page, self._reserved, self._before = page, reserved, self._resident()
        if reserved is not None:
            page.reserved, reserved.look, reserved.give_back = reserved.reserved, self._look, self._give_back

    def _look(self) -> tuple[int, int]:
        """Returns the bytes that the process uses of its reservation, and those that are reserved; see `Reserved`.

        What the page says is as of the last answer, also while a request that runs has freed some of that. What the
        kernel says is as of now, and counts what is freed and not returned to it, and bodies.
        """
        if self._page is None or self._reserved is None:  # it is about to be released
            return 0, sys.maxsize
        return min(self._page.bytes_in_use, max(self._resident() - self._before, 0)), self._page.reserved

    def _resident(self) -> int:
        """Returns the bytes of the process that are in the machine's memory; those of the last time, if it has ended.

        Also those that it shares: what the server has sent it.
        """
        with suppress(OSError), open(f"/proc/{self._pid}/statm") as file:
            self._last = int(file.read().split()[1]) * mmap.PAGESIZE
        return self._last

    def has_spare(self) -> bool:
        """Returns whether the process has much reserved that it does not use, and runs nothing."""
        page = self._page
        if page is None or self._reserved is None or page.is_running:
            return False
        return page.reserved > page.bytes_in_use + _SPARE_BYTES

    def _give_back(self) -> bool:
        """Has the process give back what it does not use, and returns whether there is much of that."""
        if has_spare := self.has_spare():
            self._trim()
        return has_spare

    def on_question(self, question: MemoryQuestion) -> None:
        """Answers a question as soon as that can be."""
        task = asyncio.get_running_loop().create_task(self._answer(question))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, question: MemoryQuestion) -> None:
        reserved, page, refusal = self._reserved, self._page, b""
        if reserved is None or page is None:  # a process that asks without a reservation: it is not Teletape's any more
            return
        try:
            await reserved.extend(question.needed)
        except Problem as problem:
            refusal = json.dumps({"message": problem.detail, "details": problem.details}).encode()
        except Exception:  # the process waits for an answer
            log.exception("memory could not be reserved")
            refusal = json.dumps({"message": "the server failed: its log says why", "details": {}}).encode()
        with suppress(OSError, ValueError):  # it has ended meanwhile, and the socket or the page is closed
            page.reserved = reserved.reserved
            self._control.answer(question.number, refusal)

    def close(self) -> None:
        """Answers nothing any more, and looks at nothing."""
        self._page = None
        for task in [*self._answers]:
            task.cancel()
