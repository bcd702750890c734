"""What the JSON bodies share: ids, inputs, tensors, and the base classes of requests and answers.

A field of type `Id`, `Input`, … is read into the engine's form when its body is validated. Its JSON Schema is one of
`COMPONENTS`, to which `component` refers.
"""

from __future__ import annotations

import itertools
import json
import typing
from typing import Annotated, Any, Final, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

import teletape_wire as wire
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.recording.values import Literal

#: First character of ids that the server generates; a caller's own ids cannot begin with it.
GENERATED: Final = "_"
MAX_FAULTS: Final = 5  #: Faults of a request that a message lists.
#: Key of a JSON Schema that refers to a component; `http.openapi` replaces it by `$ref`.
COMPONENT: Final = "component"
#: Key of a request's examples by name; `http.openapi` shows them with the operations.
EXAMPLES: Final = "x-examples"


def component(name: str) -> dict[str, Any]:
    """Returns the JSON Schema that refers to a component."""
    return {COMPONENT: name}


#: JSON Schemas that several bodies use, by the name of their component.
COMPONENTS: Final[dict[str, dict[str, Any]]] = {
    "Id": {
        "anyOf": [{"type": "string"}, component("IntegerId")],
        "description": "The id of a tensor, variable, tape or function: a name, or {id: integer}",
    },
    "IntegerId": {
        "type": "object",
        "required": ["id"],
        "additionalProperties": False,
        "properties": {"id": {"type": "integer", "minimum": 0}},
        "description": "An integer id, as the SDK uses them",
    },
    "TensorData": {
        "type": "object",
        "required": ["data"],
        "additionalProperties": False,
        "properties": {
            "dtype": {
                "type": "string",
                "examples": ["float32"],
                "description": "Without it the numbers take the dtype of what they meet; alone the session's",
            },
            "shape": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "Without it: the shape of the nested lists",
            },
            "data": {
                "description": 'Nested or flat numbers; "NaN", "Infinity", "-Infinity" as strings; complex numbers as '
                "[re, im]"
            },
            "encoding": {
                "type": "string",
                "enum": ["base64"],
                "description": "base64: `data` holds the little-endian row-major bytes",
            },
        },
        "description": "A tensor with its dtype and shape",
    },
    "TensorSpec": {
        "type": "object",
        "required": ["dtype", "shape"],
        "additionalProperties": False,
        "properties": {
            "dtype": {"type": "string", "examples": ["float32"]},
            "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        },
        "description": "The dtype and shape of a tensor, without its elements",
    },
    "NumberValue": {
        "type": "object",
        "required": ["number"],
        "additionalProperties": False,
        "properties": {
            "number": {
                "anyOf": [
                    {"type": "number"},
                    {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]},
                    {"type": "array", "minItems": 2, "maxItems": 2, "items": {}},
                ]
            }
        },
        "description": "A number that JSON cannot write: NaN, an infinity, a complex number as [re, im]",
    },
    "NestedList": {
        "type": "array",
        "items": {},
        "description": "Nested lists of numbers without a dtype: they take that of what they meet, alone the "
        "session's; or of booleans",
    },
    "TensorInput": {
        "anyOf": [
            component("TensorData"),
            component("NumberValue"),
            component("NestedList"),
            {"type": "number"},
            {"type": "boolean"},
        ],
        "description": "A tensor or a number",
    },
    "Input": {
        "anyOf": [
            {"type": "string"},
            component("IntegerId"),
            component("TensorData"),
            component("NumberValue"),
            component("NestedList"),
            {"type": "number"},
            {"type": "boolean"},
        ],
        "description": "An id, a tensor or a number",
    },
    "TensorValue": {
        "type": "object",
        "required": ["dtype", "shape"],
        "properties": {
            "dtype": {"type": "string"},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"description": "Nested lists; flat if `complete` is false"},
            "complete": {
                "type": "boolean",
                "description": "false: only the first 1000 elements are shown; full=true returns all",
            },
            "values": component("TensorValue") | {"description": "Of a sparse gradient: its rows"},
            "indices": component("TensorValue") | {"description": "Of a sparse gradient: the numbers of its rows"},
        },
        "description": "A tensor's elements; `values` and `indices` in place of `data` for a sparse gradient",
    },
}


#: An id that a caller may choose.
NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9._-]{0,127}$"


def _read_id(value: Any) -> Any:
    id = None if type(value) is int else wire.id_from_json(value)
    if (type(id) is int and id >= 0) or (isinstance(id, str) and id):
        return id
    raise ValueError(f"must be an id: a name, or {{id: integer}}; found {_shown(value)}")


