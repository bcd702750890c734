"""What each command does: one function a command, by the subject. `VERBS` has them by the command's class."""

from __future__ import annotations

from teletape_engine.commands import COMMANDS
from teletape_engine.verbs import accumulators, checks, explain, looks, passes, programs, questions, tapes, values  # noqa: F401  # they register themselves
from teletape_engine.verbs.registry import VERBS

if set(VERBS) != set(COMMANDS.values()):  # pragma: no cover - a defect that shows at import
    raise TypeError(f"commands that nothing does, or that are none: {set(VERBS) ^ set(COMMANDS.values())}")

__all__ = ["VERBS"]
