"""A thread that brings the logs of all sessions to the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from teletape_server.durable.open_logs import OpenLog

SYNC_SECONDS: Final = 0.05  #: Between two times that logs are brought to the disk.


class Syncer:
    """Brings all logs to the disk, some times a second, in a thread of its own.

    Args:
        failed: Called with a log whose disk has failed, in that thread, and with the error.
        seconds: Between two times.
    """

    def __init__(self, failed: Callable[[OpenLog, OSError], None], seconds: float = SYNC_SECONDS) -> None:
        self._failed, self._seconds = failed, seconds
        self._logs: set[OpenLog] = set()
        self._lock = threading.Lock()  # while that changes: any thread does it
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, log: OpenLog) -> None:
        """Takes a log."""
        with self._lock:
            self._logs = {*self._logs, log}
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sync", daemon=True)
                self._thread.start()

    def drop(self, log: OpenLog) -> None:
        """Lets go of a log, after the last time."""
        with self._lock:
            self._logs = self._logs - {log}
        self._sync(log)
        log.close()

    def stop(self) -> None:
        """Ends the thread, and lets go of all logs."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        for log in self._logs:
            self.drop(log)

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            for log in self._logs:
                self._sync(log)

    def _sync(self, log: OpenLog) -> None:
        try:
            log.sync()
        except OSError as error:
            self._failed(log, error)
