"""Requests that come again with other numbers: what they ask is worked out once.

The form of a request is all of it but its numbers: the rest of its body (`skeletons`), what it names in the session,
dtypes and shapes. What follows from it (ids, the structure of the commands, the text of the answer) is kept with the
session. A request of a known form is that structure with its own numbers: nothing else of its body is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

from pydantic import BaseModel

import teletape_wire as wire
from teletape_engine.catalogue.attributes import keep
from teletape_engine.commands import Batch, Id, Repetition, Structure, structure_of
from teletape_engine.commands import Contents as BatchContents
from teletape_engine.commands.results import Answer
from teletape_engine.errors import TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.recording.values import typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import DType
from teletape_server.handlers.bodies import read, validated
from teletape_server.handlers.execution import computed, error_of, executed
from teletape_server.handlers.forms.skeletons import Contents, Places, Slots, kind_of, skeleton_of, slots_of
from teletape_server.handlers.forms.written_answers import WrittenAnswer
from teletape_server.handlers.methods import Method, Request, Result

Body = TypeVar("Body", bound=BaseModel)

_MOST_FORMS: Final = 128  #: Of one session; the oldest is forgotten. As many skeletons.

#: Returns the answer to a request whose commands have run.
Answering: TypeAlias = Callable[[Session, Request, Answer], Result]
#: Answers a request from its body.
Handler: TypeAlias = Callable[[Session, Request, Any], Result]
#: Where a tensor or number of the contents comes from: the number of the operand, and the dtype that it gets.
_Origin: TypeAlias = tuple[int, DType | None]


@dataclass(eq=False)
class Form:
    """A form that came before.

    Attributes:
        names: What the body names in the session: ids, and what they are of.
        answering: Makes the answer.
        renews: Whether the session has nothing but what the request makes.
        is_closed: Whether it takes no value of the session: what the body names there are functions.
    """

    names: Sequence[tuple[Id, Hashable]]
    answering: Answering
    renews: bool
    is_closed: bool
    _structure: Structure
    _contents: BatchContents  # without tensors and numbers
    _constants: Sequence[Any]  # inputs that are the same in all such requests
    _tensors: Sequence[_Origin]
    _numbers: Sequence[_Origin]
    _text: WrittenAnswer | None = None
    _has_text: bool = True  # or it is not known yet

    def repetition(self, operands: Sequence[Any]) -> Repetition:
        """Returns the commands of a request of this form with these numbers."""
        inputs = [*operands, *self._constants]
        tensors = tuple(
            [inputs[number] if dtype is None else typed_array(inputs[number], dtype) for number, dtype in self._tensors]
        )
        numbers = tuple([inputs[number] for number, _ in self._numbers])
        return Repetition(self._structure, self._contents._replace(tensors=tensors, numbers=numbers))

    def names_the_same(self, session: Session) -> bool:
        """Returns whether the ids in the body name what they named."""
        try:
            return all(_kind(session, id) == kind for id, kind in self.names)
        except TeletapeError:
            return False

    def result(self, session: Session, request: Request, answer: Answer) -> Result:
        """Returns the result of a request whose commands have run."""
        text = self._text
        if text is not None and text.fits(answer):
            return text.result(answer, session.estimated_bytes(nothing_stays=True) if text.has_bytes else None)
        result = self.answering(session, request, answer)
        if text is None and self._has_text:
            self._text = WrittenAnswer.of(result, answer) if request.params["accept"] == wire.JSON_TYPE else None
            self._has_text = self._text is not None
        return result


def _kind(session: Session, id: Id) -> Hashable:
    """Returns what commands depend on of what an id names; a form does not keep a function that was deleted."""
    kind = session.kind(id)
    return ref(kind) if isinstance(kind, Function) else kind


class Asked:
    """A request whose form may become known.

    Args:
        forms: Those of its session.
        key: Of its form, but for what it names in the session.
        contents: The numbers of its body.
        is_wanted: Whether the form is to be known; else that it came.
    """

    def __init__(self, forms: Forms, key: Hashable, contents: Contents, *, is_wanted: bool) -> None:
        self._forms, self._key, self._contents, self._is_wanted = forms, key, contents, is_wanted

    def note(
        self,
        session: Session,
        batch: Batch,
        inputs: Sequence[Any],
        typed: Sequence[Any],
        answering: Answering,
        *functions: Id,
        renews: bool = False,
    ) -> None:
        """Notes what the request is, so that it is known when it comes again; see `Noting`."""
        form = None
        if self._is_wanted:
            form = self._form(session, batch, inputs, typed, answering, functions, renews=renews)
        self._forms.note(self._key, form)

    def _form(
        self,
        session: Session,
        batch: Batch,
        inputs: Sequence[Any],
        typed: Sequence[Any],
        answering: Answering,
        functions: Sequence[Id],
        *,
        renews: bool,
    ) -> Form | None:
        """Returns the form; None: there is none, since its commands have numbers from elsewhere."""
        read = structure_of(batch)
        if read is None:
            return None
        structure, contents = read
        operands, constants = self._contents.operands, list[Any]()
        positions = {id(operand): number for number, operand in enumerate(operands)}
        origins: dict[int, _Origin] = {}
        names = [*functions]
        for value, in_command in zip(inputs, typed, strict=True):
            if isinstance(value, int | str):
                names.append(value)
            elif value is not None:
                number = positions.get(id(value))
                if number is None:
                    number = len(operands) + len(constants)
                    constants.append(in_command)
                origins[id(in_command)] = number, in_command.dtype if in_command is not value else None
        tensors, numbers = ([origins.get(id(value)) for value in values] for values in contents[2:])
        if None in tensors or None in numbers:
            return None
        return Form(
            [(name, _kind(session, name)) for name in names],
            answering,
            renews,
            len(names) == len(functions),
            structure,
            contents._replace(tensors=(), numbers=()),
            constants,
            tensors,  # type: ignore[arg-type]  # none of them is None
            numbers,  # type: ignore[arg-type]  # likewise
        )


class Forms:
    """The forms of a session's requests: one is known when a request of it has come for the second time."""

    def __init__(self) -> None:
        # By what is around the numbers; None: it came once; False: there is no saying.
        self._slots: dict[Hashable, Slots | Literal[False] | None] = {}
        self._forms: dict[Hashable, Form | None] = {}

    def note(self, key: Hashable, form: Form | None) -> None:
        """Notes a form; None: a request of it came, or it has none."""
        keep(self._forms, key, form, _MOST_FORMS)

    def answer(
        self, operation: str, session: Session, request: Request, model: type[Body], places: Places, handler: Handler
    ) -> Result:
        """Returns the answer to a request.

        Args:
            operation: Its method.
            session: The session.
            request: The request.
            model: Of its body.
            places: Returns the places of inputs in its body.
            handler: Answers it from its body.
        """
        skeleton = skeleton_of(request)
        if skeleton is None:
            return handler(session, request, read(request, model))
        around = (operation, request.content_type, *skeleton.parts)
        slots: Slots | Literal[False] | None = None
        contents, is_new = None, False
        try:
            slots = self._slots[around]
            if slots is None:
                slots, is_new = slots_of(request, skeleton, places), True
                self._slots[around] = slots
            contents = slots.contents(request, skeleton.numbers) if slots else None
        except KeyError:
            keep(self._slots, around, None, _MOST_FORMS)
        except TeletapeError:  # what is wrong is said as for every body
            self._slots[around] = self._slots[around] or False
        if not slots or contents is None:
            return handler(session, request, read(request, model))
        params = request.params
        key = (
            slots,
            contents.fixed,
            *map(kind_of, contents.operands),
            params.get("id"),
            params["full"],
            params["accept"],
        )
        form = self._forms.get(key)
        if form is not None and form.names_the_same(session):
            result = self._repeated(key, form, session, request, contents.operands)
            if result is not None:
                return result
        noting = Asked(self, key, contents, is_wanted=is_new or key in self._forms)
        fields = slots.fields(request, model, contents.operands)
        return handler(session, replace(request, noting=noting), validated(model, fields))

    def _repeated(
        self, key: Hashable, form: Form, session: Session, request: Request, operands: Sequence[Any]
    ) -> Result | None:
        """Returns the result of a request of a known form; None: it is to run as its first was."""
        try:
            repetition = form.repetition(operands)
            answer = computed(session, request, repetition) if form.is_closed else None
            if answer is None:
                answer = executed(session, request, repetition)
            if answer.failure is not None:
                raise error_of(session, answer.failure, repetition.batch().commands)
        except TeletapeError:  # its ids are not new any more
            self._forms.pop(key, None)
            if form.renews:  # the caller's own commands say what is wrong
                session.renew()
                return None
            raise
        return form.result(session, request, answer)


_FORMS: Final[WeakKeyDictionary[Session, Forms]] = WeakKeyDictionary()


def forms_of(session: Session) -> Forms:
    """Returns the forms of a session's requests, which end with it."""
    forms = _FORMS.get(session)
    if forms is None:
        forms = _FORMS[session] = Forms()
    return forms


def known_by_form(operation: str, model: type[Body], places: Places, handler: Handler) -> Method:
    """Returns the method that answers requests of a form that has come before without reading their body as a whole.

    Args:
        operation: Its name.
        model: Of the body.
        places: Returns the places of inputs in the fields of a body.
        handler: Answers the others; it may note their form (`Request.noting`).
    """
    return lambda session, request: forms_of(session).answer(operation, session, request, model, places, handler)
