"""Which session is the program's: `current`, `use`, `connect`, and the traces that a thread is in."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from teletape import environment
from teletape.sessions.local import LocalSession
from teletape.sessions.session import Session

T = TypeVar("T")

_current: Session | None = None
_lock = threading.Lock()
_running: set[object] = set()  # one for each trace that runs: while there is none, `current` does not look for one
#: The trace that runs in this context, and how many are around it.
_trace: contextvars.ContextVar[tuple[Session | None, int]] = contextvars.ContextVar("trace", default=(None, 0))


def current() -> Session:
    """Returns the program's session, or this thread's trace; the first use opens a session from the environment."""
    if _running:
        tracing = _trace.get()[0]
        if tracing is not None:
            return tracing
    session = _current
    return session if session is not None else _first()


def _first() -> Session:
    with _lock:
        if _current is not None:
            return _current
        url = environment.url()
        session = LocalSession(environment.device()) if url is None else _remote(url, None, None, None, False)
        session.offload_loops = environment.offload_loops()
        return use(session)


def use(session: Session) -> Session:
    """Makes `session` the program's."""
    global _current
    _current = session
    return session


def connect(
    url: str | None = None,
    api_key: str | None = None,
    device: str | None = None,
    lazy: bool | None = None,
    local: bool = False,
    offload_loops: bool | None = None,
    allow_insecure: bool = False,
) -> Session:
    """Chooses where the program's tensors live from now on. Existing tensors stay with their session.

    Args:
        url: A server's address, as `https://gpu-box:8470`, or `unix:///path` for a Unix socket on this machine. None:
            TELETAPE_URL, and without it this process.
        api_key: Your key for the server. None: TELETAPE_API_KEY.
        device: cpu, gpu or gpu:N; None: the server's default. In this process: cpu or gpu.
        lazy: Whether commands wait until a value is read. None: yes, unless TELETAPE_LAZY is 0. In this process every
            op runs at once.
        local: Whether to stay in this process even if TELETAPE_URL is set.
        offload_loops: Whether a long loop whose body is a Python function runs as one command on the server. None: as
            TELETAPE_OFFLOAD_LOOPS says, and without it only if its functions are known to compute and do nothing else.
            True: also other loops, whose functions are then called once and not in each iteration; one that cannot run
            so raises. False: never. In this process there is nothing to offload.
        allow_insecure: Whether the key may be sent over plain HTTP to another machine, for anyone on the way to read;
            also if TELETAPE_ALLOW_INSECURE is 1.

    Returns:
        The session; a `with` statement closes it.

    Raises:
        teletape.errors.ConnectionFailed: No server answers at that address.
        teletape.errors.AuthenticationError: The key is missing or wrong.
        teletape.errors.InvalidArgumentError: The key would be sent over plain HTTP to another machine.
    """
    url = None if local else url or environment.url()
    session = LocalSession(device) if url is None else _remote(url, api_key, device, lazy, allow_insecure)
    session.offload_loops = environment.offload_loops() if offload_loops is None else offload_loops
    return use(session)


def _remote(url: str, api_key: str | None, device: str | None, lazy: bool | None, allow_insecure: bool) -> Session:
    from teletape.sessions.remote import RemoteSession  # HTTP takes 0.1 s to import: programs without a server save it

    lazy = environment.lazy() if lazy is None else lazy
    key, allow_insecure = api_key or environment.api_key(), allow_insecure or environment.allow_insecure()
    return RemoteSession(url, key, device=device, lazy=lazy, allow_insecure=allow_insecure)


def inside(session: Session | None, function: Callable[[], T]) -> T:
    """Runs a function with `session` as this thread's current one; None: with the program's session.

    Python itself leaves the context at the end of `run`, so that no interrupt leaves a trace current.
    """
    token = object()
    try:
        _running.add(token)
        return contextvars.copy_context().run(_inside, session, function)
    finally:
        _running.discard(token)  # interrupted here it stays, and costs time only


def _inside(session: Session | None, function: Callable[[], T]) -> T:
    _trace.set((session, within() + (session is not None)))
    return function()


@contextmanager
def outside_traces() -> Iterator[None]:
    """A block in which the program's session is this thread's current one, also in a trace."""
    before = _trace.get()
    _trace.set((None, before[1]))
    try:
        yield
    finally:
        _trace.set(before)


def within() -> int:
    """Returns how many traces this thread is in; those that a block of `outside_traces` has left count too."""
    return _trace.get()[1]
