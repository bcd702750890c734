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
from collections.abc import Iterator, Mapping
from typing import Any, Final

from teletape_server.durable import records
from teletape_server.durable.blobs import Blobs
from teletape_server.durable.disk import NEWER, RealFile, replace, sync_folder

FOLDER: Final = "sessions"  #: Of all sessions, in a server's folder for data.
JOURNAL_SYNC: Final = "journal-sync"  #: The level whose answers wait for the disk.
LOCK: Final = "lock"  #: The file there that one server at a time has.
GONE: Final = ".gone"  #: The end of the name of a session's folder that is being removed.
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
        gone = f"{self.path}{GONE}"
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

    def has_log_to_run(self) -> bool:
        """Returns whether the base alone is not what the session had: its log has records, or is lost."""
        with contextlib.suppress(OSError), open(self.at(f"log-{self.newest()}.ttj"), "rb") as file:
            return records.has_records(file.read(_HEAD))
        return True

    def has_values(self) -> bool:
        """Returns whether a base has bytes, or the log records: other files are there for a process to write."""
        with contextlib.suppress(NotADirectoryError), os.scandir(self.path) as files:
            if any(file.name.startswith("base-") and file.stat().st_size for file in files):
                return True
            return self.has_log(self.newest()) and self.has_log_to_run()
        return False

    def is_unfinished(self) -> bool:
        """Returns whether it has the files of a session that has no values yet, and nothing else."""
        if not os.path.isdir(self.path):
            return False
        own = {_MANIFEST, _MANIFEST + NEWER, _BLOBS}
        return all(name in own or _LOG.fullmatch(name) for name in os.listdir(self.path)) and not self.has_values()

    def cut_bytes(self) -> int:
        """Returns the bytes of a write that was not finished, which the next process cuts from the log.

        Raises:
            DamagedError: The log cannot be read.
            OSError: Likewise.
        """
        log = records.read(self.bytes_of_log(self.newest()))
        return 0 if log is None else log.cut

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
