"""Memory for large arrays, reused after the last array in it is gone.

The system provides new memory page by page, which takes three times as long as a copy into memory that was used
before. So arrays that are received, or copied before they are sent or returned, use blocks of a pool.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any, Final, TypeAlias

import numpy as np

HostArray: TypeAlias = "np.ndarray[Any, Any]"

_SMALLEST: Final = 1 << 20  #: Bytes from which an array gets a block.
_MOST_IDLE: Final = 128 << 20  #: The largest number of bytes of idle blocks.

#: Idle blocks by their size. Every change is one call in C, so threads and interrupts need no lock.
_idle: Final[dict[int, list[HostArray]]] = {}


def block_size(nbytes: int) -> int:
    """Returns the size of the block for an array: at most an eighth larger, so that many arrays share few sizes."""
    step = 1 << max(nbytes.bit_length() - 4, 12)
    return -(-nbytes // step) * step


def empty(nbytes: int) -> HostArray:
    """Returns uninitialized memory as a vector of bytes; views of it keep it."""
    if nbytes < _SMALLEST:
        return np.empty(nbytes, np.uint8)
    size = block_size(nbytes)
    try:
        block = _idle[size].pop()
    except (KeyError, IndexError):
        block = np.empty(size, np.uint8)
    unshared = object()
    if sys.getrefcount(block) > sys.getrefcount(unshared):  # the program still has an array in it
        block = np.empty(size, np.uint8)
    # Through a memoryview: then the base of every view is this array, and not the block, and lives as long as they do.
    array = np.frombuffer(block.data, np.uint8, nbytes)
    weakref.finalize(array, _keep, block).atexit = False
    return array


def forget(size: int) -> None:
    """Frees the idle blocks of a size: other memory replaces them."""
    _idle.pop(size, None)


def copy(array: HostArray) -> HostArray:
    """Returns a copy, row-major and writable."""
    if array.nbytes < _SMALLEST or array.dtype.hasobject:
        return array.copy()
    copied: HostArray = empty(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copied, array)
    return copied


def _keep(block: HostArray) -> None:
    keep(_idle, block.nbytes, block, _MOST_IDLE)


def keep(idle: dict[int, list[Any]], size: int, block: Any, most: int) -> None:
    """Adds an idle block to others by their size, and drops the largest until all are within `most` bytes."""
    idle.setdefault(size, []).append(block)
    excess = sum(size * len(blocks) for size, blocks in list(idle.items())) - most
    while excess > 0:
        size = max([size for size, blocks in list(idle.items()) if blocks], default=0)
        if not size:
            return
        with suppress(IndexError):  # another thread has taken it meanwhile
            idle[size].pop(0)
        excess -= size
