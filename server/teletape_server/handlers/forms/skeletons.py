"""Bodies without their numbers, and where those go.

Bodies with the same skeleton differ in their numbers alone: one that has been read and checked says how all are read.
Of JSON it is the text around numbers, a number being a whole list of them, nested or not, or one outside of such lists;
of named tensors it is the header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel

import teletape_wire as wire
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DType, dtype_of
from teletape_server.handlers.bodies import fields_of
from teletape_server.handlers.methods import Request
from teletape_server.models.base import FloatDtype
from teletape_server.tensor_files.metadata import REQUEST
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import TensorFile, header_length, read_header, tensors_of

_MOST_TEXT: Final = 128 << 10  #: Bytes of a body that may have a form: the numbers of a larger one cost more than it.
_MOST_SKELETON: Final = 16 << 10  # bytes of it without its numbers
_MOST_SLOTS: Final = 256
_DEEPEST: Final = 8  # axes of a list of numbers


def _rest_of_list(depth: int) -> bytes:
    """Returns the pattern of a list of numbers of at most `depth` axes, from its second character on.

    It never goes back in the text.
    """
    inner = rb"[-+0-9.eE,\s]++"
    return rb"(?:%b)*+\]" % (inner + rb"|\[" + _rest_of_list(depth - 1) if depth > 1 else inner)


#: A number or list of them, after what may come before a value. First comes what it may begin with, so that all other
#: text is passed at once.
_NUMBERS: Final = re.compile(
    rb"([-0-9\[](?<=[:,\[\s].)(?:(?<=\[)%b|(?<=-)[0-9][-+0-9.eE]*+|(?<=[0-9])[-+0-9.eE]*+))" % _rest_of_list(_DEEPEST)
)
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"')

#: A place in the fields of a body where an input may be: what contains it, and its name or number there.
Place: TypeAlias = tuple[Any, Any]
#: Returns the places of a body's fields, in their order.
Places: TypeAlias = Callable[[Any], Iterable[Place]]


class Skeleton(NamedTuple):
    """A body's text, cut at its numbers.

    Attributes:
        parts: What is before, between and after the numbers.
        numbers: Their texts; some may lie in a string.
    """

    parts: tuple[bytes, ...]
    numbers: list[bytes]


def skeleton_of(request: Request) -> Skeleton | None:
    """Returns the skeleton of a request's body; None: it has none that is worth to be known."""
    body = request.body
    if request.content_type == wire.JSON_TYPE:
        if len(body) > _MOST_TEXT or request.params.get("query") or request.params.get(REQUEST) is not None:
            return None
        parts = _NUMBERS.split(bytes(body))
        around, numbers = tuple(parts[::2]), parts[1::2]
        is_large = len(numbers) > _MOST_SLOTS or sum(map(len, around)) > _MOST_SKELETON
        return None if is_large else Skeleton(around, numbers)
    if request.content_type == SAFETENSORS_TYPE and not request.params.get("query"):
        with suppress(TeletapeError):
            header = bytes(body[: header_length(body)])
            text = str(request.params.get(REQUEST)).encode(errors="surrogatepass")
            return Skeleton((header, text, b"%d" % len(body)), []) if len(header) <= _MOST_SKELETON else None
    return None


class _Slot(NamedTuple):
    """Where an operand is.

    Attributes:
        number: Of its number in the skeleton.
        member: If that is a list of operands, its position there.
        dtype, shape: What its object says of it.
    """

    number: int
    member: int | None = None
    dtype: DType | None = None
    shape: list[int] | None = None

    def read(self, values: Sequence[Any]) -> Any:
        """Returns the operand, from the numbers of a body."""
        value = values[self.number]
        return wire.tensor_from_numbers(value if self.member is None else value[self.member], self.dtype, self.shape)


class Contents(NamedTuple):
    """What differs between bodies of one skeleton.

    Attributes:
        operands: Tensors and numbers, as commands have them.
        fixed: The texts of the numbers that belong to what the body asks, such as an axis.
    """

    operands: list[Any]
    fixed: tuple[bytes, ...] = ()


class Slots(Protocol):
    """Where the numbers of all bodies of one skeleton are."""

    def contents(self, request: Request, numbers: Sequence[bytes]) -> Contents:
        """Returns a body's numbers, given the texts of those in JSON.

        Raises:
            TeletapeError: They are no tensors or numbers.
        """

    def fields(self, request: Request, model: type[BaseModel], operands: Sequence[Any]) -> Any:
        """Returns a body's fields, as `fields_of` does, with the operands in their places."""


class FileSlots:
    """Where the tensors of bodies in the safetensors format are whose header is the same.

    Args:
        request: One with such a body.

    Raises:
        TeletapeError: It is not in the format.
    """

    def __init__(self, request: Request) -> None:
        self._header = read_header(request.body)

    def contents(self, request: Request, _: Sequence[bytes]) -> Contents:
        """See `Slots`."""
        return Contents([*tensors_of(self._header, request.body, copy_below=request.copy_below).values()])

    def fields(self, request: Request, model: type[BaseModel], operands: Sequence[Any]) -> Any:
        """See `Slots`."""
        names = [entry.name for entry in self._header.entries]
        file = TensorFile(dict(zip(names, operands, strict=True)), self._header.metadata)
        return fields_of(request, model, file)


