"""JSON Schemas of the commands of a batch, generated from the engine's command records."""

from __future__ import annotations

import inspect
from typing import Any, Final

from teletape_engine.commands import COMMANDS, Command, FieldKind
from teletape_engine.commands.fields import Field
from teletape_engine.commands.meanings import meaning
from teletape_engine.commands.schema import FIELDS
from teletape_server.models.base import component

#: The schema of a field, or of each member of a list, by what it holds.
_SCHEMAS: Final[dict[FieldKind, dict[str, Any]]] = {
    FieldKind.ID: component("Id"),
    FieldKind.FUNCTION_ID: component("Id"),
    FieldKind.NAME: {"type": "string"},
    FieldKind.FLAG: {"type": "boolean"},
    FieldKind.COUNT: {"type": "integer", "minimum": 0},
    FieldKind.INPUT: component("Input"),
    FieldKind.TENSOR: component("TensorInput"),
    FieldKind.ATTRIBUTES: {"type": "object", "additionalProperties": {}},
    FieldKind.STEP: component("Step"),
}


def command_components() -> dict[str, dict[str, Any]]:
    """Returns a component for each command, `Command` as one of them, and `Step` for those that a function may have."""
    names = {verb: _name(verb, "Command") for verb in COMMANDS}
    components = {names[verb]: _command(verb, cls) for verb, cls in COMMANDS.items()}
    components["OpStep"] = _op_step(components[names["op"]])
    steps = [component(names[verb]) for verb, cls in COMMANDS.items() if cls.step and verb != "op"]
    return components | {
        "Command": {
            "oneOf": [component(name) for name in names.values()],
            "discriminator": {
                "propertyName": "do",
                "mapping": {verb: f"#/components/schemas/{name}" for verb, name in names.items()},
            },
            "description": "One command; `do` names it",
        },
        "Step": {
            "anyOf": [component("OpStep"), *steps],
            "description": "A step of a function: a command whose ids are names inside the function",
        },
    }


def _name(verb: str, suffix: str) -> str:
    """Returns the component's name: tape.open gives TapeOpenCommand."""
    return "".join(part.capitalize() for part in verb.replace(".", "_").split("_")) + suffix


def _command(verb: str, cls: type[Command]) -> dict[str, Any]:
    fields = FIELDS[verb].values()
    return {
        "type": "object",
        "description": inspect.getdoc(cls),
        "additionalProperties": False,
        "required": ["do", *[field.name for field in fields if field.required]],
        "properties": {
            "do": {"type": "string", "const": verb},
            **{field.name: _field(field) | {"description": meaning(verb, field.name)} for field in fields},
        },
    }


def _field(field: Field) -> dict[str, Any]:
    schema = _SCHEMAS[field.kind]
    if field.is_list:
        schema = {"type": "array", "items": _nullable(schema) if field.null_members else schema}
    return _nullable(schema) if field.nullable else schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _op_step(op: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an op as a step, where `do`, `inputs` and `outputs` may be left out."""
    return op | {"required": ["op"], "description": "An op as a step of a function; `do` is op by default."}
