"""The structure of a batch: its commands without ids, tensors and numbers, which change with each repetition.

A program's step is the same batch again and again, with other ids and other contents. `structure_of` splits a batch
into its structure and its contents, and `Structure.batch` puts them together again, exactly. So a client that has sent
a batch once can send a number for its structure and the new contents, and a session can remember what it knows of it.

In the structure, every id is a slot:

taken    the batch mentions it before it creates it: a value, a variable, a tape, a function, a context from before.
         Slots are numbered in the order of first mention: by command, by field, by member; then releases, temporaries
created  a command creates it, and nothing mentions it before; numbered in the order of creation

Tensors and Python numbers among inputs are slots too, one for each place in order; shape, dtype and the number's type
belong to the structure, the elements and the number do not: a learning rate may change. All else is structure: ops,
attributes, flags, names, call sites (so that an error names the right line), and what a failure does to ids.

Client number, sequence number and nonce belong to neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.commands.base import Batch, Command, FieldKind, Id, OnFailure, Tensor
from teletape_engine.commands.functions import DefineFunction
from teletape_engine.commands.schema import COMMANDS, FIELDS
from teletape_engine.commands.values import Call
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_engine.records import record

TAKEN: Final = 0  #: The position of `Contents.taken`; the sources of slots are these positions.
CREATED: Final = 1
TENSORS: Final = 2
NUMBERS: Final = 3


class Contents(NamedTuple):
    """What a batch has in the slots of its structure.

    Attributes:
        taken: Ids that the batch mentions before it creates them.
        created: Ids that its commands create. Those of a client that counts are often consecutive.
        tensors: Arrays on the host.
        numbers: Numbers of Python, or of JSON without a dtype.
    """

    taken: tuple[Id, ...]
    created: tuple[Id, ...]
    tensors: tuple[Tensor, ...]
    numbers: tuple[Literal, ...]


class Slot(NamedTuple):
    """A place in a structure: in a command where an id, a tensor or a number was.

    Attributes:
        source: Which of the contents: TAKEN, CREATED, TENSORS or NUMBERS.
        number: Its number among them.
    """

    source: int
    number: int


@record(frozen=True, eq=False, slots=True)
class Structure:
    """The structure of a batch. Two are equal if their texts are.

    Attributes:
        text: Everything in it as text, in one way only: equal structures have equal texts in every process.
        commands: The commands, with slots in the places of ids, tensors and numbers.
        releases: Slots.
        temporaries: Slots.
        on_failure: As of the batch.
        counts: The lengths of the contents.
        specs: Dtype and shape of each tensor.
        kinds: The Python type of each number.
    """

    text: str
    commands: tuple[Command, ...]
    releases: tuple[Slot, ...]
    temporaries: tuple[Slot, ...]
    on_failure: OnFailure
    counts: tuple[int, int, int, int]
    specs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    kinds: tuple[type, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def check(self, contents: Contents) -> None:
        """Checks that the contents fit: what a client sends for a structure.

        Raises:
            BadCommandError: Another count of ids, tensors or numbers; a tensor of another dtype or shape; a number of
                another type; an id twice.
        """
        counts = tuple(map(len, contents))
        if counts != self.counts:
            raise BadCommandError(
                f"the batch's structure has {_counted(self.counts)}; found {_counted(counts)}: send the whole batch"
            )
        for number, (tensor, (dtype, shape)) in enumerate(zip(contents.tensors, self.specs, strict=True)):
            if tensor.dtype != dtype or tensor.shape != shape:
                raise BadCommandError(
                    f"tensor {number} of the batch's structure is {dtype.name}{list(shape)}; found "
                    f"{tensor.dtype.name}{list(tensor.shape)}: send the whole batch"
                )
        for number, (literal, kind) in enumerate(zip(contents.numbers, self.kinds, strict=True)):
            if literal.array.__class__ is not kind:
                raise BadCommandError(
                    f"number {number} of the batch's structure is of type {kind.__name__}; found "
                    f"{literal.array.__class__.__name__}: send the whole batch"
                )
        if len({*contents.taken, *contents.created}) != len(contents.taken) + len(contents.created):
            raise BadCommandError("an id occurs twice among those of a batch's structure: send the whole batch")

    def batch(self, contents: Contents, *, client: int = 0, seq: int = 0, nonce: bytes = b"") -> Batch:
        """The batch with these contents, which fit.

        Args:
            contents: What the slots hold.
            client: As of the batch.
            seq: As of the batch.
            nonce: As of the batch.
        """
        commands = tuple([_filled(command, contents) for command in self.commands])
        releases, temporaries = _put(self.releases, contents), _put(self.temporaries, contents)
        return Batch(commands, releases, client, seq, nonce, temporaries, self.on_failure)


@record(frozen=True, slots=True)
class Repetition:
    """A batch as its structure and contents, which fit: sessions execute it as they do the batch itself.

    Attributes:
        structure: Known from an earlier batch.
        contents: Of this one.
        client: As of a batch.
        seq: As of a batch.
        nonce: As of a batch.
    """

    structure: Structure
    contents: Contents
    client: int = 0
    seq: int = 0
    nonce: bytes = b""

    def batch(self) -> Batch:
        """The batch; made at each call."""
        return self.structure.batch(self.contents, client=self.client, seq=self.seq, nonce=self.nonce)


def structure_of(batch: Batch) -> tuple[Structure, Contents] | None:
    """A batch's structure and contents; None: it has none.

    No step defines a function, replaces ids, or has lists without a dtype.
    """
    read = text_and_contents(batch)
    if read is None:
        return None
    text, contents = read
    slots: dict[Any, Slot] = {
        name: Slot(source, i) for source in (TAKEN, CREATED) for i, name in enumerate(contents[source])
    }
    places = _Places(slots)
    structure = Structure(
        text,
        tuple([places.command(command) for command in batch.commands]),
        tuple([slots[name] for name in batch.releases]),
        tuple([slots[name] for name in batch.temporaries]),
        batch.on_failure,
        tuple(map(len, contents)),  # type: ignore[arg-type]  # four
        tuple([(tensor.dtype, tensor.shape) for tensor in contents.tensors]),
        tuple([literal.array.__class__ for literal in contents.numbers]),
    )
    return structure, contents


def text_and_contents(batch: Batch) -> tuple[str, Contents] | None:
    """The text of a batch's structure and its contents: less than `structure_of`, if the structure is known."""
    if batch.replace:  # what an id names before and after is not the same thing
        return None
    taken: list[Any] = []
    created: list[Any] = []
    tensors: list[Tensor] = []
    numbers: list[Literal] = []
    texts: list[str] = []
    write = texts.append
    has_list = False
    names: dict[Any, str] = {}  # of ids in the text: `a` was there before, `b` is created

    def write_member(value: Any, first: str) -> None:
        """Writes one id, tensor or number; `first` is the letter of an id that is new."""
        nonlocal has_list
        kind = value.__class__
        if kind is int or kind is str:
            name = names.get(value)
            if name is None:
                ids = taken if first == "a" else created
                name = names[value] = first + str(len(ids))
                ids.append(value)
            write(name)
        elif kind is Literal:
            numbers.append(value)
            write(f"{value.spec!r} {value.spec.integer.name}" if value.spec.untyped else repr(value.spec))
            has_list = has_list or value.spec.shape != ()
        elif value is None:
            write("-")
        else:
            tensors.append(value)
            write(f"{value.dtype.name}{value.shape}")

    for command in batch.commands:
        if command.__class__ is Call:
            write(repr(command.op))
            for operand in command.inputs:
                if operand.__class__ is int and operand in names:
                    write(names[operand])
                else:
                    write_member(operand, "a")
            write(":")
            for name in command.outputs:
                if name.__class__ is int and name not in names:
                    names[name] = text = f"b{len(created)}"
                    created.append(name)
                    write(text)
                else:
                    write_member(name, "b")
            if command.attrs:
                write(_text_of(command.attrs))
            if command.where is not None:
                write(repr(command.where))
        elif command.__class__ is DefineFunction:
            return None
        else:
            places, structure = _FIELDS[command.verb]
            write(command.verb)
            for getter, first in places:
                value = getter(command)
                if value.__class__ is tuple:
                    write("(")
                    for member in value:
                        write_member(member, first)
                    write(")")
                else:
                    write_member(value, first)
            if structure is not None:
                write(_text_of(structure(command)))
        write(";")
    for ids in (batch.releases, batch.temporaries):
        write("|")
        for each in ids:
            if each in names:
                write(names[each])
            else:
                write_member(each, "a")
    write(batch.on_failure.value)
    if has_list:
        return None
    return " ".join(texts), Contents(tuple(taken), tuple(created), tuple(tensors), tuple(numbers))