class TextSlots:
    """Where the numbers of bodies in JSON go.

    Args:
        skeleton: Of a body.
        places: Returns the places of inputs.

    Raises:
        TeletapeError: That is not known.
    """

    def __init__(self, skeleton: Skeleton, places: Places) -> None:
        parts, numbers = skeleton
        if any(b"\\u0000" in part for part in parts):
            raise wire.MalformedJsonError("its skeleton is not kept")
        values = _parsed(numbers)
        text, marks = _marked(skeleton)
        fields = _with_numbers(wire.parse_json(text), {mark: values[number] for mark, number in marks.items()}, marks)
        dtype = fields.get("dtype") if isinstance(fields, dict) else None
        self._alone = dtype if dtype in get_args(FloatDtype) else None
        self._places, self._slots = places, list[_Slot]()
        self._order: list[int | None] = []  # for each place the number of its operand; None: it is the same in all
        self._lengths: dict[int, int] = {}  # of the lists of operands
        for container, key in places(fields):
            slot = _slot(container, key)
            if isinstance(container, _List):
                self._lengths[container.number] = len(container)
            self._order.append(None if slot is None else len(self._slots))
            if slot is not None:
                self._slots.append(slot)
        used = {slot.number for slot in self._slots}
        self._fixed = [number for number in range(len(numbers)) if number not in used]

    def contents(self, request: Request, numbers: Sequence[bytes]) -> Contents:
        """See `Slots`."""
        values = _parsed(numbers)
        lists = [(values[number], length) for number, length in self._lengths.items()]
        if any(not isinstance(members, list) or len(members) != length for members, length in lists):
            raise wire.MalformedJsonError("it has another count of operands")
        with wire.numbers_alone(self._alone):
            operands = [slot.read(values) for slot in self._slots]
        return Contents(operands, tuple([numbers[number] for number in self._fixed]))

    def fields(self, request: Request, model: type[BaseModel], operands: Sequence[Any]) -> Any:
        """See `Slots`."""
        fields = fields_of(request, model)
        for (container, key), number in zip([*self._places(fields)], self._order, strict=True):
            if number is not None:
                container[key] = operands[number]
        return fields


def _parsed(numbers: Sequence[bytes]) -> Sequence[Any]:
    values = wire.parse_numbers(numbers)
    if values is None:
        raise wire.MalformedJsonError("no valid JSON")
    return values


def _marked(skeleton: Skeleton) -> tuple[bytes, Mapping[str, int]]:
    """Returns the body with a string in the place of each number that is not in a string; and these numbers by it."""
    parts, numbers = skeleton
    body = b"".join([text for pair in zip(parts, [*numbers, b""], strict=True) for text in pair])
    strings = [match.span() for match in _STRING.finditer(body)]
    marked, marks, position = [parts[0]], dict[str, int](), len(parts[0])
    for number, (text, after) in enumerate(zip(numbers, parts[1:], strict=True)):
        if any(begin < position < end for begin, end in strings):
            marked.append(text)
        else:
            marks[f"\0{number}"] = number
            marked.append(b'"\\u0000%d"' % number)
        marked.append(after)
        position += len(text) + len(after)
    return b"".join(marked), marks


class _List(list[Any]):
    """A number of a skeleton that is a list.

    Attributes:
        number: Its number.
    """

    number = -1


class _Number(NamedTuple):
    """A number of a skeleton that is no list."""

    number: int
    value: Any


def _with_numbers(value: Any, values: Mapping[str, Any], marks: Mapping[str, int]) -> Any:
    """Returns JSON with the numbers in the places of their marks."""
    if isinstance(value, dict):
        return {name: _with_numbers(member, values, marks) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_numbers(member, values, marks) for member in value]
    if not isinstance(value, str) or value not in marks:
        return value
    if not isinstance(values[value], list):
        return _Number(marks[value], values[value])
    members = _List(values[value])
    members.number = marks[value]
    return members


def _slot(container: Any, key: Any) -> _Slot | None:
    """Returns the slot of an input that has only numbers; None: it is something else."""
    value = container[key]
    if isinstance(container, _List):
        return _Slot(container.number, key)
    if isinstance(value, _List | _Number):
        return _Slot(value.number)
    if not isinstance(value, dict) or not value.keys() <= {"dtype", "shape", "data"}:
        return None
    data, dtype, shape = value.get("data"), value.get("dtype"), value.get("shape")
    if not isinstance(data, _List | _Number):
        return None
    tensor = {**value, "data": [*data] if isinstance(data, _List) else data.value}
    with suppress(TeletapeError):
        wire.tensor_from_json(tensor)
        return _Slot(data.number, None, None if dtype is None else dtype_of(dtype), shape and [*shape])
    return None


def slots_of(request: Request, skeleton: Skeleton, places: Places) -> Slots:
    """Returns where the numbers of bodies of a skeleton are, from one of them.

    Raises:
        TeletapeError: That is not known.
    """
    return TextSlots(skeleton, places) if request.content_type == wire.JSON_TYPE else FileSlots(request)


def kind_of(operand: Any) -> Any:
    """Returns what commands depend on of a tensor or number: all but its elements."""
    if operand.__class__ is np.ndarray:
        return operand.dtype, operand.shape
    assert isinstance(operand, Literal), "a tensor or a number"
    return operand.spec, operand.array.__class__
