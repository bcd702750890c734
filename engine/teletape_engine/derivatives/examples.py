"""How the gradients of examples one by one are dealt out, so that few of them are there at a time."""

from __future__ import annotations

from typing import Final

#: Bytes that the gradients of the examples of a chunk may take together, if one of them does not take more.
_CHUNK_BYTES: Final = 1 << 20


def examples_at_once(nbytes: int) -> int:
    """Returns for how many examples gradients are computed at once, 1 at least, if those of one have `nbytes` bytes."""
    return max(1, _CHUNK_BYTES // max(1, nbytes))
