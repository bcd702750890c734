"""`tf.SessionPool`: sessions that blocks of threads and tasks take in turns."""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from teletape.core.errors import (
    ConnectionFailed,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    TeletapeError,
)
from teletape.core.sessions.current import connect
from teletape.core.sessions.sending.event_loops import in_thread, runs_loop, wakeup
from teletape.core.sessions.session import Scope, Session
from teletape_engine.locks import ReentrantLock

__all__ = ["SessionPool"]

_LOOK_AFTER: Final = 30.0  #: Seconds without use after which it looks whether a session is still there.


class SessionPool:
    """Sessions on one server, of which each thread or async task takes one for a block.

    Sessions compute independently of each other, each in a process of its own: a pool serves requests side by side, and
    an error in one block concerns no other. A `tf.function` that takes nothing but its arguments is traced once for all
    of them; one that uses variables is traced once for each session, as the variables are in one session.

    Sessions are opened when they are needed, and closed by `close`, or at the end of a `with` or `async with` block of
    the pool. One that has ended on the server is replaced by a new one.

    Args:
        url: The server's address, as for `tf.connect`.
        size: The number of sessions, at most.
        **options: Further arguments of `tf.connect`, without `session` and `default`.

    Attributes:
        size: As passed.

    Example:
        pool = tf.SessionPool(local=True, size=2)
        with pool.session():
            print(tf.reduce_sum(tf.constant([1.0, 2.0])).numpy())  # 3.0
        pool.close()

    Raises:
        teletape.errors.InvalidArgumentError: A size below 1, or an option that a pool does not take.
        TypeError: `tf.connect` has no such option.
    """

    def __init__(self, url: str | int | None = None, size: int = 4, **options: Any) -> None:
        if size < 1:
            raise InvalidArgumentError(f"size={size!r}: a pool has at least one session")
        for name in ("session", "default"):
            if name in options:
                raise InvalidArgumentError(
                    f"{name}={options[name]!r}: the sessions of a pool have no names, and are those of their blocks "
                    "alone. Leave it out"
                )
        inspect.signature(connect).bind(url, default=False, **options)
        self.size = size
        self._open: Callable[[], Session] = partial(connect, url, default=False, **options)
        self._lock = ReentrantLock()
        self._idle: list[Session] = []  # the last is used first
        self._used: weakref.WeakKeyDictionary[Session, float] = weakref.WeakKeyDictionary()  # when it was given back
        self._count = 0  # of sessions that are idle, in use, or being opened
        self._waiting: deque[Turn] = deque()
        self._closed = False

    def __repr__(self) -> str:
        with self._lock:
            idle, waiting = len(self._idle), len(self._waiting)
            states = [f"{self._count - idle} in use", f"{idle} idle"]
        states += [f"{waiting} blocks waiting"] if waiting else []
        states += ["closed"] if self._closed else []
        return f"<SessionPool of at most {self.size} sessions, {', '.join(states)}>"

    def session(self, timeout: float | None = None) -> PooledSession:
        """Returns a block, for `with` or `async with`, in which this thread or task computes in a session of the pool.

        The block has the session alone. What it has recorded and not read is computed at its end, which raises what
        fails. If the block raises, its error is the one that is raised; an interrupt, a cancelled task, and an error of
        the connection end the session too.

        Args:
            timeout: Seconds that the block waits for a session, at most, if all are in use; None: without a limit.

        Raises:
            teletape.errors.DeadlineExceededError: At its beginning: all sessions were in use for that long.
            teletape.errors.FailedPreconditionError: At its beginning: the pool is closed; or a plain `with` would wait
                in a thread whose event loop runs the tasks that it waits for.
            teletape.errors.ConnectionFailed: At its beginning: the server cannot be reached.
        """
        return PooledSession(self, timeout)

    def close(self) -> None:
        """Ends the sessions: those in use when their blocks end. Blocks that wait raise FailedPreconditionError."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            self._count += len(self._waiting) - len(idle)
            while self._waiting:
                self._waiting.popleft().come(None)
        for session in idle:
            if session.closed is None:
                session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await in_thread(self.close)

    # --------------------------------------------------------------------------------------------------------- turns
    def begin(self) -> Turn:
        """Returns a turn, which has come if a session is idle or may be opened."""
        with self._lock:
            turn = Turn()
            if self._idle:
                turn.come(self._idle.pop())
            elif self._count < self.size or self._closed:
                self._count += 1
                turn.come(None)
            else:
                self._waiting.append(turn)
            return turn

    def leave(self, turn: Turn) -> None:
        """Ends a turn whose session nothing uses."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        self.give(turn.session)

    def is_fresh(self, session: Session | None) -> bool:
        """Whether a session was used so lately that it is there."""
        used = None if session is None or session.closed is not None else self._used.get(session)
        return used is not None and time.monotonic() - used < _LOOK_AFTER

    def ready(self, session: Session | None) -> Session:
        """Returns the session of a turn that has come, or a new one; may send requests.

        Raises:
            FailedPreconditionError: The pool is closed.
            ConnectionFailed: The server cannot be reached.
        """
        try:
            if self._closed:
                raise FailedPreconditionError("the pool of sessions is closed: make another one, tf.SessionPool(url)")
            if session is not None and (self.is_fresh(session) or session.is_alive()):
                return session
            if session is not None:
                session.abandon()
            return self._open()
        except BaseException:
            self.give(session)
            raise

    def give(self, session: Session | None) -> None:
        """Takes a session back. None, or one that has ended: another one may be opened."""
        with self._lock:
            ended = session if self._closed or (session is not None and session.closed is not None) else None
            if ended is not None:
                session = None
            if session is not None:
                self._used[session] = time.monotonic()
            if self._waiting:
                self._waiting.popleft().come(session)
            elif session is not None:
                self._idle.append(session)
            else:
                self._count -= 1
        if ended is not None and ended.closed is None:
            ended.close()