def _read_input(value: Any) -> Any:
    if isinstance(value, np.ndarray | Literal):  # it was read before: a binary tensor, or one of a known place
        return value
    if isinstance(value, dict) and value.keys() == {"id"}:
        return _read_id(value)
    if isinstance(value, bool | int | float | list | dict) or (isinstance(value, str) and value):
        return wire.input_from_json(value)
    raise ValueError(f"must be an id, a number or a tensor; found {_shown(value)}")


def _read_tensor(value: Any) -> Any:
    tensor = _read_input(value)
    if isinstance(tensor, np.ndarray | Literal):
        return tensor
    raise ValueError(f"must be a number or a tensor {{dtype, shape, data}}; found {_shown(value)}")


def _shown(value: Any) -> str:
    """Returns a JSON value as text, or the kind of a longer one."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value, default=lambda other: "a tensor")[:60]


Name = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="An id of your choice; ids that the server generates begin with _",
    ),
]
Id = Annotated[Any, PlainValidator(_read_id), WithJsonSchema(component("Id"))]
Tensor = Annotated[Any, PlainValidator(_read_tensor), WithJsonSchema(component("TensorInput"))]
TensorOrSpec = Annotated[
    Any,
    PlainValidator(_read_tensor),
    WithJsonSchema({"anyOf": [component("TensorInput"), component("TensorSpec")]}),
]
Input = Annotated[Any, PlainValidator(_read_input), WithJsonSchema(component("Input"))]
TensorValue = Annotated[Any, WithJsonSchema(component("TensorValue"))]
Attributes = Annotated[dict[str, Any], AfterValidator(wire.attributes_from_json)]

#: What numbers without a dtype can become where they meet no tensor.
FloatDtype = typing.Literal["float16", "bfloat16", "float32", "float64"]

Replace = Annotated[
    bool,
    Field(description="Whether new ids may be in use or released: they then name the new thing, if of the same kind"),
]
Outputs = Annotated[
    list[Name | None] | None,
    Field(max_length=MAX_ITEMS, description="Ids for the results, null for none; without it nothing is kept"),
]


def _stop_at_the_first_fault(schema: Any) -> None:
    """Makes the lists in a schema of pydantic's stop at the first member that does not fit."""
    members = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and schema.get("type") == "list":
        schema["fail_fast"] = True
    for member in members:
        if isinstance(member, dict | list | tuple):
            _stop_at_the_first_fault(member)


class Body(BaseModel):
    """A request: the fields that it names, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema; a list has one fault at most, since 200,000 of them would take a second."""
        schema = handler(source)
        _stop_at_the_first_fault(schema)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _with_few_unknown(cls, fields: Any) -> Any:
        """Drops unknown fields after the first ones: each is a fault of its own, and a message lists few of them."""
        if not isinstance(fields, dict) or len(fields) <= len(cls.model_fields) + MAX_FAULTS:
            return fields
        unknown = itertools.islice((name for name in fields if name not in cls.model_fields), MAX_FAULTS)
        return {name: fields[name] for name in [*cls.model_fields.keys() & fields.keys(), *unknown]}


class NumbersBody(Body):
    """A request whose numbers without a dtype take one of its own where they meet no tensor."""

    dtype: Annotated[
        FloatDtype | None,
        Field(description="Of numbers without a dtype that meet no tensor; default: the session's, or float32"),
    ] = None

    @model_validator(mode="wrap")
    @classmethod
    def _with_dtype(cls, fields: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        dtype = fields.get("dtype") if isinstance(fields, dict) else None
        with wire.numbers_alone(dtype if dtype in typing.get_args(FloatDtype) else None):
            return read(fields)


class Results(Body):
    """Which results of a request stay in the session, and under which ids."""

    scratch: Annotated[
        bool, Field(description="Whether the results end with the request; `fetch` still returns them")
    ] = False
    keep: Annotated[
        list[Name] | None,
        Field(max_length=MAX_ITEMS, description="Ids of results that stay; the others end with the request"),
    ] = None
    replace: Replace = False


class Answer(BaseModel):
    """An answer."""


def examples(example: Any = None, /, **named: Any) -> ConfigDict:
    """Returns a request's configuration with one example, or several by name."""
    return ConfigDict(
        extra="forbid", strict=True, json_schema_extra={EXAMPLES: named if example is None else {"example": example}}
    )
