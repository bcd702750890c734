"""The process of a GPU: takes sessions from the server, and runs each in a thread of its own; and what finds GPUs.

An error after which CUDA refuses everything ends the process; before that each session says to the server why.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NoReturn

from teletape_engine import arrays
from teletape_engine.plans.run.c.loaded import WHY_NOT
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.confinement import User, confine, name_kernel_folder
from teletape_server.ipc.control import Sockets, Watcher, end_process
from teletape_server.ipc.rights import Right
from teletape_server.worker.main import Worker
from teletape_server.worker.turns import BROKEN_STATUS, Process, Turns

SEAT_FILES: Final = 3  #: What a session brings: its two sockets, and a pipe that is closed when it has ended.


def devices(sockets: Sockets) -> None:
    """Sends this machine's devices, and ends: only this short-lived process loads a GPU's driver."""
    name_kernel_folder()
    channel = Channel(sockets.requests)
    cpu, *others = arrays.devices()
    channel.transmit(*channel.encode([cpu._replace(interpreted=WHY_NOT), *others]))


class SessionOver(BaseException):
    """The server has ended the session: no error of a request, so that nothing takes it for one."""


def main(sockets: Sockets, user: User | None = None) -> None:
    """Runs the process until the server closes its socket.

    Messages in: ("session",) with the files of a seat: the sockets for requests and control, and the pipe's end.
    """
    confine(user)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    Watcher(sockets.control).start()
    channel, shared = Channel(sockets.requests, takes_files=True), SharedProcess()
    while (message := channel.receive()) is not None:
        del message
        files, channel.files = channel.files, []
        if len(files) < SEAT_FILES:  # no descriptor is left: the server sees the pipe closed
            for file in files:
                os.close(file)
            continue
        threading.Thread(target=shared.run_session, args=tuple(files), name="session", daemon=True).start()
    end_process()


class SharedProcess(Process):
    """The process that several sessions share."""

    is_shared = True

    def __init__(self) -> None:
        self.turns = Turns()
        self._workers: set[Worker] = set()

    def run_session(self, requests: int, control: int, pipe: int) -> None:
        """Runs one session in this thread, until the server ends it."""
        watcher = Watcher(socket.socket(fileno=control))
        watcher.on_end = watcher.cancel_all
        watcher.start()
        channel = Channel(socket.socket(fileno=requests), takes_files=True)
        worker = Worker(channel, watcher, self)
        self._workers.add(worker)
        try:
            with contextlib.suppress(SessionOver):
                worker.serve()
        finally:
            self._workers.discard(worker)
            worker.close()
            channel.close()
            del worker, channel  # its arrays are freed before the server learns of its end
            gc.collect()
            os.close(pipe)

    def turn(self, right: Right, cancelled: Callable[[], bool]) -> AbstractContextManager[None]:
        """As `Process.turn`: one session computes at a time."""
        return self.turns.turn(right, cancelled)

    def give_way(self) -> float:
        """As `Process.give_way`."""
        return self.turns.give_way()

    def leave(self) -> NoReturn:
        """As `Process.leave`: the others go on."""
        raise SessionOver

    def break_down(self, why: str) -> NoReturn:
        """As `Process.break_down`: all sessions end."""
        for worker in [*self._workers]:
            worker.answers.say_broken(why)
        os._exit(BROKEN_STATUS)
