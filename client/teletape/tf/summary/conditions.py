"""The default step of summaries, and the conditions under which they are written."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, Final

from teletape.core.variables import name_scope

_STEP: Final[contextvars.ContextVar[Any]] = contextvars.ContextVar("summary_step", default=None)
_CONDITION: Final[contextvars.ContextVar[Any]] = contextvars.ContextVar("summary_condition", default=True)


def set_step(step: Any) -> None:
    """Sets the step of summaries that name none: an integer, a tensor or a variable; None removes it."""
    _STEP.set(step)


def get_step() -> Any:
    """The default step, as it was set; None if there is none."""
    return _STEP.get()


@contextlib.contextmanager
def with_step(step: Any) -> Iterator[None]:
    """A block with another default step; None: it does not change."""
    token = None if step is None else _STEP.set(step)
    try:
        yield
    finally:
        if token is not None:
            _STEP.reset(token)


def step_or_default(step: Any) -> Any:
    """The step of a summary.

    Raises:
        ValueError: There is none.
    """
    if step is None:
        step = _STEP.get()
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    return step


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """A block in which summaries are written if a condition holds: a bool, a tensor, or a function returning one."""
    token = _CONDITION.set(condition)
    try:
        yield
    finally:
        _CONDITION.reset(token)


def condition_holds() -> bool:
    """Whether the condition of the innermost `record_if` holds."""
    condition = _CONDITION.get()
    return bool(condition() if callable(condition) else condition)


@contextlib.contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A scope for a program's own kind of summary; yields its tag, with the names of the outer scopes, and its name."""
    scope_name = name or default_name
    with name_scope.name_scope(scope_name) as scope:
        yield scope.rstrip("/"), scope
