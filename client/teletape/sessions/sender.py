"""The thread that sends a remote session's batches, in order, so that recording goes on meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from teletape_engine.commands import Batch
from teletape_engine.commands.results import Answer


class Sender:
    """One daemon thread; an executor's thread would be joined before `atexit` can deliver the last batch.

    Args:
        send: Sends one batch and returns the server's answer.
    """

    def __init__(self, send: Callable[[Batch], Answer]) -> None:
        self._send = send
        self._jobs: queue.SimpleQueue[tuple[Future[Answer], Batch] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="teletape-sender", daemon=True).start()

    def submit(self, batch: Batch) -> Future[Answer]:
        """Sends a batch after those submitted before; the future gets the answer, or the exception."""
        answer: Future[Answer] = Future()
        self._jobs.put((answer, batch))
        return answer

    def stop(self) -> None:
        """Ends the thread after everything submitted has been sent."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer, batch = job
            try:
                answer.set_result(self._send(batch))
            except BaseException as error:  # the thread that waits for the answer raises it
                answer.set_exception(error)