def _counted(counts: Sequence[int]) -> str:
    return "{} ids from before, {} new ids, {} tensors, {} numbers".format(*counts)


_PLACES: Final = (FieldKind.ID, FieldKind.FUNCTION_ID, FieldKind.INPUT, FieldKind.TENSOR)
#: For each command the names of its fields with ids, tensors or numbers, and whether the command creates the ids.
_MODES: Final[Mapping[str, tuple[tuple[str, int | None], ...]]] = {
    verb: tuple(
        [
            (name, (CREATED if field.created else TAKEN) if field.kind in _PLACES else None)
            for name, field in fields.items()
        ]
    )
    for verb, fields in FIELDS.items()
}
#: The same as functions that read the fields, with the letters of new ids; and a function that reads the other fields.
_FIELDS: Final = {
    verb: (
        tuple([(attrgetter(name), "ab"[mode]) for name, mode in modes if mode is not None]),
        attrgetter(*names) if (names := [name for name, mode in modes if mode is None]) else None,
    )
    for verb, modes in _MODES.items()
}


def _text_of(value: Any) -> str:
    """What is structure as text, in its form on the wire: a NumPy dtype is its name, a list a tuple."""
    text = repr(value)
    return repr(_plain(value)) if _NOT_PLAIN(text) else text


