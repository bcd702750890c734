"""A second client of a session on a server: it sends tensors while the commands of the first one run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from teletape.core.sessions.sending.batch_buffer import Name
from teletape.core.sessions.sending.channel import Channel
from teletape_engine import commands
from teletape_engine.arrays import HostArray

_CONTEXT = 0  #: No tape records constants, in any context.


class Uploader:
    """Sends tensors to a session over a separate connection. Any thread may use it.

    Args:
        channel: The channel of the session's first client, to which the tensors belong after they are sent.

    Raises:
        TeletapeError: The session has ended, or the server does not answer.
    """

    def __init__(self, channel: Channel) -> None:
        self._lock = Lock()
        self._released = channel.buffer.released
        self._channel = Channel(channel.http.another(device=None, lazy=True, session=channel.session, dedicated=False))
        self._channel.call_sites = False

    def send(self, arrays: Sequence[HostArray]) -> list[Name]:
        """Sends arrays in one batch, waits until the server has them, and returns the names of their tensors.

        The first client releases a tensor after the last reference to its name is gone, and after the commands that use
        it.

        Raises:
            TeletapeError: The session has ended or has no room, or the server does not answer.
        """
        channel, ids = self._channel, [self._channel.next_id() for _ in arrays]
        try:
            with self._lock:
                for id, array in zip(ids, arrays, strict=True):
                    channel.emit(_CONTEXT, commands.Constant(id, array), array.nbytes)
                channel.deliver()
        except BaseException:
            channel.buffer.released.extend(ids)
            raise
        return [Name(id, self._released) for id in ids]

    def leave(self) -> None:
        """Ends this client, and leaves the session to the first one. It never waits, even during an upload."""
        self._channel.leave()
