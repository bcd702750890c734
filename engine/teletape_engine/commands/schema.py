"""How the fields of a command are checked, by their annotation; and a command made of unchecked ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.commands import COMMANDS, Command, Id, Input, Tensor
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal

MAX_ITEMS: Final = 16_384  #: Members of one list inside a command: inputs, sources, steps, an attribute.


class _MemberError(TypeError):
    """What is wrong with one member of a list, or with their number."""


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


def _step(value: Any) -> Command:
    if isinstance(value, Command) and value.step:
        return value
    raise TypeError(f"a step of a program ({', '.join(verb for verb, cls in COMMANDS.items() if cls.step)})")


def _attrs(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise TypeError("an object of attributes")


def _count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise TypeError("a count, from 0 up")


def _tuple(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def each(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise TypeError("a list, each " + _wanted(read))
        if len(value) > MAX_ITEMS:
            raise _MemberError(f" has at most {MAX_ITEMS:,} members; found {len(value):,}")
        try:
            return tuple([read(one) for one in value])
        except TypeError:
            raise _first_wrong(read, value) from None

    return each


def _first_wrong(read: Callable[[Any], Any], members: Iterable[Any]) -> _MemberError:
    for at, one in enumerate(members):
        try:
            read(one)
        except TypeError as error:
            return _MemberError(f", member {at} must be {error}; found {_shown(one)}")
    raise AssertionError("no member is wrong")


def _shown(value: Any) -> str:
    """What was found, as JSON would have it; of what is no plain value the kind."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float | str):
        return f"{value!r:.60}"
    kinds = {list: "a list", tuple: "a list", dict: "an object", np.ndarray: "a tensor", Literal: "a number"}
    return kinds.get(type(value), type(value).__name__)


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
    "FunctionId": _id,
    "str": _name,
    "bool": _bool,
    "int": _count,
    "Input": _input,
    "Tensor | Literal": _tensor,
    "Mapping[str, Any]": _attrs,
    "tuple[Id, ...]": _tuple(_id),
    "tuple[str, ...]": _tuple(_name),
    "tuple[bool, ...]": _tuple(_bool),
    "tuple[Input, ...]": _tuple(_input),
    "tuple[Id | None, ...]": _tuple(_or_null(_id)),
    "tuple[Input | None, ...]": _tuple(_or_null(_input)),
    "tuple[FunctionId, ...]": _tuple(_id),
    "tuple[Step, ...]": _tuple(_step),
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
            except _MemberError as error:
                raise BadCommandError(f"command {verb!r}, field {name!r}{error}") from None
            except TypeError as error:
                found = _shown(given[name])
                raise BadCommandError(f"command {verb!r}, field {name!r} must be {error}; found {found}") from None
        elif declared.default is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
            raise BadCommandError(f"command {verb!r} needs the field {name!r}")
    return COMMANDS[verb](**values)
