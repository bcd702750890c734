"""A disk that loses what it may: a real folder in memory, and a model of what of it would survive a power cut.

Programs see a real folder: whatever reads it needs no part of this. What changes it goes through here, and is noted
until it is synced. A power cut leaves any of the sectors that were written since, in any order, and any of the names.
"""

import errno
import os
import random
import shutil
from pathlib import Path
from typing import Final

SECTOR: Final = 512  #: Bytes that are written as a whole.


class File:
    """The bytes of a file, whatever its names: what is surely on the disk, and what was written since.

    Attributes:
        durable: What is surely there.
        writes: What is perhaps there: offset and bytes.
        ends: The lengths that it has been given since.
    """

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.writes: list[tuple[int, bytes]] = []
        self.ends: list[int] = []

    def sync(self, seen: bytes) -> None:
        """All that is seen is on the disk."""
        self.durable[:] = seen
        self.writes.clear()
        self.ends.clear()

    def after_power_cut(self, rng: random.Random) -> bytes:
        """Returns what a power cut leaves."""
        left = bytearray(self.durable)
        if self.ends and rng.random() < 0.7:
            end = rng.choice(self.ends)
            del left[end:]
            left.extend(bytes(max(end - len(left), 0)))
        for offset, data in rng.sample(self.writes, rng.randint(0, len(self.writes))):
            position = 0
            while position < len(data):
                end = min(SECTOR - (offset + position) % SECTOR + position, len(data))
                if rng.random() < 0.7:
                    left.extend(bytes(max(offset + end - len(left), 0)))
                    left[offset + position : offset + end] = data[position:end]
                position = end
        if self.ends:  # its length is one that it has been given: what lies beyond that cannot be seen
            del left[max(end for end in (len(self.durable), *self.ends) if end <= len(left)) :]
        return bytes(left)


class Disk:
    """The disk.

    Args:
        root: A folder, which the disk is.
        rng: Decides what a power cut leaves.

    Attributes:
        is_full: Whether nothing more can be written.
        fails: Whether what writes and syncs fails.
        fails_at: The chance that a single call does.
    """

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self._rng = root, rng
        self.is_full = self.fails = False
        self._begin({}, {})

    def _begin(self, names: dict[str, int | None], files: dict[int, File]) -> None:
        self._files = files  # by the number of the inode
        self._names = names  # the durable ones: of a file its inode, of a folder None
        self._changes: dict[str, list[tuple[str, int | None, bool]]] = {}  # of names in a folder since it was synced

    def has(self, path: str | os.PathLike[str]) -> bool:
        """Returns whether a path is on this disk."""
        return os.path.abspath(path).startswith(f"{self.root}/")

    def file(self, fd: int) -> File | None:
        """Returns the file that a descriptor is of; None: one that is not on this disk."""
        return self._files.get(os.fstat(fd).st_ino)

    # ------------------------------------------------------------------------------------------------------- changes
    def check(self, *, takes_space: bool = True) -> None:
        """Raises what the disk answers to a call that changes something."""
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        if self.is_full and takes_space:
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(self, path: str, fd: int, *, is_new: bool) -> None:
        """Notes that a file was opened, which may be new."""
        number = os.fstat(fd).st_ino
        if is_new:
            self._files[number] = File()
            self._change(path, number)

    def wrote(self, fd: int, offset: int, data: bytes) -> None:
        """Notes a write."""
        if (file := self.file(fd)) is not None:
            file.writes.append((offset, data))

    def ended(self, fd: int) -> None:
        """Notes that a file has got its present length."""
        if (file := self.file(fd)) is not None:
            file.ends.append(os.fstat(fd).st_size)

    def created(self, path: str) -> None:
        """Notes a new folder."""
        self._change(path, None)

    def renamed(self, source: str, target: str) -> None:
        """Notes that a name was replaced."""
        number = None if os.path.isdir(target) else os.stat(target).st_ino
        self._change(target, number, after=source)
        if number is None:  # what is in the folder moves with it, durable or not
            for name in [name for name in self._names if name.startswith(f"{source}/")]:
                self._names[target + name[len(source) :]] = self._names[name]
            self._changes[target] = self._changes.pop(source, [])

    def unlinked(self, path: str) -> None:
        """Notes that a name is gone."""
        self._change(path, None, is_gone=True)

    def _change(self, path: str, number: int | None, *, is_gone: bool = False, after: str = "") -> None:
        changes = self._changes.setdefault(os.path.dirname(path), [])
        if after:
            changes.append((f"{path}\0{after}", number, False))
        else:
            changes.append((path, number, is_gone))

    def synced(self, fd: int) -> None:
        """Notes that a file, or the names in a folder, are on the disk."""
        path = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.isdir(path):
            for change in self._changes.pop(path, []):
                self._apply(change)
        elif (file := self.file(fd)) is not None:
            file.sync(Path(f"/proc/self/fd/{fd}").read_bytes())  # it may be open for writing alone

    def not_synced(self, fd: int) -> None:
        """Notes a sync that has failed: the system takes what was not written for written, and any of it is lost."""
        if (file := self.file(fd)) is not None:
            file.durable[:] = file.after_power_cut(self._rng)
            file.writes.clear()
            file.ends.clear()

    def _apply(self, change: tuple[str, int | None, bool]) -> None:
        path, number, is_gone = change
        target, _, source = path.partition("\0")
        if is_gone:
            self._names.pop(target, None)
        else:
            self._names.pop(source, None)
            self._names[target] = number

    # ------------------------------------------------------------------------------------------------------ the ends
    def cut_power(self) -> None:
        """Leaves what a power cut leaves. No process may be alive."""
        for changes in self._changes.values():
            is_ordered = self._rng.random() < 0.7  # as in the journal of a file system
            survivors = changes[: self._rng.randint(0, len(changes))] if is_ordered else changes
            for change in survivors:
                if is_ordered or self._rng.random() < 0.7:
                    self._apply(change)
        left = {
            path: None if number is None else self._files[number].after_power_cut(self._rng)
            for path, number in self._names.items()
            if self._is_reachable(path)
        }
        self.clear()
        names: dict[str, int | None] = {}
        files: dict[int, File] = {}
        for path in sorted(left):
            data = left[path]
            if data is None:
                os.makedirs(path, exist_ok=True)
                names[path] = None
                continue
            Path(path).write_bytes(data)
            names[path] = number = os.stat(path).st_ino
            files[number] = File(data)
        self._begin(names, files)

    def _is_reachable(self, path: str) -> bool:
        folder = os.path.dirname(path)
        return folder == str(self.root) or (folder in self._names and self._is_reachable(folder))

    def clear(self) -> None:
        """Removes everything on it."""
        self.root.mkdir(exist_ok=True)
        for name in os.listdir(self.root):
            shutil.rmtree(self.root / name)
        self._begin({}, {})
