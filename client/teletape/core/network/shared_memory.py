"""Memory for large arrays that a server on this machine can read and write: files in memory that cannot shrink.

Over a Unix socket a large tensor is not sent: the request names the file that has it (frame_memory.py). The system
provides such memory page by page, ten times as slowly as a copy: so a file is made for a size that was requested
before, and reused after the last array in it is gone.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from teletape.core.program import host_memory

if sys.platform == "linux" or TYPE_CHECKING:
    import fcntl

HostArray: TypeAlias = "np.ndarray[Any, Any]"

SMALLEST: Final = 1 << 20  #: The smallest number of bytes of an array in such memory.
_WANTED: Final = 2  #: The number of requests for a size before it gets a file.
_MOST_IDLE: Final = 128 << 20  #: The largest number of bytes of idle files.

POSSIBLE: Final = hasattr(os, "memfd_create") and sys.platform == "linux"  #: Whether this system has such files.


class File:
    """A file in memory, mapped here.

    Attributes:
        number: Its descriptor.
        inode: Its number in the system.
        memory: Its bytes.
        forks: The number of forks of this process when it was made.
        lost: Whether a server may still write into it.
    """

    __slots__ = ("__weakref__", "forks", "inode", "lost", "memory", "number")

    def __init__(self, size: int) -> None:
        self.forks, self.lost = _forks[0], False
        self.number = os.memfd_create("teletape", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.number, size)
        fcntl.fcntl(self.number, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.inode = os.fstat(self.number).st_ino
        self.memory = mmap.mmap(self.number, size)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # the constructor failed; or the program ends
            os.close(self.number)


#: Idle files by their size. Every change is one call in C, so threads and interrupts need no lock.
_idle: Final[dict[int, list[File]]] = {}
_wanted: Final[Counter[int]] = Counter()
_by_address: Final[weakref.WeakValueDictionary[int, File]] = weakref.WeakValueDictionary()
_users: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
_forks: Final = [0]


def use(user: object) -> None:
    """Notes that an object can send such memory, as long as it lives or until `end_use`."""
    _users.add(user)


def end_use(user: object) -> None:
    """Notes that the object no longer can."""
    _users.discard(user)


def empty(nbytes: int) -> HostArray | None:
    """Returns uninitialized memory as a vector of bytes; None: the size is too small, or not requested often enough."""
    if nbytes < SMALLEST or not _users:
        return None
    size = host_memory.block_size(nbytes)
    try:
        file = _idle[size].pop()
    except (KeyError, IndexError):
        _wanted[size] += 1
        if _wanted[size] <= _WANTED:
            return None
        try:
            file = File(size)
        except OSError:  # there is no descriptor or no memory left
            return None
        _by_address[_address(np.frombuffer(file.memory, np.uint8))] = file
        host_memory.forget(size)
    array = np.frombuffer(file.memory, np.uint8, nbytes)
    weakref.finalize(array, _keep, file).atexit = False
    return array


def copy(array: HostArray) -> HostArray:
    """Returns a copy, row-major and writable, in shared memory if there is some, else in ordinary memory."""
    block = empty(array.nbytes) if _users and not array.dtype.hasobject else None
    if block is None:
        return host_memory.copy(array)
    copied: HostArray = block.view(array.dtype).reshape(array.shape)
    np.copyto(copied, array)
    return copied


def file_at(memory: Any) -> File | None:
    """Returns the file that begins at the address of these bytes and has all of them; None: there is none."""
    file = _by_address.get(_address(np.frombuffer(memory, np.uint8)))
    return None if file is None or len(file.memory) < len(memory) else file


def file_of(array: HostArray) -> File:
    """Returns the file of a result of `empty`."""
    return _by_address[_address(array)]


def _address(array: HostArray) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]  # an address


def _keep(file: File) -> None:
    """Adds an idle file, and drops others until all are within the bound."""
    if file.lost or file.forks != _forks[0]:  # another process has its arrays too, because it shares the memory
        return
    host_memory.keep(_idle, len(file.memory), file, _MOST_IDLE)


def _after_fork() -> None:
    """Drops the idle files, because both processes have them."""
    _forks[0] += 1
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork)
