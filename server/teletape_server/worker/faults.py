"""Plain sentences about what is wrong with the fields of a request: what is needed, and what was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

Facts: TypeAlias = Mapping[str, Any]

#: What pydantic calls a fault, and our sentence about it; `facts` are the limits and patterns that it names.
_SENTENCES: Final[dict[str, Callable[[Facts], str]]] = {
    "missing": lambda facts: "is missing, and is needed",
    "extra_forbidden": lambda facts: "is no field of this request: leave it out, or correct its name",
    "string_type": lambda facts: "must be a string",
    "string_pattern_mismatch": lambda facts: f"must match {facts['pattern']}",
    "string_too_short": lambda facts: f"must have at least {facts['min_length']:,} characters",
    "string_too_long": lambda facts: f"must have at most {facts['max_length']:,} characters",
    "int_type": lambda facts: "must be an integer",
    "int_parsing": lambda facts: "must be an integer",
    "int_from_float": lambda facts: "must be an integer",
    "int_parsing_size": lambda facts: "must be an integer with fewer digits",
    "float_type": lambda facts: "must be a number",
    "float_parsing": lambda facts: "must be a number",
    "finite_number": lambda facts: "must be a finite number",
    "bool_type": lambda facts: "must be true or false",
    "bool_parsing": lambda facts: "must be true or false",
    "list_type": lambda facts: "must be a list",
    "dict_type": lambda facts: "must be an object",
    "model_type": lambda facts: "must be an object",
    "model_attributes_type": lambda facts: "must be an object",
    "too_long": lambda facts: f"must have at most {facts['max_length']:,} members",
    "too_short": lambda facts: f"must have at least {facts['min_length']:,} members",
    "greater_than": lambda facts: f"must be greater than {facts['gt']}",
    "greater_than_equal": lambda facts: f"must be at least {facts['ge']}",
    "less_than": lambda facts: f"must be less than {facts['lt']}",
    "less_than_equal": lambda facts: f"must be at most {facts['le']}",
    "literal_error": lambda facts: f"must be {facts['expected']}",
    "enum": lambda facts: f"must be {facts['expected']}",
}
#: Tags of fields that take a list or an object, which are no part of a field's path.
BY_POSITION: Final = "[]"
BY_NAME: Final = "{}"
_NOTHING_SENT: Final = ("missing", "extra_forbidden")
_COUNTED: Final = ("too_long", "too_short")


def described_faults(errors: Iterable[Facts], path: Sequence[str | int] = ()) -> list[dict[str, str]]:
    """Returns for each of pydantic's errors the field, a sentence, and pydantic's name for it; `path` leads there."""
    return [
        {
            "field": path_text(*path, *error["loc"]) or "body",
            "message": _sentence(error),
            "kind": error["type"],
        }
        for error in errors
    ]


def path_text(*path: str | int) -> str:
    """Returns the path to a field as text."""
    return ".".join([str(part) for part in path if part not in (BY_POSITION, BY_NAME)])


def text_of(faults: Iterable[Mapping[str, str]]) -> str:
    """Returns the faults as one text."""
    return "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)


def _sentence(error: Facts) -> str:
    kind, facts = error["type"], error.get("ctx", {})
    sentence = _SENTENCES.get(kind)
    if sentence is None:
        return str(error["msg"]).removeprefix("Value error, ")
    if kind in _NOTHING_SENT:
        return sentence(facts)
    return f"{sentence(facts)}; found {facts['actual_length'] if kind in _COUNTED else _shown(error.get('input'))}"


def _shown(value: Any) -> str:
    """Returns a value as text, or the kind of a longer one."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, np.ndarray):
        return "a tensor"
    return json.dumps(value, default=lambda other: type(other).__name__)[:60]
