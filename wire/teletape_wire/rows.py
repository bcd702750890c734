"""From the rows of a frame's header to commands.

Each command has a function of its own, made from the fields of its record, which takes rows that are right. Any other
row goes to `schema.make`, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.commands import COMMANDS, Call, Command, FieldKind, Id, Input, schema
from teletape_engine.commands.fields import Field
from teletape_engine.commands.schema import is_id
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_wire.frame import CODES, MAX_ITEMS, OP

Row: TypeAlias = tuple[Any, ...]

_VERBS: Final = {code: verb for verb, code in CODES.items()}


def commands_of(rows: Iterable[Any]) -> list[Command]:
    """The commands of rows [code, fields ...].

    Raises:
        BadCommandError: A row is no command; the message has its position.
    """
    decoded: list[Command] = []
    try:
        for row in rows:
            if row.__class__ is not tuple or not row:
                raise BadCommandError(f"must be an array [code, fields ...], found {row!r:.60}")
            code = row[0]
            if code.__class__ is int and code in _DECODERS:
                decoded.append(_DECODERS[code](row))
            else:
                decoded.append(_checked(row))
    except BadCommandError as error:
        raise BadCommandError(f"command {len(decoded)}: {error.message}", command=len(decoded)) from None
    return decoded


def ids_of(values: Iterable[Any], what: str) -> tuple[Id, ...]:
    """The values as ids; `what` each of them is, for messages.

    Raises:
        BadCommandError: One of them is none.
    """
    ids = tuple(values)
    for value in ids:
        if (value.__class__ is not int or value < 0) and not is_id(value):
            raise BadCommandError(f"{what} must be an id (a name, or an integer from 0 up), found {value!r:.60}")
    return ids


# ------------------------------------------------------------------------------------------------ rows that are right
class _Unfit(Exception):
    """Raised for a value that needs a closer look."""


def _id(value: Any) -> Any:
    if (value.__class__ is int and value >= 0) or (value.__class__ is str and value):
        return value
    raise _Unfit


def _input(value: Any) -> Any:
    kind = value.__class__
    if (kind is int and value >= 0) or (kind is str and value) or kind is np.ndarray or kind is Literal:
        return value
    if kind is float:
        return Literal(value)
    raise _Unfit


def _tensor(value: Any) -> Any:
    if value.__class__ is np.ndarray or value.__class__ is Literal:
        return value
    if value.__class__ is float:
        return Literal(value)
    raise _Unfit


def _name(value: Any) -> Any:
    if value.__class__ is str and value:
        return value
    raise _Unfit


def _flag(value: Any) -> Any:
    if value.__class__ is bool:
        return value
    raise _Unfit


def _count(value: Any) -> Any:
    if value.__class__ is int and value >= 0:
        return value
    raise _Unfit


def _attributes(value: Any) -> Any:
    if value.__class__ is dict:
        for key in value:
            if key.__class__ is not str:
                raise _Unfit
        return value
    raise _Unfit


_READERS: Final[Mapping[FieldKind, Callable[[Any], Any]]] = {
    FieldKind.ID: _id,
    FieldKind.FUNCTION_ID: _id,
    FieldKind.INPUT: _input,
    FieldKind.TENSOR: _tensor,
    FieldKind.ATTRIBUTES: _attributes,
    FieldKind.NAME: _name,
    FieldKind.FLAG: _flag,
    FieldKind.COUNT: _count,
}


def _reader(field: Field) -> Callable[[Any], Any]:
    """Reads a field."""
    read = _READERS[field.kind]
    if field.is_list:
        read = _listed(_or_none(read) if field.null_members else read)
    return _or_none(read) if field.nullable else read


def _listed(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_list(values: Any) -> Any:
        if values.__class__ is not tuple or len(values) > MAX_ITEMS:
            raise _Unfit
        return tuple([read(value) for value in values])

    return read_list


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _decoder(verb: str) -> Callable[[Row], Command]:
    """Returns the function that reads the rows of one command."""
    fields = schema.FIELDS[verb].values()
    readers = [_reader(field) for field in fields]
    required, most = sum([field.required for field in fields]) + 1, len(readers) + 1
    cls = COMMANDS[verb]

    def decode(row: Row) -> Command:
        if not required <= len(row) <= most:
            return _checked(row)
        try:
            return cls(*[read(value) for read, value in zip(readers, row[1:], strict=False)])
        except _Unfit:
            return _checked(row)

    return decode


def _call(row: Row) -> Command:
    """The row of an op, the command that comes by the thousand."""
    size = len(row)
    if 4 <= size <= 6:
        op, operands, outputs = row[1], row[2], row[3]
        attrs = row[4] if size > 4 else {}
        where = row[5] if size > 5 else None
        if (
            op.__class__ is str
            and op
            and operands.__class__ is tuple
            and outputs.__class__ is tuple
            and attrs.__class__ is dict
            and (where is None or (where.__class__ is str and where))
        ):
            inputs: list[Input] = []
            for operand in operands:
                kind = operand.__class__
                if (kind is int and operand >= 0) or (kind is str and operand):
                    inputs.append(operand)
                elif kind is float:
                    inputs.append(Literal(operand))
                else:
                    inputs.append(_operand(operand))
            for output in outputs:
                if (output.__class__ is not int or output < 0) and (output.__class__ is not str or not output):
                    return _checked(row)
            for key in attrs:
                if key.__class__ is not str:
                    return _checked(row)
            return Call(op, tuple(inputs), outputs, attrs, where)
    return _checked(row)


_DECODERS: Final = {
    CODES[verb]: _decoder(verb)
    for verb, fields in schema.FIELDS.items()
    if all(field.kind in _READERS for field in fields.values())
} | {OP: _call}


# --------------------------------------------------------------------------------------------------------- other rows
def _operand(value: Any) -> Any:
    """An id or a tensor as it is, a number as a Literal.

    Raises:
        BadCommandError: It is none of them.
    """
    kind = type(value)
    if kind is float:
        return Literal(value)
    if kind is tuple:
        if len(value) == 1 and type(value[0]) in (int, bool, float):
            return Literal(value[0])
        if len(value) == 2 and all(type(part) in (int, float) for part in value):
            return Literal(complex(*value))
        raise BadCommandError(f"an input in brackets is [number] or [re, im], found {value!r:.60}")
    if (kind is int and value >= 0) or (kind is str and value) or kind is np.ndarray or kind is Literal:
        return value
    raise BadCommandError(f"an input is an id, a number or a tensor, found {value!r:.60}")


def _steps(value: Any) -> Any:
    return tuple(commands_of(value)) if type(value) is tuple else value


def _field_reader(field: Field) -> Callable[[Any], Any] | None:
    """From a field's msgpack form to what `schema.make` takes; None: they are the same."""
    if field.kind is FieldKind.STEP:
        return _steps
    if field.kind not in (FieldKind.INPUT, FieldKind.TENSOR):
        return None
    if field.is_list:
        return lambda value: (
            tuple([None if member is None else _operand(member) for member in value]) if type(value) is tuple else value
        )
    return lambda value: None if value is None and field.nullable else _operand(value)


_FIELDS: Final = {
    verb: tuple([(name, _field_reader(field)) for name, field in fields.items()])
    for verb, fields in schema.FIELDS.items()
}


def _checked(row: Row) -> Command:
    """The command of any row.

    Raises:
        BadCommandError: It is none.
    """
    verb = _VERBS.get(row[0]) if type(row[0]) is int else None
    if verb is None:
        codes = ", ".join(f"{code} {verb}" for code, verb in _VERBS.items())
        raise BadCommandError(f"unknown command code {row[0]!r:.60}; the codes are {codes}")
    fields = _FIELDS[verb]
    if len(row) - 1 > len(fields):
        names = ", ".join(name for name, _ in fields)
        raise BadCommandError(f"command {verb!r} has {len(fields)} fields ({names}), found {len(row) - 1}")
    values = {
        name: value if read_field is None else read_field(value)
        for (name, read_field), value in zip(fields, row[1:], strict=False)
    }
    return schema.make(verb, values)
