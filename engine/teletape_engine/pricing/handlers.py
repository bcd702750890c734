"""Handlers of the commands that look at elements, of which a price has none; others have those of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Command
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.pricing.hollow import Unpriced
from teletape_engine.pricing.state import PricingState
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.handlers import HANDLERS
from teletape_engine.session.handlers.questions import gradient_query


def _fetch(state: PricingState, command: commands.Fetch) -> None:
    """Counts the bytes that are sent."""
    if command.optional and command.id not in state.entries:
        return
    entry = state.find(command.id, (Value, Variable, SlicesValue))
    parts = (entry.values, entry.indices) if isinstance(entry, SlicesValue) else (entry,)
    for part in parts:
        whole = command.elements is None or isinstance(entry, SlicesValue)
        elements = part.spec.size if whole else min(command.elements or 0, part.spec.size)
        state.fetched += elements * part.spec.dtype.itemsize


def _statistics(state: PricingState, command: commands.GradientStatistics) -> None:
    """Computes the gradient, of which nothing stays."""
    gradient(state.current, gradient_query(state, command))


def _uncounted(state: PricingState, command: Command) -> None:
    """Notes that a question is not counted: nothing later depends on its answer."""
    state.ledger.doubts.append((0, f"what {command.verb!r} takes, which is not counted"))


def _unpriced(state: PricingState, command: Command) -> None:
    """Raises.

    Raises:
        Unpriced: Always.
    """
    raise Unpriced(f"what {command.verb!r} gives depends on the values that the tape keeps: it has no price")


def _nothing(state: PricingState, command: Command) -> None:
    """Does nothing: the command is a client's matter."""


#: By the command's class.
PRICED: Final[dict[type[Command], Callable[[Any, Any], None]]] = {
    **HANDLERS,
    commands.Fetch: _fetch,
    commands.GradientStatistics: _statistics,
    commands.Profile: _nothing,
    commands.ClientAttach: _nothing,
    commands.ClientDetach: _nothing,
    **dict.fromkeys(
        (
            commands.CheckGradients,
            commands.TapeCheckGradients,
            commands.Explain,
        ),
        _uncounted,
    ),
    commands.SparseJacobian: _unpriced,
    commands.SparseHessian: _unpriced,
}
