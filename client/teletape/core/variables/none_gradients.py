"""Remembers which tape returned None for a variable, so that an optimizer that gets this None can say why."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable

_MOST: Final = 256  #: Variables remembered; the oldest goes first.


class _Question(NamedTuple):
    """A tape, and the targets of its gradient, as weak references."""

    tape: Any
    targets: tuple[Any, ...]


_questions: Final[dict[int, _Question]] = {}


def remember(tape: Any, targets: Sequence[Any], sources: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Notes the tape and the targets for each variable whose gradient is None."""
    question = None
    for source, gradient in zip(sources, gradients, strict=True):
        if gradient is None and isinstance(source, Variable):
            if question is None:
                question = _Question(weakref.ref(tape), tuple([weakref.ref(target) for target in targets]))
            _questions.pop(source.recorded.uid, None)
            _questions[source.recorded.uid] = question
            if len(_questions) > _MOST:
                del _questions[next(iter(_questions))]


def explanation(variable: Any) -> Any | None:
    """Returns why the last gradient for a variable was None; None: its tape or its target is gone."""
    source = unwrapped(variable)
    question = _questions.get(source.recorded.uid) if isinstance(source, Variable) else None
    if question is None:
        return None
    tape, targets = question.tape(), [target() for target in question.targets]
    if tape is None or any(target is None for target in targets):
        return None
    return tape.explain(targets[0] if len(targets) == 1 else targets, source)
