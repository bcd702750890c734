"""Functions on the program's session, and whether code is being traced."""

from __future__ import annotations

from teletape.core.errors import (
    TeletapeError,
)
from teletape.core.sessions.current import current, within
from teletape.core.sessions.sending.event_loops import check_loop
from teletape.core.sessions.session import Session

__all__ = [
    "executing_eagerly",
    "inside_function",
    "no_gradient",
    "session",
    "sync",
    "sync_async",
]


def session() -> Session:
    """Returns the program's session: its id, `summary()` of its requests to the server, `close()`."""
    return current()


def sync() -> None:
    """Waits until everything recorded so far has run on the server; raises the error of a command that failed."""
    current().sync()


async def sync_async() -> None:
    """Waits like `sync` while the event loop of asyncio or trio goes on; await it."""
    check_loop()
    await current().sync_later()


def no_gradient(op_type: str) -> None:
    """Declares that ops of this TensorFlow type have no gradient, for every gradient computed from now on.

    Raises:
        TypeError: The type is no string.
        KeyError: The type has a registered gradient, or has been declared before.
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    try:
        current().declare_no_gradient(op_type)
    except TeletapeError as error:
        raise error.surfaced() from None


def executing_eagerly() -> bool:
    """Whether ops run, or are recorded for the server, one by one. False while a tf.function is traced."""
    return not current().tracing


def inside_function() -> bool:
    """Whether a tf.function is being traced, also in an `init_scope` there."""
    return within() > 0
