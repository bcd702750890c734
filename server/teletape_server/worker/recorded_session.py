"""A session that notes the batches that it executes, for its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from teletape_engine.commands import Batch, Repetition
from teletape_engine.commands.results import Answer
from teletape_engine.session.session import Session
from teletape_server.durable.batches import Executed


class RecordedSession(Session):
    """A session that notes what it executes.

    Attributes:
        executed: What it has executed since that was last written down.
        noted: Called after each batch; None: nothing is noted yet.
    """

    executed: list[Executed]
    noted: Callable[[], None] | None

    def __init__(self, *args: Any, **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.executed, self.noted = [], None

    def execute(self, batch: Batch | Repetition, **how: Any) -> Answer:
        """As `Session.execute`."""
        before, noted = self.batches, self.noted
        answer = super().execute(batch, **how)
        if noted is not None and self.batches != before:  # it was no retry
            self.executed.append(Executed.of(self, batch, answer, explain=how.get("explain", False)))
            noted()
        return answer
