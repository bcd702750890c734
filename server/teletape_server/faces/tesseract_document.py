"""The OpenAPI document of a published function as a Tesseract: its clients read inputs, outputs and paths from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from teletape_engine.spec import DIFFERENTIABLE, dtype_of
from teletape_server.models.published.contract import Declared, Name, Published

#: The protocol's dtypes.
DTYPES: Final = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64", "bool"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
)
#: The formats of answers, the first is the default.
FORMATS: Final = ("json+base64", "json")
_JSON: Final = "application/json"
_SUMMARIES: Final = {
    "apply": "Compute the outputs",
    "jacobian": "Compute Jacobians, of shape [output, input]",
    "jacobian_vector_product": "Compute Jacobians times tangents",
    "vector_jacobian_product": "Compute cotangents times Jacobians",
    "abstract_eval": "Return the shapes and dtypes of the outputs",
}
#: The lists of names in a derivative's body, and its vectors.
FIELDS: Final = {
    "jacobian": ("jac_inputs", "jac_outputs", None),
    "jacobian_vector_product": ("jvp_inputs", "jvp_outputs", "tangent_vector"),
    "vector_jacobian_product": ("vjp_inputs", "vjp_outputs", "cotangent_vector"),
}


def is_differentiable(declared: Declared) -> bool:
    """Returns whether derivatives by a tensor, or of it, exist."""
    return dtype_of(declared.dtype) in DIFFERENTIABLE and not declared.dtype.startswith("complex")


def differentiable(tensors: Mapping[str, Declared]) -> list[str]:
    """Returns the names of the tensors that derivatives exist for."""
    return [name for name, item in tensors.items() if is_differentiable(item)]


def document_of(name: Name, published: Published, path: str) -> dict[str, Any]:
    """Returns the document of a version that is mounted at a path."""
    schemas: dict[str, Any] = {
        "Apply_InputSchema": _object({item: _array(value) for item, value in published.inputs.items()}),
        "Apply_OutputSchema": _object({item: _array(value) for item, value in published.outputs.items()}),
        "ApplyInputSchema": _object({"inputs": _reference("Apply_InputSchema")})
        | {"differentiable_arrays": _differentiable_arrays(published.inputs)},
        "ApplyOutputSchema": _reference("Apply_OutputSchema")
        | {"differentiable_arrays": _differentiable_arrays(published.outputs)},
        "AbstractEval_InputSchema": _object(dict.fromkeys(published.inputs, _reference("ShapeDType"))),
        "AbstractInputSchema": _object({"inputs": _reference("AbstractEval_InputSchema")}),
        "AbstractOutputSchema": _object(dict.fromkeys(published.outputs, _reference("ShapeDType"))),
        "ShapeDType": _object({"shape": _SHAPE, "dtype": _DTYPE}),
        "Array": _array(None),
    }
    bodies = {"apply": "ApplyInputSchema", "abstract_eval": "AbstractInputSchema"}
    results = {"apply": "ApplyOutputSchema", "abstract_eval": "AbstractOutputSchema"}
    arrays = {"type": "object", "additionalProperties": _reference("Array")}
    for operation, (sources, targets, vectors) in FIELDS.items():
        members: dict[str, Any] = {
            "inputs": _reference("Apply_InputSchema"),
            sources: _names(differentiable(published.inputs)),
            targets: _names(differentiable(published.outputs)),
        }
        if vectors is not None:
            members[vectors] = arrays
        bodies[operation], results[operation] = f"{operation}_input", f"{operation}_output"
        schemas[bodies[operation]] = _object(members)
        is_nested = vectors is None
        schemas[results[operation]] = {"type": "object", "additionalProperties": arrays} if is_nested else arrays
    paths = {
        f"/{operation}": {
            "post": {
                "operationId": operation,
                "summary": summary,
                "requestBody": {"required": True, "content": _content(bodies[operation])},
                "responses": {"200": {"description": "The answer", "content": _content(results[operation])}},
            }
        }
        for operation, summary in _SUMMARIES.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": name.name, "version": published.version, "description": name.description},
        "servers": [{"url": path}],
        "paths": paths
        | {
            "/health": {
                "get": {
                    "operationId": "health",
                    "summary": "Say that it can be called",
                    "responses": {"200": {"description": "It can"}},
                }
            }
        },
        "components": {"schemas": schemas},
        "x-supported-output-formats": list(FORMATS),
        "x-supported-gpu-transports": ["none"],
        "x-supported-compressions": ["none"],
    }


_DTYPE: Final = {"type": "string", "enum": list(DTYPES)}
_SHAPE: Final = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_DATA: Final = {
    "oneOf": [
        {"type": "object", "properties": {"encoding": {"const": "base64"}, "buffer": {"type": "string"}}},
        {"type": "object", "properties": {"encoding": {"enum": ["json", "raw"]}, "buffer": {}}},
    ]
}


def _array(declared: Declared | None) -> dict[str, Any]:
    """Returns the schema of an array; its shape may have one axis more, which is mapped over."""
    flags = ["DIFFERENTIABLE"] if declared is not None and is_differentiable(declared) else []
    members = {"object_type": {"const": "array", "type": "string"}, "shape": _SHAPE, "dtype": _DTYPE, "data": _DATA}
    schema = {"type": "object", "properties": members, "required": ["shape", "dtype", "data"], "array_flags": flags}
    return schema if declared is None else schema | {"description": str(declared)}


def _differentiable_arrays(tensors: Mapping[str, Declared]) -> dict[str, Any]:
    return {
        name: {"dtype": tensors[name].dtype, "shape": tensors[name].lengths({})} for name in differentiable(tensors)
    }


def _names(names: list[str]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1, "uniqueItems": True}


def _object(members: Mapping[str, Any]) -> dict[str, Any]:
    closed = {"type": "object", "additionalProperties": False}
    return closed | {"properties": dict(members), "required": list(members)}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": _reference(name)}}
