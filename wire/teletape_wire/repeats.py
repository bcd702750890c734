"""Batches that repeat: a program's step has one structure, so its number and what is in its slots travel alone.

`Repeats` compares each batch with the structures of earlier ones, as a whole: columns of ops, attributes, inputs and
results, which Python compares in C, so that a batch that is known costs less than its encoding. What differs in
anything that is structure is sent in full.

An interrupt at any line leaves at most a batch that was not counted, or a structure that the server is not sent.
"""

from __future__ import annotations

import itertools
import marshal
import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.commands import COMMANDS, Batch, Call, Command, FieldKind, Id, Input, OnFailure
from teletape_engine.commands.fields import Field, fields_of
from teletape_engine.commands.schema import getter
from teletape_engine.commands.structure import CREATED, NUMBERS, TAKEN, TENSORS, Contents, structure_of
from teletape_wire.encode import encode_batch, encode_repeated
from teletape_wire.frame import Frame

REPEATED_BATCHES: Final = "repeated-batches"  #: What a server names that keeps structures.
STRANDS: Final = "strands"  #: And one that goes on with other strands after a failure.

_FEWEST: Final = 8  #: Commands of a batch from which on it pays to look for it.
_MOST_SHAPES: Final = 64  #: Lists of ops that are counted; beyond that all are forgotten.
_MOST_VARIANTS: Final = 4  #: Structures with the same ops; beyond that the oldest is forgotten.
_MOST_REFUSALS: Final = 4  #: So often a structure is sent again that the server has forgotten.
_MOST_HEADER: Final = 128 << 10  #: Bytes of a batch without its tensors; a larger one is always sent in full.


class Columns(NamedTuple):
    """The commands of a batch, as what is compared: a member for each command.

    Attributes:
        commands: The commands; those of ops need not be here.
        ops: Of each op its name; None: the command is compared by itself, and has nothing in the other columns. A batch
            with an op that is so is always sent in full.
        attrs: Of each op its attributes, which are one object for equal ones.
        inputs: Of each op its inputs.
        outputs: Of each op its result; its call has no call site.
    """

    commands: tuple[Command | None, ...]
    ops: tuple[str | None, ...]
    attrs: tuple[Attrs | None, ...]
    inputs: tuple[tuple[Input, ...], ...]
    outputs: tuple[Id | None, ...]


def columns_of(batch: Batch) -> Columns | None:
    """The columns of a batch; None: ops in it have call sites, or not one result each."""
    rows: list[tuple[Any, ...]] = []
    for command in batch.commands:
        if not isinstance(command, Call):
            rows.append((command, None, None, (), None))
        elif command.where is None and len(command.outputs) == 1:
            rows.append((command, command.op, command.attrs, command.inputs, command.outputs[0]))
        else:
            return None
    return Columns(*zip(*rows, strict=True)) if rows else None


