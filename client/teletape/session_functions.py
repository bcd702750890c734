"""Functions on the program's session: `tf.session`, `tf.sync`, `tf.no_gradient`, and where in a program code runs."""

from __future__ import annotations

from teletape.errors import TeletapeError
from teletape.sessions.current import current, within
from teletape.sessions.session import Session
from teletape.tensors.exchange import Awaitable
from teletape.terminal.session_list import sessions

__all__ = ["executing_eagerly", "inside_function", "no_gradient", "session", "sessions", "sync", "sync_async"]


def session() -> Session:
    """The program's session: its id, `summary()` of its requests to the server, `close()`."""
    return current()


def sync() -> None:
    """Waits until everything recorded so far has run on the server; raises the error of what failed there."""
    current().sync()


def sync_async() -> Awaitable:
    """To be awaited in an asyncio or trio program: `sync`, without blocking the event loop."""
    return Awaitable(current().sync)


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
