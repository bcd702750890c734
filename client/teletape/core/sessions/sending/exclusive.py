"""The right to send, which one thread at a time has. Python itself releases it after any interrupt of the thread."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Final

_inside: Final = contextvars.ContextVar["Exclusive | None"]("inside", default=None)


class Exclusive:
    """Runs one function at a time.

    A lock would stay locked after an interrupt between its `acquire` and the next line. Python enters and leaves a
    context in C, and never twice at a time.
    """

    __slots__ = ("_context",)

    def __init__(self) -> None:
        self._context = contextvars.Context()

    def run(self, function: Callable[[], object]) -> bool:
        """Runs a function, with the caller's context variables; returns False if another one runs."""
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
        """Whether the function runs on the caller's stack, interrupted by a signal handler or a finalizer."""
        return _inside.get() is self


def _enter(entered: list[bool], function: Callable[[], object]) -> None:
    entered.append(True)
    function()
