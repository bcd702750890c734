"""The program's session: `current`, `use`, `connect`, and the traces that a thread is in."""

from __future__ import annotations

import contextvars
import random
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from teletape.core import environment
from teletape.core.network.options import ConnectOptions
from teletape.core.program.call_site import caller
from teletape.core.program.cells import cell_of
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.session import Session, block, entered
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.locks import ReentrantLock

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

_current: Session | None = None
_lock = ReentrantLock()
#: The program's session before each connected session.
_before: weakref.WeakKeyDictionary[Session, weakref.ref[Session]] = weakref.WeakKeyDictionary()
#: The notebook cell that connected last, with its arguments, and the session.
_of_cell: tuple[Any, weakref.ref[Session]] | None = None
#: The trace that runs in this context, and the number of outer ones.
_trace: contextvars.ContextVar[tuple[Session | None, int]] = contextvars.ContextVar("trace", default=(None, 0))


def current() -> Session:
    """Returns this thread's trace, the session of its `with` block, or the program's.

    The first use opens a session from the environment.
    """
    if entered:
        session = _trace.get()[0] or block.get()
        if session is not None:
            return session
    session = _current
    return session if session is not None else _first()


def opened() -> Session | None:
    """Returns the session in which ops would run now, or None if the first use will open one."""
    return current().home if _current is not None or block.get() is not None else None


def _first() -> Session:
    with _lock:
        if _current is not None:
            return _current
        url = environment.url()
        session = LocalSession(environment.device()) if url is None else _remote(ConnectOptions.of(url))
        session.offload_loops = environment.offload_loops()
        return opened() or use(session)  # a signal handler may have opened one meanwhile


def use(session: Session) -> Session:
    """Makes `session` the program's."""
    global _current
    _current = session
    if entered:
        block.set(None)  # the rest of this block computes in it
    return session


def _leave(session: Session) -> None:
    """Makes the previous session the program's again, if it is open; otherwise the next use opens one."""
    global _current
    with _lock:
        if _current is session:
            reference = _before.pop(session, None)
            before = None if reference is None else reference()
            _current = before if before is not None and before.closed is None else None


Session.left = staticmethod(_leave)


def connect(
    url: str | int | None = None,
    api_key: str | None = None,
    device: str | None = None,
    lazy: bool | None = None,
    local: bool = False,
    offload_loops: bool | None = None,
    allow_insecure: bool = False,
    session: str | None = None,
    default: bool = True,
    dedicated: bool = False,
    durability: Literal["none", "journal", "journal-sync"] | None = None,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    max_retries: int | None = None,
    verify: bool | str | ssl.SSLContext = True,
    cert: str | tuple[str, str] | tuple[str, str, str] | None = None,
    proxy: str | None = None,
    headers: Mapping[str, str] | None = None,
    http_client: httpx.Client | None = None,
) -> Session:
    """Connects to a server and makes the new session the program's. Existing tensors stay with their session.

    If a notebook cell connects, and runs again without a change, it gets the same session again, as long as that is the
    program's and has not ended.

    Args:
        url: A server's address, as `https://gpu-box:8470`, `gpu-box:8470`, a port of this machine, or `unix:///path`
            for a Unix socket on this machine; without a port `https://gpu-box` is port 443, `http://gpu-box` port 80,
            and `gpu-box` port 8470. None: TELETAPE_URL, and without it this process.
        api_key: Your key for the server. None: TELETAPE_API_KEY.
        device: cpu, gpu:N, gpu (any), or auto: a GPU if there is one, else the CPU; None: the server's default, in this
            process the CPU.
        lazy: Whether commands wait until a value is read. None: True, unless TELETAPE_LAZY is 0. In this process every
            op runs at once.
        local: Whether to stay in this process even if TELETAPE_URL is set.
        offload_loops: Whether a long loop whose body is a Python function runs as one command on the server. None: as
            TELETAPE_OFFLOAD_LOOPS says, and without it only if its functions are known to compute and do nothing else.
            True: also other loops, whose functions are then called once and not in each iteration; one that cannot run
            so raises. False: never. In this process there is nothing to offload.
        allow_insecure: Whether the key may be sent over plain HTTP to another machine, for anyone on the way to read;
            also if TELETAPE_ALLOW_INSECURE is 1.
        session: A name for the session on the server, or the id of one that is there. If there is one, the program
            joins it, as after the restart of a notebook: its `variables()` and `tensors()` are those that the former
            program made. A session with a name is not ended with the program: `close` ends it, and the server does when
            it has been idle for too long.
        default: Whether it becomes the program's session. False: the program computes in it only in a `with` block of
            the session or of its `as_default()`; so a program can use several servers.
        dedicated: Whether a new session on a server's GPU gets a process of its own, which no other session can end or
            delay. In this process it has one.
        durability: What of a new session outlives its process on a server with a folder for data: `none`; `journal`,
            all that was answered, after a power cut up to 50 ms less; or `journal-sync`, all that was answered. Give
            such a session a name, too: one without ends with the program. None: the server's default.
        timeout: Seconds that a read, and any other wait for the server, may take: then it raises
            DeadlineExceededError, and the server stops the work. None: as long as the server computes.
            `session.with_options(timeout=…)` sets another one for a block. In this process nothing is waited for.
        connect_timeout: Seconds in which a connection has to open and the server has to answer the first request. None:
            10.
        max_retries: How often a request is sent again that was not answered, or that the server was too busy for; the
            server does the work once all the same. None: as often as fits into a minute.
        verify: Whether the server's certificate is checked. A file or folder of certificates to trust in place of those
            of Mozilla; or an `ssl.SSLContext`.
        cert: Your own certificate, for a server or gateway that wants one: a file with certificate and key; or both
            files, and the key's password.
        proxy: The address of a proxy. None: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say; none to this machine.
        headers: Further headers of every request, as a gateway may want them.
        http_client: An `httpx.Client` that sends the requests, with transport, proxy and certificates of its own. It
            may serve several sessions, and is not closed with them.

    Returns:
        The session. `with` runs a block in it and closes it, `with session.as_default()` runs one and leaves it open.

    Raises:
        teletape.errors.ConnectionFailed: No server answers at that address.
        teletape.errors.AuthenticationError: The key is missing or wrong.
        teletape.errors.InvalidArgumentError: What was passed is no address; the key would be sent over plain HTTP to
            another machine; a name for a session in this process.
    """
    url = None if local else environment.url() if url is None else url
    options = None
    if url is not None:
        options = ConnectOptions.of(
            url,
            api_key=api_key,
            device=device,
            lazy=lazy,
            allow_insecure=allow_insecure,
            session=session,
            dedicated=dedicated,
            durability=durability,
            timeout=timeout,
            connect_timeout=connect_timeout,
            max_retries=max_retries,
            verify=verify,
            cert=cert,
            proxy=proxy,
            headers=headers,
            http_client=http_client,
        )
    cell = _cell((options, device, session, offload_loops)) if default else None
    again = _session_of(cell)
    if again is not None:
        return again
    connected = _local(device, session) if options is None else _remote(options)
    connected.offload_loops = environment.offload_loops() if offload_loops is None else offload_loops
    return _become_current(connected, cell) if default else connected


