"""What each command does: one function for each command. `HANDLERS` has them by the command's class."""

from __future__ import annotations

from teletape_engine.commands import COMMANDS
from teletape_engine.session.handlers import (
    accumulators,
    checks,
    custom,
    explain,
    functions,
    inspect,
    questions,
    session,
    tapes,
    values,
)
from teletape_engine.session.handlers.registry import HANDLERS

#: The modules whose functions register themselves.
MODULES = (accumulators, checks, custom, explain, functions, inspect, questions, session, tapes, values)

if set(HANDLERS) != set(COMMANDS.values()):  # pragma: no cover - a defect that shows at import
    raise TypeError(
        f"commands without a handler, or handlers without a command: {set(HANDLERS) ^ set(COMMANDS.values())}"
    )

__all__ = ["HANDLERS", "MODULES"]
