"""The fields of a request whose tensors came in a safetensors body: each tensor is put in its place in the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import teletape_wire as wire
from teletape_server.tensor_files.errors import InvalidRequestError
from teletape_server.tensor_files.metadata import REQUEST
from teletape_wire.safetensors.layout import METADATA
from teletape_wire.safetensors.reader import TensorFile
from teletape_wire.tensors import Array

#: The fields for tensors without a place in their name, by preference.
_FIELDS: Final = ("inputs", "tensors", "variables", "value")
_DEEPEST: Final = 8  # parts of a place after the field
_ONE: Final = "value"  # the field among them that takes one tensor, of any name


def request_fields(
    file: TensorFile, members: Iterable[str], query: Mapping[str, Any], request_text: str | None
) -> dict[str, Any]:
    """Returns a request's fields with arrays in the places of its tensors.

    {"tensor": name} in the JSON refers to a tensor. One that nothing refers to has its place as its name
    (`inputs/x`, `vectors/0`); another name is that of an input, or of a tensor to create.

    Args:
        file: The body.
        members: The names of the fields that the request may have.
        query: Fields that came in the query.
        request_text: The query parameter `request`: JSON, as in the metadata; None: there is none.

    Raises:
        InvalidRequestError: The JSON is no object, a field came twice, a tensor has no place, or none has a name.
        MalformedJsonError: The JSON in the metadata or in the query is no JSON.
    """
    fields = _json_fields(file.metadata.get(REQUEST), request_text)
    twice = [name for name in query if name in fields]
    if twice:
        raise InvalidRequestError(f"{', '.join(twice)}: in the query and in {REQUEST}: send it once")
    used: set[str] = set()
    try:
        fields = {name: _with_tensors(value, file.tensors, used) for name, value in fields.items()} | dict(query)
    except RecursionError:
        raise wire.MalformedJsonError(f"{REQUEST}: it is nested too deep") from None
    known = set(members)
    placed: dict[str, Any] = {}
    for name, array in file.tensors.items():
        if name not in used:
            _place(name, array, known, placed)
    for field, value in placed.items():
        _merge(fields, field, value)
    return fields


def _json_fields(in_metadata: str | None, in_query: str | None) -> dict[str, Any]:
    if in_metadata is not None and in_query is not None:
        raise InvalidRequestError(f"{REQUEST}: it is in {METADATA} and in the query: send it once")
    text = in_query if in_metadata is None else in_metadata
    place = f"the query's {REQUEST}" if in_metadata is None else f"{METADATA}.{REQUEST}"
    if text is None:
        return {}
    try:
        fields = wire.parse_json(text.encode(errors="surrogatepass"))
    except wire.MalformedJsonError as error:
        raise wire.MalformedJsonError(f"{place}: {error.message}") from None
    if not isinstance(fields, dict):
        raise InvalidRequestError(f"{place} is a JSON object with the request's other fields; found {text:.60}")
    return fields


def _with_tensors(value: Any, tensors: Mapping[str, Array], used: set[str]) -> Any:
    """Returns JSON with the tensors in the places of references to them, and notes their names."""
    if isinstance(value, list):
        return [_with_tensors(member, tensors, used) for member in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"tensor"} or not isinstance(value["tensor"], str):
        return {name: _with_tensors(member, tensors, used) for name, member in value.items()}
    name = value["tensor"]
    if name not in tensors:
        names = ", ".join(map(repr, list(tensors)[:20])) or "none"
        raise InvalidRequestError(f"{REQUEST} refers to the tensor {name!r:.100}; the body has {names:.500}")
    used.add(name)
    return tensors[name]


def _place(name: str, array: Array, members: set[str], placed: dict[str, Any]) -> None:
    """Puts a tensor in the place that its name says.

    Raises:
        InvalidRequestError: Nothing in this request can be meant, or it is the place of another tensor too.
    """
    field, *path = name.split("/")
    if len(path) > _DEEPEST:
        raise InvalidRequestError(f"tensor {name!r:.100}: a place has at most {_DEEPEST + 1} parts")
    if field not in members:
        default = next((field for field in _FIELDS if field in members), None)
        if default is None:
            raise InvalidRequestError(
                f'tensor {name!r:.100}: nothing refers to it; write {{"tensor": {name!r:.100}}} where it is meant in '
                f"{METADATA}.{REQUEST}"
            )
        field, path = default, [] if default == _ONE else [name]
    if not path:
        if field in placed:
            raise InvalidRequestError(f"{field}: it is one tensor, and the body has more; found also {name!r:.100}")
        placed[field] = array
        return
    level = placed.setdefault(field, {})
    for part in path[:-1]:
        level = level.setdefault(part, {}) if isinstance(level, dict) else level
    if not isinstance(level, dict) or path[-1] in level:
        raise InvalidRequestError(f"tensor {name!r:.100}: its place is a part of another tensor's, or the same")
    level[path[-1]] = array


def _merge(fields: dict[str, Any], field: str, value: Any) -> None:
    """Adds tensors to a field: to an object member by member, else the field is new."""
    value = _as_lists(value)
    present = fields.get(field)
    if present is None:
        fields[field] = value
        return
    if not isinstance(present, dict) or not isinstance(value, dict) or present.keys() & value.keys():
        names = ", ".join(map(str, value)) if isinstance(value, dict) else "a tensor"
        raise InvalidRequestError(
            f"{field}: it is in {REQUEST}, and the body has tensors for it too ({names:.200}): refer to them "
            'there with {"tensor": name}'
        )
    fields[field] = present | value


def _as_lists(value: Any) -> Any:
    """Returns nested objects with those as lists whose members are numbered from 0."""
    if not isinstance(value, dict):
        return value
    members = {name: _as_lists(member) for name, member in value.items()}
    numbers = [str(number) for number in range(len(members))]
    return [members[number] for number in numbers] if members.keys() == set(numbers) else members
