"""Request bodies that count: bytes for their owner and for the server, and a place among a session's requests."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from teletape_server.hosts.protocols import BodyBuffer, Host, Running
from teletape_server.problems import Problem, overloaded
from teletape_server.sessions.quotas import Quota

_MOST_MAPPED: Final = 64 << 20  # bytes of a body that stay mapped while the rest of it comes


class Admission:
    """Bytes of a body that count for its owner, and for the server, until `close`.

    Args:
        counts: Bytes by owner; None is all owners.
        owner: Whose body it is.
        length: Its bytes.
    """

    __slots__ = ("_counts", "_length", "_owner")

    def __init__(self, counts: Counter[str | None], owner: str, length: int) -> None:
        self._counts, self._owner, self._length = counts, owner, length
        counts[owner] += length
        counts[None] += length

    def __enter__(self) -> Admission:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the count."""
        self._counts[self._owner] -= self._length
        self._counts[None] -= self._length
        self._length = 0


class _Entry(Protocol):
    """What a body needs of its session: owner, host, and the number of requests whose body is being received."""

    owner: str
    receiving: int

    @property
    def awake_host(self) -> Host:
        """The host."""


class CountedBody:
    """Implements `BodyBuffer` with the host's own buffer; its bytes count for the owner until the answer.

    Args:
        entry: The session that receives the body.
        host: Its host.
        buffer: The host's buffer.
        admission: The count of the body's bytes.
        has_come: Called once when all of it has come, or no more of it will.

    Attributes:
        view: The memory, writable.
    """

    def __init__(
        self, entry: _Entry, host: Host, buffer: BodyBuffer, admission: Admission, has_come: Callable[[], None]
    ) -> None:
        self.view = buffer.view
        self._entry, self._host, self._buffer, self._admission = entry, host, buffer, admission
        self._has_come = has_come
        self._mapped_from = 0
        entry.receiving += 1

    def write(self, position: int, part: bytes) -> None:
        """Writes a part of the body where it belongs.

        Parts come in order. Of a large body, those that were written no longer count as this process's memory: it
        would be the first one that the kernel ends if the machine's memory runs out.
        """
        end = position + len(part)
        self.view[position:end] = part
        if end - self._mapped_from >= _MOST_MAPPED:
            self._buffer.let_go(self._mapped_from, end)
            self._mapped_from = end

    def for_host(self, host: Host) -> BodyBuffer:
        """Returns the buffer of the host that the body is submitted to: a copy, if another one received it.

        Raises:
            HostGone: The host has ended.
            Problem: overloaded, resource_exhausted.
        """
        if host is not self._host:
            buffer = _buffer_of(host, len(self.view))
            buffer.view[:] = self.view
            self._buffer.discard()
            self._host, self._buffer, self.view = host, buffer, buffer.view
        return self._buffer

    def submitted(self, running: Running) -> None:
        """Counts the bytes until the request is answered."""
        self._has_come()
        self._entry.receiving -= 1
        running.reply.add_done_callback(lambda _: self._admission.close())

    def discard(self) -> None:
        """Frees the memory of a request that will not be submitted."""
        self._has_come()
        self._entry.receiving -= 1
        self._admission.close()
        self._buffer.discard()


MOST_EARLY: Final = 1 << 20  #: Bytes of a body that this process keeps until its request has a session.


class EarlyBody:
    """A small body that this process keeps until its request has a session.

    Args:
        length: Its bytes.
        admission: The count of the body's bytes.

    Attributes:
        view: The memory, writable.
    """

    def __init__(self, length: int, admission: Admission) -> None:
        self.view = memoryview(bytearray(length))
        self.discard = admission.close  # a session's memory counts in its place, or the request is over

    def write(self, position: int, data: bytes) -> None:
        """Writes a part of the body."""
        self.view[position : position + len(data)] = data


class Bodies:
    """The bodies that are under way.

    Args:
        quota: How many bytes they may have.
        admit: Counts a body in the machine's memory; see `Places.admit_body`.

    Attributes:
        counts: Their bytes by owner; None is all owners.
    """

    def __init__(self, quota: Quota, admit: Callable[[int], Callable[[], None]]) -> None:
        self.counts: Counter[str | None] = Counter()
        self._quota, self._admit = quota, admit

    def admit(self, owner: str, length: int) -> Admission:
        """Counts a body of an owner before any of it is received; closing the admission ends that.

        Raises:
            Problem: busy, resource_exhausted.
        """
        self._quota.body(length, self.counts[owner], self.counts[None])
        return Admission(self.counts, owner, length)

    def buffer(self, entry: _Entry, length: int) -> CountedBody:
        """Returns memory of a session's host for a body, to be submitted or discarded.

        Raises:
            Problem: busy, resource_exhausted, overloaded.
            HostGone: The host has ended.
        """
        self._quota.body(length, self.counts[entry.owner], self.counts[None])
        host, has_come = entry.awake_host, self._admit(length)
        try:
            buffer = _buffer_of(host, length)
        except BaseException:
            has_come()
            raise
        return CountedBody(entry, host, buffer, Admission(self.counts, entry.owner, length), has_come)


def _buffer_of(host: Host, length: int) -> BodyBuffer:
    try:
        return host.body_buffer(length)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise overloaded(f"there is no file descriptor left for the body ({error})") from error
        raise Problem("resource_exhausted", f"too little memory for a body of {length} bytes: {error}") from error