class Repeats:
    """The structures of one client's batches.

    Args:
        wanted: Whether the server keeps structures; else every batch is sent in full.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self._wanted = wanted
        self._shapes: dict[Any, _Shape] = {}
        self._number = itertools.count()

    def frame(self, head: Batch, columns: Sequence[tuple[Any, ...]], whole: Callable[[], Batch]) -> Frame:
        """Returns a batch as bytes: in full, or as the number of a structure that the server has been sent.

        Args:
            head: The batch; its commands are not looked at.
            columns: What it is compared by, as in `Columns`; empty: it is sent in full.
            whole: Returns the batch with its commands.
        """
        compared = Columns(*columns) if columns else None
        shape = self._shape(head, compared)
        if shape is None or compared is None:
            return encode_batch(whole())
        for known in shape.variants:
            contents = known.contents(compared, head.releases)
            if contents is not None:
                return encode_repeated(known.number, contents, client=head.client, seq=head.seq, nonce=head.nonce)
        return self._marked(shape, whole(), compared) if shape.is_worth_it() else encode_batch(whole())

    def whole(self, batch: Batch, columns: Sequence[tuple[Any, ...]]) -> Frame:
        """Returns a batch in full: the server has not seen its structure, or has forgotten it."""
        compared = Columns(*columns) if columns else None
        shape = self._shape(batch, compared)
        if shape is None or compared is None:
            return encode_batch(batch)
        for known in shape.variants:
            if known.contents(compared, batch.releases) is not None:
                known.refusals += 1
                if known.refusals < _MOST_REFUSALS:
                    return encode_batch(batch, keep=known.number)
                shape.variants = [each for each in shape.variants if each is not known]
                break
        return encode_batch(batch)

    def _shape(self, batch: Batch, columns: Columns | None) -> _Shape | None:
        """Returns what is known of batches with these ops; None: they are not looked for."""
        if columns is None or len(columns.ops) < _FEWEST or not self._wanted:
            return None
        if batch.temporaries or batch.replace or batch.on_failure is not OnFailure.POISON:
            return None
        shape = self._shapes.get(columns.ops)
        if shape is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes = {}
            shape = self._shapes[columns.ops] = _Shape()
        return shape

    def _marked(self, shape: _Shape, batch: Batch, columns: Columns) -> Frame:
        """Returns a batch in full, whose structure the server is to keep."""
        try:
            known = _Known(next(self._number), batch, columns)
        except ValueError:
            return encode_batch(batch)
        frame = encode_batch(batch, keep=known.number)
        if len(frame.buffers[0]) > _MOST_HEADER:
            return encode_batch(batch)
        shape.variants = [known, *shape.variants][:_MOST_VARIANTS]
        return frame


class _Shape:
    """Batches with the same ops.

    Attributes:
        variants: The structures that the server has been sent, the latest first.
    """

    __slots__ = ("_strangers", "variants")

    def __init__(self) -> None:
        self.variants: list[_Known] = []
        self._strangers = 0

    def is_worth_it(self) -> bool:
        """Whether the structure of a batch that has none of these should be sent: of the second, fourth, eighth, ….

        A program without repetition, or one whose shapes grow with each step, would pay for structures in vain.
        """
        self._strangers = count = self._strangers + 1
        return count >= 2 and count & (count - 1) == 0


class _Known:
    """A structure that the server has been sent, as what batches with the same ops are compared with.

    Args:
        number: Its number.
        batch: A batch that has it.
        columns: Of the batch.

    Attributes:
        number: As passed.
        refusals: How often the server did not know it.

    Raises:
        ValueError: The batch has no structure, an op is not in its columns, or something in it is no plain value.
    """

    def __init__(self, number: int, batch: Batch, columns: Columns) -> None:
        self.number, self.refusals = number, 0
        both = structure_of(batch)
        if both is None:
            raise ValueError("a batch that defines a function has no structure")
        structure, _ = both
        self._attrs = columns.attrs
        self._others = _picker([place for place, op in enumerate(columns.ops) if op is None])
        others = self._others(columns.commands)
        self._classes = [*map(type, others)]
        if not _FIELDS.keys() >= {*self._classes}:
            raise ValueError("an op that is not in the columns of ops")
        self._getters = [_PARTS[cls] for cls in self._classes]
        self._rest_getters = [_RESTS[cls] for cls in self._classes]
        self._rests = self._rests_of(others)
        self._lengths, flat = self._split(columns, others, batch.releases)
        self._types = [*map(type, flat)]
        in_structure = columns_of(Batch(structure.commands))
        assert in_structure is not None
        slots_of_others = self._others(in_structure.commands)
        _, slots = self._split(in_structure, slots_of_others, structure.releases)
        starts = [0, *itertools.accumulate(structure.counts)]
        places = [starts[-1] if slot is None else starts[slot.source] + slot.number for slot in slots]
        first: dict[int, int] = {}
        for position, place in enumerate(places):
            first.setdefault(place, position)
        self._first = _picker([first[place] for place in range(starts[-1])])
        self._spread = _picker(places)
        self._bounds = [slice(starts[i], starts[i + 1]) for i in (TAKEN, CREATED, TENSORS, NUMBERS)]
        self._ids = structure.counts[TAKEN] + structure.counts[CREATED]
        self._specs, self._kinds = [*structure.specs], [*structure.kinds]

    def _split(
        self, columns: Columns, others: tuple[Any, ...], releases: Sequence[Any]
    ) -> tuple[list[int], tuple[Any, ...]]:
        """Returns the lengths of lists with ids, tensors and numbers, and these one after the other."""
        parts: list[Sequence[Any]] = [*columns.inputs, *chain.from_iterable(map(operator.call, self._getters, others))]
        parts += (columns.outputs, releases)
        return [*map(len, parts)], tuple(chain.from_iterable(parts))

    def _rests_of(self, others: tuple[Any, ...]) -> bytes:
        """Returns what of the commands other than ops is structure, in bytes: `True` is no 1."""
        return marshal.dumps([*map(operator.call, self._rest_getters, others)], 0)

    def contents(self, columns: Columns, releases: Sequence[Id]) -> Contents | None:
        """Returns what a batch with the same ops has in the slots; None: its structure is another."""
        if not all(map(operator.is_, columns.attrs, self._attrs)):
            return None
        others = self._others(columns.commands)
        if [*map(type, others)] != self._classes:
            return None
        lengths, flat = self._split(columns, others, releases)
        if lengths != self._lengths or [*map(type, flat)] != self._types:
            return None
        try:
            if self._rests_of(others) != self._rests:
                return None
        except ValueError:  # something that is no plain value
            return None
        every = self._first(flat)
        # Each tensor and each number is compared with itself alone, and so by identity.
        if self._spread((*every, None)) != flat or len(set(every[: self._ids])) != self._ids:
            return None
        contents = Contents(*[every[bounds] for bounds in self._bounds])
        if [(tensor.dtype, tensor.shape) for tensor in contents.tensors] != self._specs:
            return None
        return contents if [*map(type, map(_NUMBER, contents.numbers))] == self._kinds else None


_NUMBER: Final = operator.attrgetter("array")
_SLOTS: Final = (FieldKind.ID, FieldKind.FUNCTION_ID, FieldKind.INPUT, FieldKind.TENSOR)


def _picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns a function that picks these members of a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda members: tuple([members[place] for place in places])


def _parts(fields: Sequence[Field]) -> Callable[[Any], list[tuple[Any, ...]]]:
    """Returns a function that reads a command's ids, tensors and numbers, as tuples."""
    slotted = [field for field in fields if field.kind in _SLOTS]
    members = getter([field.name for field in slotted if not field.is_list])
    lists = getter([field.name for field in slotted if field.is_list])
    return lambda command: [members(command), *[() if value is None else value for value in lists(command)]]


def _rest(fields: Sequence[Field]) -> Callable[[Any], Any]:
    """Returns a function that reads a command's other fields, and which lists with slots are null."""
    plain = getter([field.name for field in fields if field.kind not in _SLOTS])
    nullable = getter([field.name for field in fields if field.kind in _SLOTS and field.is_list and field.nullable])
    return lambda command: (plain(command), [value is None for value in nullable(command)])


_FIELDS: Final = {cls: fields_of(cls) for cls in COMMANDS.values() if cls is not Call}
#: How to read the commands other than ops.
_PARTS: Final = {cls: _parts(fields) for cls, fields in _FIELDS.items()}
_RESTS: Final = {cls: _rest(fields) for cls, fields in _FIELDS.items()}
