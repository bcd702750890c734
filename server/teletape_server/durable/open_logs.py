"""The files of a session that has a host: which the host gets, when they are synced, and when others follow."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Any

from teletape_server.durable.disk import sync_folder
from teletape_server.durable.folders import JOURNAL_SYNC, Folder
from teletape_server.ipc.page import Page


class OpenLog:
    """The files of a session that has a host: which it gets, and what is synced of them.

    Args:
        folder: The session's.
        facts: Of the session, for the host: uid, epoch, level, and `synced`, the number of the last record that is
            surely on the disk; None: it is not known.

    Attributes:
        facts: With the numbers of the logs.
        why_failed: Why the log could not be brought to the disk; empty: it could. What the system has then lost of it
            would not be found by another try, so there is none: the host goes on with another log.

    Raises:
        OSError: They cannot be opened.
    """

    def __init__(self, folder: Folder, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        self._lock, self._advancing = threading.Lock(), threading.Lock()
        self._number = folder.newest()
        self._page: Page | None = None
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, log := folder.open_log(self._number, is_new=False))
            if folder.newest() != self._number:  # the process that had it has gone on with another one
                raise BlockingIOError("its log has just been replaced")
            if folder.has_log(self._number):
                folder.keep_only(self._number)
            self._base = folder.open_base(self._number, is_new=False)
            opened.callback(self._close, self._base)
            opened.callback(os.close, blobs := folder.open_blobs())
            next_base, next_log = self._next_files(self._number + 1)
            opened.pop_all()
        self._log: int | None = log
        self._next_base: int | None = next_base
        self._next_log: int | None = next_log
        self._blobs: int | None = blobs
        self.why_failed = ""
        self.facts = {**facts, "log": self._number, "base": self._base is not None}

    def files(self, page: int) -> list[int]:
        """Returns the descriptors that the host gets at its beginning: log, next base and log, blobs, and the base.

        If that host dies before `note_begun`, another one gets the same.

        Args:
            page: The descriptor of the page that the host writes; see `Page`.

        Raises:
            OSError: There are too many open files.
        """
        self._page = Page(page)  # an earlier one is not closed: a thread may sync the log just now
        copies: list[int] = []
        with contextlib.ExitStack() as opened:  # a descriptor that is left open would keep the log from the next host
            for file in (self._log, self._next_base, self._next_log, self._blobs, self._base):
                if file is not None:
                    copies.append(os.dup(file))
                    opened.callback(os.close, copies[-1])
            opened.pop_all()
        return copies

    def note_begun(self) -> None:
        """Notes that the host has begun: bases are its alone."""
        with self._lock:
            self._close(self._base)
            self._close(self._next_base)
            self._base = self._next_base = None

    def _next_files(self, number: int) -> tuple[int, int]:
        base = self._folder.open_base(number, is_new=True)
        assert base is not None
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, base)
            opened.callback(os.close, log := self._folder.open_log(number, is_new=True))
            sync_folder(self._folder.path)
            opened.pop_all()
        return base, log

    def advance(self, number: int) -> list[int]:
        """Notes that the host goes on with the next log; returns the descriptors of the base and log after that.

        A thread calls it, which the disk may hold up; after `close` there are none.

        Raises:
            OSError: They cannot be opened; the host goes on with the log that it has.
        """
        with self._advancing:
            with self._lock:
                if self._log is None:
                    return []
                self._close(self._log)
                self._log, self._next_log, self._number = self._next_log, None, number
                if self._page is None or self._page.failed_log != number:
                    self.why_failed = ""
            self._folder.keep_only(number)
            base, log = self._next_files(number + 1)
            with contextlib.ExitStack() as opened:
                opened.callback(os.close, base)
                opened.callback(os.close, log)
                files = [base, os.dup(log)]
                opened.pop_all()
            self._next_log = log
            return files

    @property
    def trouble(self) -> str:
        """Why the session takes no changes now; empty: it does."""
        if self.why_failed:
            return f"its log could not be brought to the disk ({self.why_failed}): it takes no changes until it can"
        if self._page is not None and self._page.refuses:
            return "its disk, or its quota of it, is full: it takes no changes until there is space"
        return ""

    def sync(self) -> None:
        """Brings to the disk what the host has written since the last call; any thread calls it.

        Of a session whose answers wait for the disk the host does that itself.

        Raises:
            OSError: The disk has failed. It is raised once for a log.
        """
        with self._lock:
            page = self._page
            if page is None or self._blobs is None or self.facts["level"] == JOURNAL_SYNC:
                return
            written = page.written  # read first: if its log is another one by then, it is in that one or before it
            number = page.log
            log = self._log if number == self._number else self._next_log  # its host's message has not come yet
            if log is None or written == page.synced or number == page.failed_log:
                return
            try:
                os.fdatasync(self._blobs)  # first: what a record refers to is on the disk before it
                os.fdatasync(log)
            except OSError as error:
                self.why_failed, page.failed_log = str(error), number
                raise
            page.synced = written

    def limit(self, nbytes: int) -> None:
        """Lets the files have that many bytes at most; what they have stays."""
        with self._lock:
            if self._page is not None:
                self._page.disk_limit = max(nbytes, 1)

    @property
    def synced(self) -> int | None:
        """The number of the last record that is surely on the disk; None: it is not known."""
        return None if self._page is None else self._page.synced

    def close(self) -> None:
        """Closes what is open here."""
        with self._advancing, self._lock:  # what it opens is the next one's after that
            for file in (self._log, self._base, self._blobs, self._next_log, self._next_base):
                self._close(file)
            if self._page is not None:
                self._page.close()
            self._log = self._base = self._blobs = self._next_log = self._next_base = self._page = None

    def _close(self, file: int | None) -> None:
        if file is not None:
            os.close(file)
