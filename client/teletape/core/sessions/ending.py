"""The order of a program's end: first the readers of values (writers of summaries), then the sessions.

Python calls the functions of `atexit` in the reverse order of their registration, which depends on the program's
imports and its connections. So the SDK registers one function.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from teletape.core.network.retries import limit_patience

if TYPE_CHECKING:
    from teletape.core.sessions.session import Session

READ_PATIENCE: Final = 2.0  #: Seconds without an answer after which the last reads of a program end.

_readers: Final[list[Callable[[Session | None], None]]] = []
_ends: Final[list[Callable[[], None]]] = []


def before_sessions_end(read: Callable[[Session | None], None]) -> None:
    """Registers a function that reads its last values of a session that closes; its argument None: the program ends."""
    _readers.append(read)


def at_the_end(end: Callable[[], None]) -> None:
    """Registers a function that ends sessions when the program ends."""
    _ends.append(end)


def read_last_values(session: Session | None) -> None:
    """Calls the readers of a session that is about to end; None: of all sessions."""
    for read in _readers:
        read(session)


@atexit.register
def _end_program() -> None:
    try:
        limit_patience(READ_PATIENCE)
        read_last_values(None)
    finally:
        for end in _ends:
            end()
