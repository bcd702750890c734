"""Questions about a function that come again with other numbers: what they ask is worked out once.

The form of a question is all of it but its numbers: function, fields, dtypes and shapes. What follows from it (sources,
targets, ids and the structure of the commands) is kept with the session, and a question of a known form is that
structure with its own numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np

from teletape_engine.catalogue.attributes import keep
from teletape_engine.commands import Batch, Contents, Id, Input, Repetition, Structure, structure_of
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import DType

_MOST_FORMS: Final = 128  #: Of one session; the oldest is forgotten.


@dataclass(frozen=True)
class Question:
    """What a question asks for.

    Attributes:
        sources, fetched: The names of the sources (of `jvp`: of the targets), and of the outputs to return.
        outputs: By name: the id of each output during the request.
        names: For each derivative the id that keeps it, or None.
        ids: For each derivative the id that it has during the request.
        map: What the answer says of the map, if it is one.
        why: Of `jvp`: for a target without a tangent the member of its entry that says why.
    """

    sources: Sequence[str]
    fetched: Sequence[str]
    outputs: Mapping[str, Id]
    names: Sequence[str | None]
    ids: Sequence[Id]
    map: Mapping[str, Any] | None = None
    why: dict[str, Mapping[str, Any]] = field(default_factory=dict)


#: Where a tensor or number of the contents comes from: the number of the operand, and the dtype that it gets.
_Origin: TypeAlias = tuple[int, DType | None]


@dataclass(frozen=True)
class Form:
    """A form that came before.

    Attributes:
        question: What such questions ask for.
    """

    question: Question
    _structure: Structure
    _contents: Contents  # without tensors and numbers
    _tensors: Sequence[_Origin]
    _numbers: Sequence[_Origin]

    @classmethod
    def of(cls, question: Question, batch: Batch, operands: Sequence[Any], typed: Sequence[Any]) -> Form | None:
        """Returns the form of a question; None: it has none, since its commands have numbers from elsewhere.

        Args:
            question: What it asks for.
            batch: Its commands.
            operands: Its numbers, as they came.
            typed: The same with the dtypes that they have in the commands.
        """
        read = structure_of(batch)
        if read is None:
            return None
        structure, contents = read
        origins = {
            id(value): (number, value.dtype if value is not operand else None)
            for number, (operand, value) in enumerate(zip(operands, typed, strict=True))
        }
        tensors, numbers = ([origins.get(id(value)) for value in values] for values in contents[2:])
        if None in tensors or None in numbers:
            return None
        return cls(question, structure, contents._replace(tensors=(), numbers=()), tensors, numbers)  # type: ignore[arg-type]

    def repetition(self, operands: Sequence[Any]) -> Repetition:
        """Returns the commands of a question of this form with these numbers."""
        tensors = tuple(
            [
                operands[number] if dtype is None else typed_array(operands[number], dtype)
                for number, dtype in self._tensors
            ]
        )
        numbers = tuple([operands[number] for number, _ in self._numbers])
        return Repetition(self._structure, self._contents._replace(tensors=tensors, numbers=numbers))


class Forms:
    """The forms of a session's questions: one is made when a question of it comes for the second time."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, Form | None] = {}

    def find(self, key: Hashable) -> Form | None:
        """Returns the form with that key, if it is known."""
        return self._forms.get(key)

    def note(self, key: Hashable, question: Question, batch: Batch, *operands: Sequence[Any]) -> None:
        """Notes a question that came, with its operands as they came, and as they have dtypes; see `Form.of`."""
        form = Form.of(question, batch, *operands) if key in self._forms else None
        keep(self._forms, key, form, _MOST_FORMS)

    def forget(self, key: Hashable) -> None:
        """Forgets a form: a question of it has failed, and its ids are not new any more."""
        self._forms.pop(key, None)


_FORMS: Final[WeakKeyDictionary[Session, Forms]] = WeakKeyDictionary()


def forms_of(session: Session) -> Forms:
    """Returns the forms of a session's questions, which end with it."""
    return _FORMS.setdefault(session, Forms())


def key_of(session: Session, *parts: Hashable, function: Id, operands: Sequence[Input | None]) -> Hashable | None:
    """Returns what two questions of one form have in common; None: its ids do not name a function and values.

    Args:
        session: The session.
        *parts: What else tells forms apart.
        function: The function's id.
        operands: The numbers, tensors and ids that the question has.
    """
    try:
        kinds = [_kind(session, operand) for operand in operands]
        kind = session.kind(function)
    except TeletapeError:
        return None
    # A weak reference: a form does not keep a function that was deleted, with its constants.
    return None if isinstance(kind, tuple) else (ref(kind), *parts, *kinds)


def _kind(session: Session, operand: Input | None) -> Hashable:
    if operand.__class__ is np.ndarray:
        return operand.dtype, operand.shape
    if isinstance(operand, Literal):
        return operand.spec, operand.array.__class__
    return None if operand is None else (operand, session.kind(operand))  # type: ignore[arg-type]  # an id