#: Finds what is not in the text of tuples, dicts and Python's own numbers.
_NOT_PLAIN: Final = re.compile(r"\[|<|dtype|np\.|[a-z]\(").search


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple([_plain(member) for member in value])
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, str) else value


# ------------------------------------------------------------------------------------------------------------- writing
class _Places:
    """Puts slots into commands, in the order of their fields."""

    def __init__(self, slots: Mapping[Id, Slot]) -> None:
        self._slots = slots
        self._counts = {TENSORS: 0, NUMBERS: 0}

    def command(self, command: Command) -> Command:
        """The command with slots."""
        return _replaced(command, self._place)

    def _place(self, value: Any) -> Any:
        if value is None:
            return None
        kind = value.__class__
        if kind is int or kind is str:
            return self._slots[value]
        source = NUMBERS if kind is Literal else TENSORS
        number = self._counts[source]
        self._counts[source] += 1
        return Slot(source, number)


def _filled(command: Command, contents: Contents) -> Command:
    if command.__class__ is Call:  # it comes by the hundred
        return Call(
            command.op, _put(command.inputs, contents), _put(command.outputs, contents), command.attrs, command.where
        )
    return _replaced(command, lambda slot: None if slot is None else contents[slot.source][slot.number])


def _replaced(command: Command, put: Callable[[Any], Any]) -> Command:
    values: list[Any] = []
    for name, mode in _MODES[command.verb]:
        value = getattr(command, name)
        if mode is not None:
            value = tuple([put(member) for member in value]) if value.__class__ is tuple else put(value)
        values.append(value)
    return COMMANDS[command.verb](*values)


def _put(slots: Sequence[Any], contents: Contents) -> tuple[Any, ...]:
    """Returns what is in these slots."""
    return tuple([contents[source][number] for source, number in slots])
