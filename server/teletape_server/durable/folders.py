"""The folder of a session: a manifest, the newest base and its log, and the files of the next ones.

    manifest.json            what is known of the session without its state
    base-N.safetensors       from which log N goes on; log 1 begins with a session that has nothing
    log-N.ttj
    blobs                    large tensors, which the base and the log refer to

The newest log whose head can be read is the session's: a base is on the disk before its log has a head, and nothing is
written to the log before it any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from teletape_server.durable import records
from teletape_server.durable.blobs import Blobs
from teletape_server.durable.disk import NEWER, RealFile, replace, sync_folder
from teletape_server.ipc.page import Page

FOLDER: Final = "sessions"  #: Of all sessions, in a server's folder for data.
JOURNAL_SYNC: Final = "journal-sync"  #: The level whose answers wait for the disk.
LOCK: Final = "lock"  #: The file there that one server at a time has.
_MANIFEST: Final = "manifest.json"
_BLOBS: Final = "blobs"
_LOG: Final = re.compile(r"(?:log-(\d+)\.ttj|base-(\d+)\.safetensors)")
_HEAD: Final = 64 << 10  # bytes in which a log's head is
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def is_in_use(path: str) -> bool:
    """Returns whether a server has the sessions in a folder."""
    try:
        file = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


class Folder:
    """The folder of one session.

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def create(self) -> None:
        """Makes the folder, if it is not there.

        Raises:
            OSError: It cannot be made.
        """
        with contextlib.suppress(FileExistsError):
            os.makedirs(self.path, mode=0o700)
            sync_folder(os.path.dirname(self.path))

    def manifest(self) -> dict[str, Any] | None:
        """Returns the manifest; None: there is none that can be read."""
        try:
            with open(self.at(_MANIFEST), "rb") as file:
                manifest = json.load(file)
        except (OSError, ValueError):
            return None
        return manifest if isinstance(manifest, dict) else None

    def write_manifest(self, facts: Mapping[str, Any]) -> None:
        """Replaces the manifest.

        Raises:
            OSError: It could not be written; the earlier one is there.
        """
        replace(self.at(_MANIFEST), json.dumps(facts, indent=1).encode())

    def remove(self) -> None:
        """Removes the folder; under another name at once, so that nothing half removed is found again."""
        gone = f"{self.path}.gone"
        with contextlib.suppress(OSError):
            os.rename(self.path, gone)
            shutil.rmtree(gone, ignore_errors=True)

    def nbytes(self) -> int:
        """Returns the bytes that the files take on the disk."""
        total = 0
        with contextlib.suppress(OSError), os.scandir(self.path) as files:
            for file in files:
                total += file.stat().st_blocks * 512
        return total

    def last_change(self) -> float:
        """Returns when a file was last written, in Unix seconds; 0: not known."""
        with contextlib.suppress(OSError), os.scandir(self.path) as files:
            return max([file.stat().st_mtime for file in files], default=0.0)
        return 0.0

    def at(self, name: str) -> str:
        """Returns the path of a file of the session."""
        return os.path.join(self.path, name)

    def files(self) -> list[str]:
        """Returns the names of the files that the session is made of, without those of logs before and after its own.

        Raises:
            OSError: The folder cannot be read.
        """
        number, names = self.newest(), sorted(os.listdir(self.path))
        own = {f"log-{number}.ttj", f"base-{number}.safetensors"}
        return [name for name in names if name in own or not (_LOG.fullmatch(name) or name.endswith(NEWER))]

    def bytes_of_log(self, number: int) -> bytes:
        """Returns all of a log.

        Raises:
            OSError: It cannot be read.
        """
        with open(self.at(f"log-{number}.ttj"), "rb") as file:
            return file.read()

    def bytes_of_base(self, number: int) -> bytes:
        """Returns all of a base.

        Raises:
            OSError: It cannot be read.
        """
        with open(self.at(f"base-{number}.safetensors"), "rb") as file:
            return file.read()

    def bases(self) -> Iterator[bytes]:
        """The bases that are there, the newest first.

        Raises:
            OSError: One cannot be read.
        """
        for number in sorted(self._numbers(), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                yield self.bytes_of_base(number)

    # ----------------------------------------------------------------------------------------------------------- logs
    def newest(self) -> int:
        """Returns the number of the session's log; if there is none, that of the files of the latest one; else 1."""
        numbers = sorted(self._numbers(), reverse=True)
        return next((number for number in numbers if self.has_log(number)), numbers[0] if numbers else 1)

    def has_log(self, number: int) -> bool:
        """Returns whether there is a log whose head can be read."""
        with contextlib.suppress(OSError), open(self.at(f"log-{number}.ttj"), "rb") as file:
            return records.has_head(file.read(_HEAD))
        return False

    def _numbers(self) -> set[int]:
        matches = [_LOG.fullmatch(name) for name in os.listdir(self.path)]
        return {int(match[1] or match[2]) for match in matches if match is not None}

    def sync(self) -> None:
        """Returns when what a server that was killed has written to the log would survive a power cut.

        Raises:
            OSError: That is not certain.
        """
        for name in (_BLOBS, f"log-{self.newest()}.ttj"):
            with contextlib.suppress(FileNotFoundError), open(self.at(name), "rb") as file:
                os.fdatasync(file.fileno())

    def open_log(self, number: int, *, is_new: bool) -> int:
        """Opens a log, and returns its descriptor; `is_new`: it has nothing.

        As long as a process has this descriptor, or one that it was sent, no other can open the log: not the next
        server either, while a process of the one before is about to end.

        Raises:
            OSError: It cannot be opened, or another process has it.
        """
        file = os.open(self.at(f"log-{number}.ttj"), _FLAGS, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_new:
                os.ftruncate(file, 0)
        except OSError:
            os.close(file)
            raise
        return file

    def open_base(self, number: int, *, is_new: bool) -> int | None:
        """Opens a base, and returns its descriptor; None: this log has none.

        Raises:
            OSError: It cannot be opened.
        """
        path = self.at(f"base-{number}.safetensors")
        if not is_new and not os.path.exists(path):
            return None
        return os.open(path, _FLAGS | (os.O_TRUNC if is_new else 0), 0o600)

    def open_blobs(self) -> int:
        """Opens the file of large tensors, which is made if it is not there, and returns its descriptor.

        Raises:
            OSError: It cannot be opened.
        """
        return os.open(self.at(_BLOBS), _FLAGS, 0o600)

    @contextlib.contextmanager
    def blobs(self) -> Iterator[Blobs]:
        """Has the large tensors to read; without their file there are none.

        Raises:
            OSError: It cannot be opened.
        """
        path = self.at(_BLOBS)
        file = os.open(path if os.path.exists(path) else os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield Blobs(RealFile(file))
        finally:
            os.close(file)

    def keep_only(self, *numbers: int) -> None:
        """Removes the bases and logs with other numbers.

        Raises:
            OSError: One cannot be removed.
        """
        for number in self._numbers() - {*numbers}:
            for name in (f"log-{number}.ttj", f"base-{number}.safetensors"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.at(name))


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

        Args:
            page: The descriptor of the page that the host writes; see `Page`.

        Raises:
            OSError: There are too many open files.
        """
        self._page = Page(page)
        copies: list[int] = []
        with contextlib.ExitStack() as opened:  # a descriptor that is left open would keep the log from the next host
            for file in (self._log, self._next_log, self._blobs):
                assert file is not None
                copies.append(os.dup(file))
                opened.callback(os.close, copies[-1])
            opened.pop_all()
        log, next_log, blobs = copies
        files = [file for file in (log, self._next_base, next_log, blobs, self._base) if file is not None]
        self._next_base = self._base = None
        return files

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
            return "its disk takes nothing more: it takes no changes until there is space"
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
