"""What a worker process does not have: the server's keys, rights that no session needs, memory beyond its limits.

And what no process has of another one: a look into its memory, its files and its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import resource
import signal
import stat
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import PurePath
from typing import Final, NamedTuple

LEAST_FREE: Final = 256 << 20  #: Bytes of the machine's memory that are reserved for no session.
_SIGNAL_AT_END: Final = 1  # PR_SET_PDEATHSIG
_DUMPABLE: Final = 4  # PR_SET_DUMPABLE
_CHILD_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER
_NO_NEW_PRIVS: Final = 38  # PR_SET_NO_NEW_PRIVS
_GIVES_WAY: Final = 5  # the nice value of a worker: one that computes gets a third of what the server could
_FIRST_TO_END: Final = 1000  # of at most 1000: more than the server has, however much memory that takes
_KERNEL_FOLDER: Final = "CUPY_CACHE_DIR"
_OPEN_FILES: Final = 1024
_INTERPRETER: Final = 512 << 20  # for the interpreter, scipy, the threads' stacks, and temporary objects

#: Environment variables that a server process keeps, by the beginning of their names: those that Python, its libraries
#: and GPUs read, and nothing that a secret could be in.
_KEPT: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_", "TZ", "TMPDIR", "XDG_CACHE_HOME", "PYTHON", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_", "CUDA_", "NVIDIA_", "CUPY_", "OPENBLAS_", "OMP_", "MKL_"),
    *("NPY_", "NUMEXPR_", "FORWARDED_ALLOW_IPS", "COVERAGE_", "TELETAPE_PLANS"),
)


class User(NamedTuple):
    """The user that worker processes run as."""

    uid: int
    gid: int


def scrub(environment: MutableMapping[str, str]) -> None:
    """Removes from an environment what no worker process needs; to be called before the first of them starts."""
    for name in list(environment):
        if not name.startswith(_KEPT):
            del environment[name]


def confine(user: User | None = None) -> None:
    """Gives up rights for good: no set-uid program works, no core is dumped, and the process has the rights of `user`.

    It gives way to the server, for which all keys wait: a hundred processes that compute would leave that too little.
    The number of processes is not limited: the system counts those of a user, and so those of all sessions.

    Raises:
        OSError: The system refuses; with a user, because this process does not run as root.
    """
    _control(_NO_NEW_PRIVS, 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    if user is not None:
        os.setgroups([])
        os.setgid(user.gid)
        os.setuid(user.uid)
    # A process that is stopped for its share of the CPU goes on when its parent ends: the forkserver, which ends with
    # the server, or the server itself if the forkserver has ended before.
    _control(_SIGNAL_AT_END, signal.SIGCONT)
    os.nice(max(_GIVES_WAY - os.nice(0), 0))


def adopt() -> None:
    """Makes this process the parent of each process below it whose own parent ends."""
    _control(_CHILD_SUBREAPER, 1)


def hide() -> None:
    """Hides this process from the others of its user, for good: only root reads its memory, its files, its environment.

    It dumps no core. What it starts with fork inherits this; what it executes does not. Its own files in /proc are
    root's from now on: it can still read most of them, and change none.
    """
    _control(_DUMPABLE, 0)


def be_the_first_to_end() -> None:
    """Asks the system to end this process before others if memory runs out, if it offers that.

    What it starts inherits this. It has to come before `hide`.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(_FIRST_TO_END))


def _control(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def name_kernel_folder(environment: MutableMapping[str, str] = os.environ) -> None:
    """Names a folder for the kernels that CuPy compiles, which the next processes find there; before CuPy is imported.

    A folder that is named already stays. CuPy's own choice is in the home, which a process may not be able to write
    into; then it is one of this user's in the folder for temporary files. Without CuPy, or where none can be made, none
    is named.

    Args:
        environment: In which CuPy looks for CUPY_CACHE_DIR.
    """
    if _KERNEL_FOLDER in environment or importlib.util.find_spec("cupy") is None:
        return
    if not _is_writable(os.path.expanduser("~/.cupy/kernel_cache")):
        with contextlib.suppress(OSError):
            environment[_KERNEL_FOLDER] = _temporary_kernel_folder()


def _is_writable(folder: str) -> bool:
    """Whether this process can write into a folder, or make it if there is none."""
    folder = os.path.abspath(folder)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _temporary_kernel_folder() -> str:
    """The folder of this user's in the one for temporary files; one of this process's if others can write into that.

    Raises:
        OSError: None can be made.
    """
    folder = os.path.join(tempfile.gettempdir(), f"cupy-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    facts = os.lstat(folder)
    is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o022
    # Another user could have put kernels into it.
    return folder if is_own else tempfile.mkdtemp(prefix="cupy-")


def limit_memory(memory_limit: int, max_body: int) -> None:
    """Caps this process's own memory, and its address space, which has the bodies of requests and answers too.

    Args:
        memory_limit: Bytes that the session may take.
        max_body: Bytes of the largest request: reading one as JSON takes memory in addition.
    """
    own, pages = _own_memory()
    _limit(resource.RLIMIT_DATA, own + memory_limit + max_body + _INTERPRETER)
    _limit(resource.RLIMIT_AS, pages + 2 * memory_limit + 3 * max_body + _INTERPRETER)


def machine_memory(groups: str = "/proc/self/cgroup", cgroups: str = "/sys/fs/cgroup") -> int:
    """Returns the bytes of memory that this process and all it starts may take: the machine's, or its container's.

    Args:
        groups: The file with the control groups of this process.
        cgroups: The folder with all control groups.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return min(limits + [limit for limit, _ in _limited_groups(groups, cgroups)])


def free_memory(
    facts: str = "/proc/meminfo", groups: str = "/proc/self/cgroup", cgroups: str = "/sys/fs/cgroup"
) -> int:
    """Returns the bytes of memory that a new process could take: of the machine's, and of its container's.

    Args:
        facts: The file with the machine's numbers; if it says nothing, nothing is known to be short.
        groups: The file with the control groups of this process.
        cgroups: The folder with all control groups.
    """
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _text(facts), re.M)
    free = [int(match[1]) << 10 if match else sys.maxsize]
    for limit, folder in _limited_groups(groups, cgroups):
        used = _text(f"{folder}/memory.current") or _text(f"{folder}/memory.usage_in_bytes") or "0"
        files = re.search(r"^(?:total_)?inactive_file (\d+)$", _text(f"{folder}/memory.stat"), re.M)
        free.append(limit - int(used) + (int(files[1]) if files else 0))
    return max(min(free), 0)


def _limited_groups(groups: str, cgroups: str) -> list[tuple[int, str]]:
    """Returns the control groups of this process that limit memory: how many bytes each allows, and its folder."""
    limited = []
    for controllers, path in re.findall(r"^\d+:([^:]*):(/.*)$", _text(groups), re.M):
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = ("/memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        for group in (PurePath(path), *PurePath(path).parents):
            folder = f"{cgroups}{root}{group}"
            text = _text(f"{folder}/{name}")
            limited += [(int(text), folder)] if text.isdecimal() else []
    return limited


def _text(path: str) -> str:
    """Returns what a file says; empty: there is none."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def _own_memory() -> tuple[int, int]:
    """Returns the bytes of this process's private writable memory, and of its address space."""
    with open("/proc/self/statm", "rb") as file:
        size, *_, own, _ = (int(pages) * resource.getpagesize() for pages in file.read().split())
    return own, size


def _limit(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))
