"""Processes that are forked from one that has imported the server and the SDK, so that they need not import them.

Most of the time that `teletape serve` takes to start is imports: its own, and those of its forkserver. All else is as
in a process that starts in the usual way: arguments, environment, files, signals, status. Tests that look at imports,
at what processes can see of each other, or at the command itself start the usual way, with `subprocess`.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import json
import multiprocessing.forkserver
import multiprocessing.util
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

#: What `teletape serve`, its forkserver and programs import, but for what only the forkserver may: hosts.inherited.
MODULES = (
    *("teletape_server.app", "teletape_server.server", "teletape_server.logs"),
    *("teletape_server.administration.running_server", "teletape_server.hosts.processes.forkserver"),
    *("teletape_server.worker.main", "teletape_server.worker.speed", "uvicorn.lifespan.on", "uvloop", "numpy", "httpx"),
    *("teletape", "teletape.core.sessions.local", "teletape.core.sessions.remote"),
)
#: How variables begin that are read by the interpreter, or when a module is imported.
READ_EARLY = ("TELETAPE_PLANS", "PYTHONWARNINGS", "NPY_", "OPENBLAS_", "LD_")
REQUEST_BYTES = 1 << 18


class Prepared(subprocess.Popen[str]):
    """`subprocess.Popen` for `[sys.executable, "-P", "-m" or "-c", ...]`; text comes from its pipes.

    Raises:
        ValueError: The command is another one, or has variables that a prepared process would not see.
    """

    _lock = threading.Lock()
    _requests: ClassVar[socket.socket | None] = None
    _environment: ClassVar[dict[str, str]] = {}

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> None:
        if [*command[:2]] != [sys.executable, "-P"] or command[2] not in ("-m", "-c"):
            raise ValueError(f"a prepared process runs python -P with -m or -c, found {command}")
        super().__init__(command, env=dict(os.environ if env is None else env), text=True, **options)

    @classmethod
    def _connected(cls) -> socket.socket:
        """The socket that takes requests: of the one process for all of a test run, which the first request starts."""
        with cls._lock:
            if cls._requests is None:
                cls._environment = {name: os.environ[name] for name in os.environ if not name.startswith("TELETAPE_")}
                address = f"\0teletape-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
                requests = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                while requests.connect_ex(address):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                        if not bound(listener, address):
                            time.sleep(0.01)  # another process has just bound it
                            continue
                        listener.listen()
                        listener.set_inheritable(True)
                        command = [sys.executable, "-P", __file__, str(listener.fileno())]
                        os.posix_spawn(sys.executable, command, cls._environment)
                cls._requests = requests
            return cls._requests

    def _execute_child(
        self, args: Any, _executable: Any, preexec_fn: Any, _close: Any, pass_fds: Any, cwd: Any, env: Any, *others: Any
    ) -> None:
        """Takes the place of Popen's own, and so its arguments."""
        requests, ends = self._connected(), others[3:9]
        changed = [name for name in {*env, *self._environment} if env.get(name) != self._environment.get(name)]
        if early := [name for name in changed if name.startswith(READ_EARLY)]:
            raise ValueError(f"a prepared process does not see {', '.join(early)}: start it with subprocess.Popen")
        folders = env.get("PYTHONPATH", "").split(os.pathsep)
        if any(folder and os.path.exists(os.path.join(folder, "sitecustomize.py")) for folder in folders):
            raise ValueError("a prepared process runs no sitecustomize.py: start it with subprocess.Popen")
        if preexec_fn or pass_fds or others[-2]:
            raise ValueError("a prepared process takes no preexec_fn, pass_fds and start_new_session")
        request = {"command": [str(each) for each in args[2:]], "cwd": os.fspath(cwd or os.getcwd()), "env": env}
        standard = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        self._status, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(requests, [json.dumps(request).encode()], [*standard, theirs.fileno()])
        [self.pid] = struct.unpack("i", self._status.recv(4))
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]  # Popen's own

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """As os.waitpid; Popen's own waits for a child of this process."""
        if flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        with self._status:
            return self.pid, struct.unpack("i", self._status.recv(4))[0]

    def _internal_poll(self, *_: Any, **__: Any) -> Any:
        lock = self._waitpid_lock  # type: ignore[attr-defined]  # the same
        if self.returncode is None and lock.acquire(blocking=False):
            with contextlib.ExitStack() as stack:
                stack.callback(lock.release)
                known = self.returncode is not None  # another thread may have waited
                pid, status = (0, 0) if known else self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]  # the same
        return self.returncode