def join(options: ConnectOptions, name: str) -> Session:
    """Joins a session of a server, and makes it the program's."""
    return _become_current(_remote(options.but(session=name)), None)


def _session_of(cell: tuple[Any, ...] | None) -> Session | None:
    """Returns the program's session if the same notebook cell has connected it, and it has not ended."""
    if cell is None or _of_cell is None or _of_cell[0] != cell:
        return None
    session = _of_cell[1]()
    return session if session is not None and session is _current and session.is_alive() else None


def _become_current(session: Session, cell: tuple[Any, ...] | None) -> Session:
    global _of_cell
    if _current is not None:
        _before[session] = weakref.ref(_current)
    _of_cell = None if cell is None else (cell, weakref.ref(session))
    return use(session)


def _cell(arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Returns a key that is equal if the same notebook cell connects again; None: no cell connects.

    The name of a cell's file is made from the cell's text.
    """
    code, offset = caller()
    if not code.co_name.startswith("<") or cell_of(code.co_filename) is None:
        return None
    return (code.co_filename, offset, *arguments)


def _local(device: str | None, name: str | None) -> Session:
    if name is not None:
        raise InvalidArgumentError(
            f"session={name!r} names a session on a server, and there is no address of one: pass url, or set "
            "TELETAPE_URL"
        )
    return LocalSession(device)


def _remote(options: ConnectOptions) -> Session:
    drawn = random.getstate()
    from teletape.core.sessions.remote import RemoteSession  # HTTP takes 0.1 s to import

    random.setstate(drawn)  # Rich, which httpx imports, draws a random number: the program's stay the same
    return RemoteSession(options)


def inside(session: Session | None, function: Callable[[], T]) -> T:
    """Runs a function with `session` as this thread's current session; None: the program's.

    Python itself leaves the context at the end of `run`, so that no interrupt leaves a trace current.
    """
    token = object()
    try:
        entered.add(token)
        return contextvars.copy_context().run(_inside, session, function)
    finally:
        entered.discard(token)  # after an interrupt here it stays, which only costs time


def _inside(session: Session | None, function: Callable[[], T]) -> T:
    _trace.set((session, within() + (session is not None)))
    return function()


@contextmanager
def outside_traces() -> Iterator[None]:
    """A block in which the program's session is current, even in a trace."""
    before = _trace.get()
    _trace.set((None, before[1]))
    try:
        yield
    finally:
        _trace.set(before)


def within() -> int:
    """Returns the number of traces that this thread is in, also outside them in a block of `outside_traces`."""
    return _trace.get()[1]
