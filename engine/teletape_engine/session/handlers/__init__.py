"""What each command does: one function a command. `VERBS` has them by the command's class."""

from __future__ import annotations

from teletape_engine.commands import COMMANDS
from teletape_engine.session.handlers import (
    accumulators,
    checks,
    custom,
    explain,
    inspect,
    programs,
    questions,
    tapes,
    values,
)
from teletape_engine.session.handlers.registry import VERBS

#: The modules whose functions register themselves.
MODULES = (accumulators, checks, custom, explain, inspect, programs, questions, tapes, values)

if set(VERBS) != set(COMMANDS.values()):  # pragma: no cover - a defect that shows at import
    raise TypeError(f"commands that nothing does, or that are none: {set(VERBS) ^ set(COMMANDS.values())}")

__all__ = ["MODULES", "VERBS"]
