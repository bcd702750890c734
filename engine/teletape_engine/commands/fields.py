"""The fields of a command, read off the types of its record: what they hold, whether they are lists, their defaults."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from teletape_engine.commands.base import CREATED, Command, FieldKind

_PLAIN: Final[dict[Any, FieldKind]] = {str: FieldKind.NAME, bool: FieldKind.FLAG, int: FieldKind.COUNT}


class Field(NamedTuple):
    """One field of a command.

    Attributes:
        name: Its name on the wire and in the record.
        kind: What it holds; of a list, what each member holds.
        created: Whether it holds ids that the command creates.
        is_list: Whether it is a list.
        null_members: Whether members of the list may be null.
        nullable: Whether the field may be null.
        default: Its default value; `dataclasses.MISSING` if there is none.
    """

    name: str
    kind: FieldKind
    created: bool
    is_list: bool
    null_members: bool
    nullable: bool
    default: Any

    @property
    def required(self) -> bool:
        """Whether the field has no default."""
        return self.default is dataclasses.MISSING


def fields_of(cls: type[Command]) -> tuple[Field, ...]:
    """The fields of a command's record, in the order of the wire's positional form."""
    hints = get_type_hints(cls, include_extras=True)
    declared = dataclasses.fields(cls)  # type: ignore[arg-type]  # every command is a dataclass, their base is not
    return tuple([_field(field, hints[field.name]) for field in declared])


def _field(declared: dataclasses.Field[Any], hint: Any) -> Field:
    default = declared.default
    if declared.default_factory is not dataclasses.MISSING:
        default = declared.default_factory()
    hint, nullable = _without_none(hint)
    is_list = null_members = False
    if get_origin(hint) is tuple:
        is_list = True
        hint, null_members = _without_none(get_args(hint)[0])
    markers = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return Field(declared.name, _kind(hint, markers), CREATED in markers, is_list, null_members, nullable, default)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None was a part of it."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    if type(None) not in members:
        return hint, False
    [rest] = [member for member in members if member is not type(None)]
    return rest, True


def _kind(hint: Any, markers: tuple[Any, ...]) -> FieldKind:
    for marker in markers:
        if isinstance(marker, FieldKind):
            return marker
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is Mapping:
        return FieldKind.ATTRIBUTES
    raise TypeError(f"the field of a command has the type {hint}, which is of no kind")
