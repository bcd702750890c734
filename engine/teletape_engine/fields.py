"""How the fields of a command are checked, by their annotation; and a command made of unchecked ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.commands import COMMANDS, Call, Command, Id, Input, Tensor
from teletape_engine.errors import BadCommandError
from teletape_engine.graph import Literal


def _id(value: Any) -> Id:
    if (isinstance(value, int) and not isinstance(value, bool) and value >= 0) or (isinstance(value, str) and value):
        return value
    raise TypeError("an id: a name, or an integer from 0 up")


def _name(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise TypeError("a name")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("true or false")


def _input(value: Any) -> Input:
    if isinstance(value, Literal | np.ndarray):
        return value
    try:
        return _id(value)
    except TypeError:
        raise TypeError("an id, a number or a tensor") from None


def _tensor(value: Any) -> Tensor | Literal:
    if isinstance(value, Literal | np.ndarray):
        return value
    raise TypeError("a number or a tensor {dtype, shape, data}")


def _call(value: Any) -> Call:
    if isinstance(value, Call):
        return value
    raise TypeError("an op call")


def _attrs(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise TypeError("an object of attributes")


def _count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise TypeError("a count")


def _tuple(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def each(value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple):
            return tuple([read(one) for one in value])
        raise TypeError("a list, each " + _wanted(read))

    return each


def _wanted(read: Callable[[Any], Any]) -> str:
    try:
        read(object())
    except TypeError as error:
        return str(error)
    raise AssertionError("a reader that takes anything")


def _or_null(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def maybe(value: Any) -> Any:
        return None if value is None else read(value)

    return maybe


#: How a field is read, by its annotation.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "Id": _id,
    "str": _name,
    "bool": _bool,
    "int": _count,
    "Input": _input,
    "Tensor | Literal": _tensor,
    "Mapping[str, Any]": _attrs,
    "tuple[Id, ...]": _tuple(_id),
    "tuple[str, ...]": _tuple(_name),
    "tuple[Input, ...]": _tuple(_input),
    "tuple[Id | None, ...]": _tuple(_or_null(_id)),
    "tuple[Input | None, ...]": _tuple(_or_null(_input)),
    "tuple[Call, ...]": _tuple(_call),
}


def reader(annotation: str) -> Callable[[Any], Any]:
    """The function that checks and canonicalises a field annotated so."""
    if annotation.endswith(" | None"):
        return _or_null(reader(annotation.removesuffix(" | None")))
    return _READERS[annotation]


_FIELDS: Final = {
    verb: {f.name: (reader(str(f.type)), f) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def fields(verb: str) -> tuple[str, ...]:
    """The field names of a command, in order: the wire's positional form.

    Raises:
        BadCommandError: There is no such command.
    """
    if verb not in _FIELDS:
        raise BadCommandError(f"unknown command {verb!r}: the commands are {', '.join(COMMANDS)}")
    return tuple(_FIELDS[verb])


def make(verb: str, given: Mapping[str, Any]) -> Command:
    """The command with these fields, checked.

    Raises:
        BadCommandError: An unknown command, or a field missing, unknown or of the wrong kind.
    """
    fields(verb)
    known = _FIELDS[verb]
    for name in given:
        if name not in known:
            raise BadCommandError(f"command {verb!r} has no field {name!r}; it takes: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, (read, declared) in known.items():
        if name in given:
            try:
                values[name] = read(given[name])
            except TypeError as error:
                found = type(given[name]).__name__
                raise BadCommandError(f"command {verb!r}, field {name!r} must be {error}; found {found}") from None
        elif declared.default is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
            raise BadCommandError(f"command {verb!r} needs the field {name!r}")
    return COMMANDS[verb](**values)
