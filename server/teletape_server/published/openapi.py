"""An OpenAPI document for one published function: its inputs have names and types in generated clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from teletape_server.models.published.contract import Axis, Declared, Name, Published
from teletape_server.models.published.questions import QUESTIONS
from teletape_server.problems import PROBLEM_TYPE

_KINDS: Final = {"bool": "boolean", "int": "integer", "uint": "integer"}
_ASKED: Final = ("call", "value_and_gradient", "gradient")


def document_of(name: Name, published: Published) -> dict[str, Any]:
    """Returns the document of a version."""
    declared = published.inputs
    schemas: dict[str, Any] = {
        "Inputs": _object({item: _tensor(declared[item]) for item in declared}, required=list(declared)),
        "Outputs": _object({item: _value(published.outputs[item]) for item in published.outputs}),
        "Gradient": _object(
            {
                "source": {"type": "string", "enum": [*declared, *published.weights]},
                "kind": {"type": "string", "enum": ["none", "dense", "slices"]},
                "value": {"anyOf": [_value(None), {"type": "null"}]},
            },
            required=["source", "kind", "value"],
        ),
        "Problem": _object(
            {
                **{item: {"type": "string"} for item in ("type", "title", "detail", "code", "instance")},
                "status": {"type": "integer"},
                "details": {"type": "object", "additionalProperties": True},
            },
            required=["detail", "code", "status"],
        ),
    }
    sources = {"type": "array", "items": {"type": "string", "enum": [*declared, *published.weights]}}
    outputs = {"type": "array", "items": {"type": "string", "enum": list(published.outputs)}}
    example = dict(published.examples[0]["inputs"]) if published.examples else None
    paths = {}
    for question in _ASKED:
        is_call = question == "call"
        members = {"inputs": _reference("Inputs"), "fetch": outputs, "exact": {"type": "boolean"}}
        members |= {} if is_call else {"sources": sources, "targets": outputs}
        request = {"schema": _object(members, required=["inputs"])}
        if example is not None:
            request["example"] = {"inputs": {item: value["data"] for item, value in example.items()}}
        answer = {"values": _reference("Outputs")}
        if not is_call:
            answer["derivatives"] = {"type": "array", "items": _reference("Gradient")}
        paths[f"/v1/published/{name.name}@{published.version}/{question}"] = {
            "post": {
                "operationId": question,
                "summary": QUESTIONS[question].summary,
                "description": QUESTIONS[question].description,
                "parameters": [
                    {
                        "name": "full",
                        "in": "query",
                        "schema": {"type": "boolean"},
                        "description": "Return every element of a large tensor, not only the first 1000",
                    }
                ],
                "requestBody": {"required": True, "content": {"application/json": request}},
                "responses": {
                    "200": {
                        "description": "The answer",
                        "content": {"application/json": {"schema": _object(answer, required=list(answer))}},
                    },
                    "default": {
                        "description": "A problem (RFC 9457)",
                        "content": {PROBLEM_TYPE: {"schema": _reference("Problem")}},
                    },
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": name.name, "version": published.version, "description": name.description or name.name},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}, {}],
    }


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(members: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": dict(members), **({"required": required} if required else {})}


def _tensor(declared: Declared) -> dict[str, Any]:
    """Returns the schema of an input: nested lists of numbers, with the lengths that are known."""
    number = {"type": _KINDS.get(declared.dtype.rstrip("0123456789"), "number")}
    schema: dict[str, Any] = {"type": "array", "items": {}} if declared.dtype.startswith("complex") else number
    for axis in reversed(declared.shape):
        lengths = {"minItems": axis, "maxItems": axis} if isinstance(axis, int) else {}
        schema = {"type": "array", "items": schema, **lengths}
    return {**schema, "description": str(declared)}


def _value(declared: Declared | None) -> dict[str, Any]:
    """Returns the schema of a tensor in an answer; None: it may be any."""
    data: dict[str, Any] = {"description": "Nested lists"} if declared is None else _data(declared)
    members = {
        "dtype": {"type": "string"} if declared is None else {"type": "string", "enum": [declared.dtype]},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "data": data,
        "complete": {"type": "boolean", "description": "false: only the first 1000 elements are shown"},
    }
    return _object(members, required=["dtype", "shape"])


def _data(declared: Declared) -> dict[str, Any]:
    known: tuple[Axis, ...] = declared.shape
    return {"description": f"{declared}: nested lists"} if known else {"description": f"{declared}: a number"}
