"""The closed vocabulary: every command by its name, its fields, and a command made from unchecked fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import custom, functions, questions, session, tapes, values
from teletape_engine.commands.base import Command, FieldKind, Id
from teletape_engine.commands.fields import Field, fields_of
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_engine.suggestions import did_you_mean


def _commands_of(module: ModuleType) -> Iterator[type[Command]]:
    """The commands that a module defines, in its order."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Command) and value.__module__ == module.__name__:
            yield value


#: Every command by its name, in the order in which messages and pages list them.
COMMANDS: Final[dict[str, type[Command]]] = {
    cls.verb: cls for module in (values, tapes, session, questions, functions, custom) for cls in _commands_of(module)
}
FIELDS: Final[dict[str, dict[str, Field]]] = {
    verb: {field.name: field for field in fields_of(cls)} for verb, cls in COMMANDS.items()
}
MAX_ITEMS: Final = 16_384  #: Members of one list inside a command: inputs, sources, steps, an attribute.


# -------------------------------------------------------------------------------------------------------- ids of fields
def _names_of_fields(condition: Callable[[Field], bool]) -> dict[str, tuple[str, ...]]:
    return {verb: tuple([name for name in fields if condition(fields[name])]) for verb, fields in FIELDS.items()}


def getter(names: Sequence[str]) -> Callable[[Command], tuple[Any, ...]]:
    """Returns a function that reads these fields of a command."""
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda command: (get(command),)


#: For each command the fields that hold functions.
FUNCTION_FIELDS: Final = _names_of_fields(lambda field: field.kind is FieldKind.FUNCTION_ID)
_ID_FIELDS: Final = _names_of_fields(lambda field: field.kind in (FieldKind.ID, FieldKind.FUNCTION_ID, FieldKind.INPUT))
_ID_VALUES: Final = {verb: getter(names) for verb, names in _ID_FIELDS.items()}
_CREATED_FIELDS: Final = _names_of_fields(lambda field: field.created)


def mentions(command: Command) -> list[Id]:
    """Every id that the command names, whether it uses or creates it."""
    members: list[Any] = []
    if command.__class__ is values.Call:
        members += command.inputs
        members += command.outputs
    else:
        if isinstance(command, functions.DefineFunction):
            for step in command.steps:
                members += functions_of(step)
        for value in _ID_VALUES[command.verb](command):
            members += value if value.__class__ is tuple else (value,)
    return [member for member in members if member.__class__ is int or member.__class__ is str]


def functions_of(command: Command) -> Iterator[Any]:
    """The functions that the command takes; None for a field that is null."""
    for name in FUNCTION_FIELDS[command.verb]:
        value = getattr(command, name)
        yield from value if value.__class__ is tuple else (value,)


def outputs(command: Command) -> tuple[Id, ...]:
    """The ids that the command creates."""
    created: list[Id] = []
    for name in _CREATED_FIELDS[command.verb]:
        value = getattr(command, name)
        created += [each for each in value if each is not None] if value.__class__ is tuple else [value]
    return tuple(created)


# --------------------------------------------------------------------------------------------------------------- checks
class _MemberError(TypeError):
    """What is wrong with one member of a list, or with their number."""


def is_id(value: Any) -> bool:
    """Whether a value can be an id: a name, or an integer from 0 up."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return (is_int and value >= 0) or (isinstance(value, str) and value != "")


_FITS: Final[dict[FieldKind, Callable[[Any], bool]]] = {
    FieldKind.ID: is_id,
    FieldKind.FUNCTION_ID: is_id,
    FieldKind.INPUT: lambda value: isinstance(value, Literal | np.ndarray) or is_id(value),
    FieldKind.TENSOR: lambda value: isinstance(value, Literal | np.ndarray),
    FieldKind.STEP: lambda value: isinstance(value, Command) and value.step,
    FieldKind.ATTRIBUTES: lambda value: isinstance(value, Mapping) and all(isinstance(key, str) for key in value),
    FieldKind.NAME: lambda value: isinstance(value, str) and value != "",
    FieldKind.FLAG: lambda value: isinstance(value, bool),
    FieldKind.COUNT: lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
}
_STEPS: Final = ", ".join(verb for verb, cls in COMMANDS.items() if cls.step)
_EXPECTED: Final[dict[FieldKind, str]] = {kind: kind.value for kind in FieldKind} | {
    FieldKind.STEP: f"{FieldKind.STEP.value} ({_STEPS})"
}


def _checked(field: Field, value: Any) -> Any:
    """The value as the record holds it: a list as a tuple.

    Raises:
        TypeError: It does not fit; the message is what was expected.
    """
    if value is None and field.nullable:
        return None
    fits, expected = _FITS[field.kind], _EXPECTED[field.kind]
    if not field.is_list:
        if not fits(value):
            raise TypeError(expected)
        return value
    if not isinstance(value, list | tuple):
        raise TypeError("a list, each " + expected)
    if len(value) > MAX_ITEMS:
        raise _MemberError(f" has at most {MAX_ITEMS:,} members; found {len(value):,}")
    for position, member in enumerate(value):
        if not (fits(member) or (member is None and field.null_members)):
            raise _MemberError(f", member {position} must be {expected}; found {_shown(member)}")
    return tuple(value)


def _shown(value: Any) -> str:
    """A value as JSON has it, or its kind if it is no plain value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float | str):
        return f"{value!r:.60}"
    kinds = {list: "a list", tuple: "a list", dict: "an object", np.ndarray: "a tensor", Literal: "a number"}
    return kinds.get(type(value), type(value).__name__)


def fields(verb: str, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of a command's fields, in the order of the wire's positional form.

    Args:
        verb: The command's name.
        also: Further names that its caller takes for commands.

    Raises:
        BadCommandError: There is no such command.
    """
    if verb not in FIELDS:
        hint = did_you_mean(verb, names := [*also, *COMMANDS]) or f"the commands are {', '.join(names)}"
        raise BadCommandError(f"unknown command {verb!r}: {hint}")
    return tuple(FIELDS[verb])


def make(verb: str, contents: Mapping[str, Any]) -> Command:
    """The command with these fields, checked.

    Raises:
        BadCommandError: The command is unknown; or a field is missing, unknown or of the wrong kind.
    """
    names = fields(verb)
    for name in contents:
        if name not in names:
            op = CATALOGUE.get(str(contents.get("op"))) if verb == "op" else None
            if op is not None and name in [attr.name for attr in op.schema.attrs]:
                hint = f'put this attribute of the op into "attrs": {{"{name}": …}}'
            else:
                hint = did_you_mean(name, names) or f"it takes: {', '.join(names)}"
            raise BadCommandError(f"command {verb!r} has no field {name!r}; {hint}")
    checked: dict[str, Any] = {}
    for name, field in FIELDS[verb].items():
        if name in contents:
            try:
                checked[name] = _checked(field, contents[name])
            except _MemberError as error:
                raise BadCommandError(f"command {verb!r}, field {name!r}{error}") from None
            except TypeError as error:
                shown = _shown(contents[name])
                raise BadCommandError(f"command {verb!r}, field {name!r} must be {error}; found {shown}") from None
        elif field.required:
            raise BadCommandError(f"command {verb!r} needs the field {name!r}")
    return COMMANDS[verb](**checked)
