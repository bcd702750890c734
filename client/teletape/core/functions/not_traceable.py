"""The exception of a function that cannot be traced, raised at the line of the body that makes it impossible."""

from __future__ import annotations

from typing import Any, Final

from teletape.core import environment
from teletape.core.program import call_site
from teletape.core.sessions.current import current

GOES_OVER_A_DATASET: Final = "goes over a dataset"


class NotTraceable(Exception):
    """A function's body needs a value, or does something that cannot be a step of a function.

    Like TensorFlow's OperatorNotAllowedInGraphError it goes through the user's `except` and `finally` clauses. A trace
    notes the exception too: if the body swallows it, `trace` raises it after the body.

    Attributes:
        why: The reason, such as "reads the value of a tensor".
        advice: The alternative to use.
        where: The program's line that does it.
        once: Whether only the first call does so.
    """

    def __init__(self, why: str, advice: str, *, once: bool = False) -> None:
        super().__init__(f"a function that is traced {why}; use {advice}")
        self.why, self.advice, self.once = why, advice, once
        self.where = call_site.call_site_text(call_site.caller() if environment.call_sites() else None)
        self.note()

    def note(self) -> None:
        """Notes the exception on this thread's trace, if there is one."""
        session = current()
        if session.tracing:
            session.not_traceable = self

    def withdraw(self) -> None:
        """Removes the note: the SDK itself has handled the exception, and the trace goes on."""
        session = current()
        if session.not_traceable is self:
            session.not_traceable = None


class NeedsValues(NotTraceable):
    """The body needs a value that follows from integer arguments of the function: it can be traced for their values.

    Args:
        why: The reason, as in NotTraceable.
        advice: The alternative, as in NotTraceable.
        owner: The session, or trace, in which the function is called.
        positions: The positions of these integers among the inputs of the traced function.
    """

    def __init__(self, why: str, advice: str, owner: Any, positions: tuple[int, ...]) -> None:
        super().__init__(why, advice)
        self.owner, self.positions = owner, positions