def bound(listener: socket.socket, address: str) -> bool:
    """Binds a socket, if no other process has bound one to that address."""
    try:
        listener.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def run(command: Sequence[str], *, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with a prepared process, whose output is read; after `timeout` seconds it is killed."""
    with Prepared(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


# -------------------------------------------------------------------------------------------- in the process that forks
def prepare() -> None:
    """Imports what processes need, and makes what a server makes once in its process: its OpenAPI document."""
    for module in MODULES:
        importlib.import_module(module)
    from teletape_server.app import create_app
    from teletape_server.http.openapi.document import text
    from teletape_server.settings import Settings

    text(create_app(Settings()))
    gc.collect()
    gc.freeze()


def requested(listener: socket.socket) -> dict[str, Any]:
    """Starts a process for each request, and says how it ends; returns the request in the process that is for it.

    It ends when no process that asks is there any more.
    """
    running: dict[int, socket.socket] = {}
    askers: list[socket.socket] = [listener.accept()[0]]
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        sources: list[Any] = [listener, *askers, woken]
        ready = select.select(sources, [], [])[0]
        if listener in ready:
            askers.append(listener.accept()[0])
        if woken in ready:
            os.read(woken, 1 << 10)
            for pid, status in ended():
                with running.pop(pid) as asker, contextlib.suppress(BrokenPipeError):
                    asker.send(struct.pack("i", status))
        for requests in [source for source in askers if source in ready]:
            data, files, *_ = socket.recv_fds(requests, REQUEST_BYTES, 4)
            if not data:
                askers.remove(requests)
                requests.close()
                if not askers:
                    sys.exit()
                continue
            pid = os.fork()
            asker = socket.socket(fileno=files.pop())
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for number, file in enumerate(files):
                    os.dup2(file, number)
                for file in (*files, woken, wake):
                    os.close(file)
                for each in (listener, *askers, asker, *running.values()):
                    each.close()
                request: dict[str, Any] = json.loads(data)
                return request
            running[pid] = asker
            asker.send(struct.pack("i", pid))
            for file in files:
                os.close(file)


def ended() -> Iterator[tuple[int, int]]:
    """The processes that have ended, and their statuses."""
    with contextlib.suppress(ChildProcessError):
        while (ending := os.waitpid(-1, os.WNOHANG))[0]:
            yield ending


def start(request: dict[str, Any]) -> None:
    """Runs the module or the code of a request in this process."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in folders if folder and folder not in sys.path]
    multiprocessing.util.spawnv_passfds = forkserver  # type: ignore[assignment]  # it is called with texts
    kind, what, *arguments = request["command"]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = [kind, *arguments]
    if kind == "-c":
        exec(compile(what, "<string>", "exec"), main.__dict__)  # noqa: S102  # as python -c
    else:
        runpy._run_module_as_main(what)  # type: ignore[attr-defined]  # what python -m calls


spawned: Any = multiprocessing.util.spawnv_passfds


def forkserver(path: str, arguments: list[str], files: Sequence[int]) -> int:
    """As multiprocessing.util.spawnv_passfds, and the forkserver is forked: it has its modules."""
    if "multiprocessing.forkserver" not in arguments[-1] or threading.active_count() > 1:
        process: int = spawned(path, arguments, files)
        return process
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    try:
        for number in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]:
            if number not in files:
                with contextlib.suppress(OSError):  # that of the listing itself is closed
                    os.close(number)
        multiprocessing.forkserver._forkserver._lock = threading.Lock()  # type: ignore[attr-defined]  # it is locked
        exec(arguments[-1], {})  # noqa: S102  # as python -c
    finally:
        os._exit(0)


if __name__ == "__main__":
    prepare()
    start(requested(socket.socket(fileno=int(sys.argv[1]))))
