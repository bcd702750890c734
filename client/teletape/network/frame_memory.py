"""Frames and answers of which a part is in memory that this process and a server on the same machine share.

A header of the request names the parts of the frame that are not in the body, and another one the room for the answer.
docs/protocol.md has their form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import httpx

from teletape.network import shared_memory
from teletape.network.frame_socket import Buffer, Response

_PARTS: Final = 64  #: Of one frame; the server takes no more.
_BESIDES: Final = 64 << 10  #: Bytes of an answer in addition to its tensors, about.


class ShortBody(NamedTuple):
    """The rest of a frame, without what is named by a header.

    Attributes:
        line: The header.
        buffers: The body.
        length: Its bytes.
    """

    line: bytes
    buffers: list[Buffer]
    length: int


def without_shared(buffers: Sequence[Buffer], length: int) -> ShortBody | None:
    """Returns a frame without its buffers that are in shared memory; None: none is."""
    if length < shared_memory.SMALLEST:
        return None
    parts: list[bytes] = []
    rest: list[Buffer] = []
    position = 0
    for buffer in buffers:
        nbytes = len(buffer)
        file = None
        if nbytes >= shared_memory.SMALLEST and len(parts) < _PARTS and rest:
            file = shared_memory.file_at(buffer)
        if file is None:
            rest.append(buffer)
        else:
            parts.append(b"%d:%d:0:%d:%d" % (file.number, file.inode, position, nbytes))
            length -= nbytes
        position += nbytes
    return ShortBody(b"\r\nTeletape-Frame-Memory: " + b",".join(parts), rest, length) if parts else None


class Room:
    """Room for one answer. Until that is here, or if it never comes, a server may write into it.

    Args:
        array: What `shared_memory.empty` has returned.

    Attributes:
        line: The header that names it.
    """

    def __init__(self, array: Any) -> None:
        self._array, self._file = array, shared_memory.file_of(array)
        self._file.lost = True
        self.line = b"\r\nTeletape-Answer-Memory: %d:%d:%d" % (self._file.number, self._file.inode, array.nbytes)

    def answered(self, response: Response) -> Response:
        """Returns the response to the request that named the room, with the answer as its body if that is there.

        Raises:
            httpx.RemoteProtocolError: It says that more is there than there is room for.
        """
        self._file.lost = False
        if response.memory is None:
            return response
        if response.memory > self._array.nbytes:
            raise httpx.RemoteProtocolError(f"an answer of {response.memory} bytes in memory of {self._array.nbytes}")
        return response._replace(body=self._array.data[: response.memory].toreadonly())


def room_for(n: int) -> Room | None:
    """Returns room for an answer with tensors of n bytes; None: it comes in the body."""
    array = None if n < shared_memory.SMALLEST else shared_memory.empty(n + _BESIDES)
    return None if array is None else Room(array)
