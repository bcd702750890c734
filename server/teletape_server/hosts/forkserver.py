"""Starts processes from a forkserver that has the worker's modules loaded, each with one end of a socket pair.

The forkserver and its processes have the environment that the server has when the first of them starts: without keys.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any, Final

from teletape_server.worker import main as worker_process
from teletape_server.worker.channel import Channel

_DEVICES_SECONDS: Final = 60.0  # a GPU's driver can take long to start

#: Threads of a worker's linear algebra. Two workers with a thread for each core slow each other down 60 times.
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

#: Variables with keys: removed even where the server is a part of another program.
_SECRET: Final = ("TELETAPE_API_KEYS", "TELETAPE_API_KEY")

_SPEED: Final = "teletape_server.worker.speed"  # measures when it is imported, which this process must not do

_fork_lock = threading.Lock()


def start_process(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, socket.socket]:
    """Starts a process that runs `target` on one end of a socket pair; returns the process and the other end.

    Args:
        target: What the process runs; its first argument is its end.
        arguments: Further arguments of it.
    """
    for name in _SECRET:
        os.environ.pop(name, None)
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")  # the forkserver inherits it when it starts
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker_process.__name__, _SPEED])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, _fork_lock:
        process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
    return process, ours


def present_devices() -> list[str]:
    """Returns this machine's devices, found by a process of its own, so that this one never loads a GPU's driver."""
    process, sock = start_process(worker_process.devices)
    sock.settimeout(_DEVICES_SECONDS)
    channel = Channel(sock)
    try:
        message = channel.receive()
    except TimeoutError:
        message = None
    finally:
        channel.close()
        process.kill()
        process.join()
    return ["cpu"] if message is None else list(message[0])
