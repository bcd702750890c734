"""The right to send, which one thread at a time has. Python itself takes it back, whatever interrupts the thread."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Final

_inside: Final = contextvars.ContextVar["Exclusive | None"]("inside", default=None)


class Exclusive:
    """Runs one function at a time.

    A lock would stay locked after an interrupt between its `acquire` and the next line. A context of Python's is
    entered and left in C, and only once at a time.
    """

    __slots__ = ("_context",)

    def __init__(self) -> None:
        self._context = contextvars.Context()

    def run(self, function: Callable[[], object]) -> bool:
        """Runs a function, or returns False: another one runs. The function sees the caller's context variables."""
        variables = contextvars.copy_context()
        variables.run(_inside.set, self)
        entered: list[bool] = []
        try:
            self._context.run(variables.run, _enter, entered, function)
        except RuntimeError:
            if entered:
                raise
        return bool(entered)

    @property
    def mine(self) -> bool:
        """Whether the function runs below on the caller's stack: a signal handler or a finalizer has interrupted it."""
        return _inside.get() is self


def _enter(entered: list[bool], function: Callable[[], object]) -> None:
    entered.append(True)
    function()
