"""The registry of handlers: the function that executes each command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from teletape_engine.commands import Command
from teletape_engine.session.state import State

C = TypeVar("C", bound=Command)

HANDLERS: Final[dict[type[Command], Callable[[State, Any], None]]] = {}


def handles(command: type[C]) -> Callable[[Callable[[State, C], None]], Callable[[State, C], None]]:
    """Registers the function that executes a command."""

    def register(handler: Callable[[State, C], None]) -> Callable[[State, C], None]:
        HANDLERS[command] = handler
        return handler

    return register
