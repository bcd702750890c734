"""The server's side of a GPU's process: seats in it, which stand for a process where a session has one of its own."""

from __future__ import annotations

import contextlib
import os
from multiprocessing.process import BaseProcess

from teletape_server.ipc.channel import Channel, close_files, is_full
from teletape_server.ipc.control import Sockets, socket_pairs


class Seat:
    """One session's place in a GPU's process; as far as a host needs it, it is like a process.

    Args:
        process: The GPU's process.
        sentinel: The end of a pipe that becomes readable when the session has ended, or the process.

    Attributes:
        pid: The process id.
        sentinel: See above.
        shared: What all seats have: the process ends with all of them.
    """

    def __init__(self, shared: GpuProcess, sentinel: int) -> None:
        self.shared = shared
        self.pid = shared.process.pid
        self.sentinel = sentinel

    @property
    def exitcode(self) -> int | None:
        """The status of the process; 0 if it goes on without the session."""
        code = self.shared.process.exitcode
        return 0 if code is None else code

    def join(self, timeout: float | None = None) -> None:
        """Reads the status of the process, if it has ended with the session."""
        self.shared.process.join(timeout)

    def kill(self) -> None:
        """Ends the process, and so all its sessions: one of them does not stop."""
        self.shared.process.kill()

    def close(self) -> None:
        """Forgets the session, which has ended."""
        self.shared.seats.discard(self)
        os.close(self.sentinel)


class GpuProcess:
    """A process that computes on one GPU for several sessions.

    Args:
        process: The process.
        sockets: The connection to it.

    Attributes:
        process: See above.
        seats: The sessions that have not ended.
        idle_since: When its last session ended, on the caller's clock; None: it has sessions.
    """

    def __init__(self, process: BaseProcess, sockets: Sockets) -> None:
        self.process = process
        self.seats: set[Seat] = set()
        self.idle_since: float | None = None
        self._sockets = sockets
        self._channel = Channel(sockets.requests)

    def is_alive(self) -> bool:
        """Returns whether the process runs."""
        return self.process.is_alive()

    def seat(self) -> tuple[Seat, Sockets]:
        """Returns a new seat, and the server's ends of its sockets.

        Raises:
            OSError: The process has ended, or there are too many open files.
        """
        ours, theirs = socket_pairs()
        with contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            files = [sock.detach() for sock in theirs]
            try:
                sentinel, end = os.pipe()
            except OSError:
                close_files(files)
                raise
            undo.callback(os.close, sentinel)
            files.append(end)
            data, _ = self._channel.encode(("session",))
            try:
                self._channel.transmit(data, files)  # it closes them here
            except OSError as error:
                if is_full(error):
                    close_files(files)
                raise
            undo.pop_all()
        seat = Seat(self, sentinel)
        self.seats.add(seat)
        self.idle_since = None
        return seat, ours

    def end(self) -> None:
        """Closes the connection, after which the process ends by itself."""
        self._sockets.close()
        self._channel.close()

    def close(self) -> None:
        """Closes the files that show the end of the process; it and its sessions have ended."""
        self.process.close()