class PooledSession:
    """The block of `SessionPool.session`: its value is the session.

    Args:
        pool: The pool.
        timeout: Seconds that it waits for a session, at most; None: without a limit.
    """

    def __init__(self, pool: SessionPool, timeout: float | None) -> None:
        self._pool, self._timeout = pool, timeout
        self._blocks: list[tuple[Session, Scope]] = []

    def __enter__(self) -> Session:
        pool = self._pool
        turn = pool.begin()
        try:
            if not turn.over and runs_loop():
                raise FailedPreconditionError(
                    f"all {pool.size} sessions of the pool are in use, and a wait here would stop the event loop: "
                    "write `async with pool.session()`"
                )
            if not turn.wait(self._timeout):
                raise self._late()
        except BaseException:
            pool.leave(turn)
            raise
        return self._entered(pool.ready(turn.session))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        session = self._left()
        try:
            _end(session, kind)
        finally:
            self._pool.give(session)

    async def __aenter__(self) -> Session:
        pool = self._pool
        turn = pool.begin()
        try:
            if not await turn.wait_in_loop(self._timeout):
                raise self._late()
        except BaseException:
            pool.leave(turn)
            raise
        session = turn.session
        if session is None or not pool.is_fresh(session):
            session = await in_thread(partial(pool.ready, session))
        return self._entered(session)

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        session = self._left()
        try:
            if kind is not None or session.waits:
                await in_thread(partial(_end, session, kind))
        finally:
            self._pool.give(session)

    def _entered(self, session: Session) -> Session:
        scope = Scope(session)
        self._blocks.append((session, scope))
        scope.enter()
        return session

    def _left(self) -> Session:
        session, scope = self._blocks.pop()
        scope.leave()
        return session

    def _late(self) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"all {self._pool.size} sessions of the pool were in use for {self._timeout:g} s: make the pool larger, or "
            "its blocks shorter"
        )


def _end(session: Session, kind: type[BaseException] | None) -> None:
    """Ends a block: its waiting commands run, so that a failure is not the error of a later block."""
    if session.closed is not None:
        return
    if kind is None:
        if session.waits:
            session.sync()
    elif issubclass(kind, Exception) and not issubclass(kind, ConnectionFailed):
        with suppress(TeletapeError):  # the block's error is the one that is raised
            session.sync()
    else:
        session.abandon()


class Turn:
    """The wait of one block for a session.

    Attributes:
        over: Whether it has come.
        session: The session; None: one is to be opened.
    """

    def __init__(self) -> None:
        self.over = False
        self.session: Session | None = None
        self._latch = threading.Lock()
        self._latch.acquire()
        self._wake: Callable[[], object] = self._latch.release

    def come(self, session: Session | None) -> None:
        """Notes the session, and wakes the block that waits."""
        self.session, self.over = session, True
        with suppress(RuntimeError):  # its event loop has ended
            self._wake()

    def wait(self, seconds: float | None) -> bool:
        """Waits in a thread until it has come, or for some seconds; returns whether it has."""
        return self._latch.acquire(timeout=-1 if seconds is None else max(0.0, seconds))

    async def wait_in_loop(self, seconds: float | None) -> bool:
        """Waits like `wait`, for a task, without a thread."""
        if not self.over:
            waiting = wakeup()
            self._wake = waiting.wake
            if not self.over:  # it may have come before `_wake` was there
                await waiting.wait(None if seconds is None else time.monotonic() + seconds)
        return self.over
