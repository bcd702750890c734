"""Memory for large arrays, used again after the last array in it is gone.

The system hands out fresh memory page by page, which takes three times as long as to copy into memory that was used
before. So what is received, and what is copied before it is sent or returned, goes into blocks that are kept.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any, Final, TypeAlias

import numpy as np

HostArray: TypeAlias = "np.ndarray[Any, Any]"

_SMALLEST: Final = 1 << 20  #: Bytes from which an array gets a block.
_MOST_IDLE: Final = 128 << 20  #: Bytes of blocks that are kept for further arrays.

#: Blocks that nothing uses, by their size. Every change is one call in C, so that threads and interrupts share it.
_idle: Final[dict[int, list[HostArray]]] = {}


def block_size(nbytes: int) -> int:
    """Returns the size of the block for an array: at most an eighth larger, so that few sizes serve many arrays."""
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
    if sys.getrefcount(block) > sys.getrefcount(unshared):  # the program holds the end of an array's chain of bases
        block = np.empty(size, np.uint8)
    # Through a memoryview: the base of every view is then this array, and not the block, so that its end is theirs.
    array = np.frombuffer(block.data, np.uint8, nbytes)
    weakref.finalize(array, _keep, block).atexit = False
    return array


def forget(size: int) -> None:
    """Gives back the blocks of a size that nothing uses: other memory takes their place."""
    _idle.pop(size, None)


def copy(array: HostArray) -> HostArray:
    """Returns a copy, row-major and writable."""
    if array.nbytes < _SMALLEST or array.dtype.hasobject:
        return array.copy()
    copied: HostArray = empty(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copied, array)
    return copied


def _keep(block: HostArray) -> None:
    """Keeps a block, and drops others until those that are kept are within the bound."""
    _idle.setdefault(block.nbytes, []).append(block)
    excess = sum(size * len(blocks) for size, blocks in list(_idle.items())) - _MOST_IDLE
    while excess > 0:
        size = max([size for size, blocks in list(_idle.items()) if blocks], default=0)
        if not size:
            return
        with suppress(IndexError):  # another thread has taken it meanwhile
            _idle[size].pop(0)
        excess -= size
