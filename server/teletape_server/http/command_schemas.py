"""JSON Schemas of the commands of a batch, generated from the engine's command records."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Final

from teletape_engine.commands import COMMANDS, Command
from teletape_server.worker.models.base import component

#: The schema of a field by its annotation in the command's record.
_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "Id": component("Id"),
    "FunctionId": component("Id"),
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "minimum": 0},
    "Input": component("Input"),
    "Tensor | Literal": component("TensorInput"),
    "Mapping[str, Any]": {"type": "object", "additionalProperties": {}},
    "Step": component("Step"),
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
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every command is a dataclass
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return {
        "type": "object",
        "description": inspect.getdoc(cls),
        "additionalProperties": False,
        "required": ["do", *required],
        "properties": {"do": {"type": "string", "const": verb}}
        | {field.name: _field(str(field.type)) for field in fields},
    }


def _field(annotation: str) -> dict[str, Any]:
    if annotation.endswith(" | None"):
        return {"anyOf": [_field(annotation.removesuffix(" | None")), {"type": "null"}]}
    if annotation.startswith("tuple["):
        return {"type": "array", "items": _field(annotation.removeprefix("tuple[").removesuffix(", ...]"))}
    return _SCHEMAS[annotation]


def _op_step(op: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an op as a step, where `do`, `inputs` and `outputs` may be left out."""
    return op | {"required": ["op"], "description": "An op as a step of a function; `do` is op by default."}
