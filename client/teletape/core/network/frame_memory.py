"""Frames and answers with a part in memory that this process and a server on the same machine share.

A header of the request names the parts of the frame that are not in the body, and another one the room for the answer.
docs/protocol.md has their form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import httpx

from teletape.core.network import shared_memory
from teletape.core.network.frame_socket import Buffer, Response

_PARTS: Final = 64  #: The largest number in one frame; the server takes no more.
_BESIDES: Final = 64 << 10  #: The approximate bytes of an answer in addition to its tensors.


class ShortBody(NamedTuple):
    """The rest of a frame, without the parts in shared memory, which a header names.

    Attributes:
        line: The header.
        buffers: The body.
        length: The bytes of the body.
    """

    line: bytes
    buffers: list[Buffer]
    length: int


def without_shared(buffers: Sequence[Buffer], length: int) -> ShortBody | None:
    """Returns a frame without its buffers in shared memory; None: no buffer is there."""
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
    """Shared memory for one answer. A server may write into it until the answer is here, or for ever if it never comes.

    Args:
        array: The result of `shared_memory.empty`.

    Attributes:
        line: The header that names it.
    """

    def __init__(self, array: Any) -> None:
        self._array, self._file = array, shared_memory.file_of(array)
        self._file.lost = True
        self.line = b"\r\nTeletape-Answer-Memory: %d:%d:%d" % (self._file.number, self._file.inode, array.nbytes)

    def answered(self, response: Response) -> Response:
        """Returns the response with the answer in shared memory, if there is one, as its body.

        Raises:
            httpx.RemoteProtocolError: The response claims more bytes than the memory has.
        """
        self._file.lost = False
        if response.memory is None:
            return response
        if response.memory > self._array.nbytes:
            raise httpx.RemoteProtocolError(f"an answer of {response.memory} bytes in memory of {self._array.nbytes}")
        return response._replace(body=self._array.data[: response.memory].toreadonly())


def room_for(n: int) -> Room | None:
    """Returns memory for an answer with tensors of n bytes; None: the answer comes in the body."""
    array = None if n < shared_memory.SMALLEST else shared_memory.empty(n + _BESIDES)
    return None if array is None else Room(array)
