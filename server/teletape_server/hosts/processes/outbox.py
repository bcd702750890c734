"""Sends messages to a session's process: in their order, as soon as its socket takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from teletape_server.ipc.channel import Channel, close_files, is_full
from teletape_server.ipc.shared_memory import MessageBody

_PAUSE: Final = 0.05  # seconds until sending is tried again if too many file descriptors are on their way


class Outbox:
    """Sends messages to a process.

    Args:
        channel: The connection to it.

    Attributes:
        is_closed: Whether nothing is sent any more.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self.is_closed = False

    def send(self, head: Any, body: MessageBody | None = None) -> None:
        """Sends a message."""
        self._add(self._channel.encode(head, body))

    def send_files(self, head: Any, files: list[int]) -> None:
        """Sends a message with file descriptors, and closes them here."""
        if self.is_closed:
            close_files(files)
            return
        data, _ = self._channel.encode(head)
        self._add((data, files))

    def close(self) -> None:
        """Drops what has not been sent, since the process has ended or is about to."""
        self.is_closed = True
        self._loop.remove_writer(self._channel.sock)
        self._drop()

    def _add(self, message: tuple[bytes, list[int]]) -> None:
        self._unsent.append(message)
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Sends what waits, as far as possible now, and arranges for the rest."""
        try:
            while self._unsent:
                self._channel.transmit(*self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._channel.sock, self._on_writable)
        except OSError as error:
            if is_full(error):  # bodies on their way to all processes: these take them one by one
                self._loop.call_later(_PAUSE, self._flush)
            else:  # the process has ended; who reads its messages learns of it and fails what waits
                self._unsent.popleft()
                self._drop()

    def _drop(self) -> None:
        while self._unsent:
            close_files(self._unsent.popleft()[1])

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._channel.sock)
        self._flush()
