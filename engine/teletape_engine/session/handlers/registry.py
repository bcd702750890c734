"""Where the functions that do commands are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from teletape_engine.commands import Command
from teletape_engine.session.state import State

C = TypeVar("C", bound=Command)

VERBS: Final[dict[type[Command], Callable[[State, Any], None]]] = {}


def does(command: type[C]) -> Callable[[Callable[[State, C], None]], Callable[[State, C], None]]:
    """Registers what a command does."""

    def register(do: Callable[[State, C], None]) -> Callable[[State, C], None]:
        VERBS[command] = do
        return do

    return register
