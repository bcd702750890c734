"""The structures of batches that a session's process keeps, so that a repeated batch travels as a number and contents.

A client marks a batch with a number of its choice; the receiver keeps its structure under that number. Later the client
sends the number and what is in the structure's slots. A receiver may forget a structure at any time: the client is told
so before anything is executed, and sends the whole batch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from teletape_engine.commands import Batch, Id
from teletape_engine.commands.structure import Contents, Structure, structure_of
from teletape_engine.errors import BadCommandError, UnknownStructureError
from teletape_engine.recording.values import Literal
from teletape_wire.errors import WireError
from teletape_wire.rows import ids_of
from teletape_wire.tensors import Array

MOST_STRUCTURES: Final = 64  #: Of all clients of a session; beyond that the one used longest ago is forgotten.
MOST_BYTES: Final = 1 << 20  #: Of the headers that they came in, in all; in memory they take about twenty times more.

_NUMBERS: Final = frozenset((float, int, bool, complex))


class Structures:
    """The structures that one session's process keeps, by client and number."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int], tuple[Structure, int]] = OrderedDict()  # with the header's bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, batch: Batch, number: int, nbytes: int) -> None:
        """Keeps the structure of a client's batch under a number, in place of an earlier one.

        Args:
            batch: The batch.
            number: The client's number for it.
            nbytes: The length of the header that it came in. If that alone is over the limit, it is not kept.

        Raises:
            BadCommandError: The batch has no structure.
        """
        both = structure_of(batch) if nbytes <= MOST_BYTES else None
        if both is None and nbytes <= MOST_BYTES:
            raise BadCommandError(
                "a batch that defines a function or replaces ids cannot be kept as a structure: send it without"
            )
        key = (batch.client, number)
        self._bytes -= self._kept.pop(key, (None, 0))[1]
        if both is None:
            return
        self._kept[key] = (both[0], nbytes)
        self._bytes += nbytes
        while len(self._kept) > MOST_STRUCTURES or self._bytes > MOST_BYTES:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed

    def find(self, client: int, number: int) -> Structure:
        """Returns the structure that a client has sent under a number.

        Raises:
            UnknownStructureError: There is none, or none any more.
        """
        key = (client, number)
        entry = self._kept.get(key)
        if entry is None:
            raise UnknownStructureError(
                f"client {client}: no structure {number} is kept here, or not any more; nothing was executed: send the "
                "whole batch with the same seq and nonce",
                structure=number,
            )
        self._kept.move_to_end(key)
        return entry[0]


def contents_of(structure: Structure, taken: Any, created: Any, numbers: Any, tensors: list[Array]) -> Contents:
    """Returns the parts of a repeated batch's header as contents that fit the structure.

    Raises:
        WireError: A part is no list of ids or numbers.
        BadCommandError: They do not fit.
    """
    most_taken, most_created = structure.counts[:2]
    _check_numbers(numbers)
    contents = Contents(
        _ids(taken, most_taken, "an id from before"),
        _ids(created, most_created, "a new id"),
        tuple(tensors),
        tuple(map(Literal, numbers)),
    )
    fits = (
        tuple(map(type, numbers)) == structure.kinds  # and so their count
        and (len(contents.taken), len(contents.created)) == (most_taken, most_created)
        and tuple([(tensor.dtype, tensor.shape) for tensor in tensors]) == structure.specs
        and len({*contents.taken, *contents.created}) == most_taken + most_created
    )
    if not fits:
        structure.check(contents)  # which says why
    return contents


def _ids(part: Any, most: int, what: str) -> tuple[Id, ...]:
    """Returns the ids of a list: each a member, or many as a pair [first, count]."""
    if part.__class__ is not tuple:
        raise WireError(f"a list of ids is needed, found {part!r:.60}")
    if len(part) == 1 and part[0].__class__ is tuple:
        [pair] = part
        if len(pair) != 2 or not all(value.__class__ is int and value >= 0 for value in pair):
            raise WireError(f"consecutive ids are a pair [first, count], found {pair!r:.60}")
        first, count = pair
        if count != most:  # before they are made
            raise BadCommandError(f"the batch's structure has {most} places for {what}; found {count}")
        return tuple(range(first, first + count))
    return ids_of(part, what)


def _check_numbers(part: Any) -> None:
    if part.__class__ is not tuple or not _NUMBERS.issuperset(map(type, part)):
        raise WireError(f"a list of numbers is needed, found {part!r:.60}")
