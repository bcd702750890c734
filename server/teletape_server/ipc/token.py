"""The right to use a connection that two processes have: either side can take it, and never waits for the other."""

from __future__ import annotations

import os


class Token:
    """One right, which one side at most has; whoever has it reads from the connection, or writes to it.

    It is an eventfd, so that taking it needs nothing of the other process, which may be stopped or gone.

    Args:
        fd: The eventfd, which belongs to this object.
    """

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def new(cls) -> Token:
        """Returns a token that can be taken.

        Raises:
            OSError: There are too many open files.
        """
        return cls(os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    def duplicate(self) -> int:
        """Returns a file descriptor for the other process.

        Raises:
            OSError: There are too many open files.
        """
        return os.dup(self._fd)

    def take(self) -> bool:
        """Takes the right; returns False if the other side has it."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return False
        return True

    def put(self) -> None:
        """Puts the right back, which this side has."""
        os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """Closes this side's file descriptor."""
        os.close(self._fd)
