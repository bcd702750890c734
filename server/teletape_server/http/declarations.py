"""What routes declare for the OpenAPI document about bodies that only the session's process reads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, WithJsonSchema

import teletape_wire as wire
from teletape_server.handlers.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER
from teletape_server.http.progress import Progress
from teletape_server.http.schemas import Problem
from teletape_server.models.base import component
from teletape_server.models.tapes.graphs import DOT_TYPE, SVG_TYPE
from teletape_server.problems import PROBLEM_TYPE, PROBLEMS
from teletape_server.tensor_files.metadata import ANSWER, REQUEST
from teletape_wire.safetensors.layout import METADATA, SAFETENSORS_TYPE

REFERENCE: Final = "#/components/schemas/{model}"
#: The models that routes have declared, by the name of their component.
DECLARED: Final[dict[str, type[BaseModel]]] = {}
TEXTS: Final = (DOT_TYPE, SVG_TYPE)  #: Types of answers that are text.
_NAMED_IN: Final = f"Named tensors, with the other fields as JSON in {METADATA}.{REQUEST}"
_NAMED_OUT: Final = f"The tensors by name, and the rest of the answer as JSON in {METADATA}.{ANSWER}"
#: The components in requests and in answers that are, or have, tensors.
_TENSORS_IN: Final = ("Input", "TensorInput", "Step", "Command", "VjpsQuestionItem")
_TENSORS_OUT: Final = ("TensorValue",)
_REQUEST_PARAMETER: Final = {
    "name": REQUEST,
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": f"For a body of the type {SAFETENSORS_TYPE}: the request's other fields as a JSON object, if its "
    f"{METADATA} does not have them",
}

#: Of every operation of the document.
EVERY: Final[dict[int | str, dict[str, Any]]] = {"default": {"model": Problem, "description": "A problem (RFC 9457)"}}
#: Of every operation whose answer may come later.
STILL_RUNNING: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "model": Progress,
        "description": "Still running, or to be answered later: GET waits at Location for the answer",
        "content": {
            wire.JSON_TYPE: {
                "example": {"status": "running", "done": 1, "total": 2, "iteration": 5120, "iterations": 100_000}
            }
        },
        "headers": {"Location": {"schema": {"type": "string"}, "description": "The address of the request"}},
    }
}
#: Problems of every request to a session.
SESSION: Final = ("unauthenticated", "unknown_session", "session_ended", "busy")
#: Problems of a request with a body.
BODY: Final = ("malformed_json", "invalid_request", "unsupported_media_type", "body_too_large", "incomplete_body")


def takes(
    model: type[BaseModel],
    *,
    example: Any = None,
    others: Sequence[str] = (),
    required: bool = True,
    safetensors: bool | None = None,
) -> dict[str, Any]:
    """Returns `openapi_extra` of a route whose body is `model` as JSON, or as safetensors, or one of `others`.

    What is declared here is also what `http.dispatch` accepts.

    Args:
        model: The body.
        example: Shown in place of the model's own examples.
        others: Further content types.
        required: Whether the request needs a body.
        safetensors: Whether the body may be safetensors; None: if a field of the model is a tensor.
    """
    if safetensors is None:
        safetensors = has_tensors(model, _TENSORS_IN)
    if safetensors:
        others = (*others, SAFETENSORS_TYPE)
    content: dict[str, Any] = {"schema": reference(model)}
    if example is not None:
        content["examples"] = {"example": {"value": example}}
    body = {"requestBody": {"required": required, "content": {wire.JSON_TYPE: content} | _contents(others, _NAMED_IN)}}
    return body | ({"parameters": [_REQUEST_PARAMETER]} if safetensors else {})


def answers(
    model: type[BaseModel],
    *problems: str,
    status: int = 200,
    others: Sequence[str] = (),
    safetensors: bool | None = None,
) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` of a route that answers with `model` as JSON or safetensors, with others, or with problems.

    What is declared here is also what `http.dispatch` offers.

    Args:
        model: The answer.
        *problems: Their codes.
        status: Of the answer.
        others: Further content types.
        safetensors: Whether the answer may be safetensors; None: if a member of the model is a tensor.
    """
    if has_tensors(model, _TENSORS_OUT) if safetensors is None else safetensors:
        others = (*others, SAFETENSORS_TYPE)
        problems = (*problems, *(() if "not_acceptable" in problems else ("not_acceptable",)))
    content = {wire.JSON_TYPE: {"schema": reference(model)}} | _contents(others, _NAMED_OUT)
    success: dict[str, Any] = {"description": (model.__doc__ or "").strip(), "content": content}
    if RAW_TYPE in content:
        success["headers"] = {
            DTYPE_HEADER: {"schema": {"type": "string"}, "description": "Of a binary body: the dtype, such as float32"},
            SHAPE_HEADER: {"schema": {"type": "string"}, "description": "Of a binary body: the shape, such as 2,3"},
        }
    return {status: success, **refusals(*problems)}


def with_etag(responses: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` whose successes have an ETag."""
    tag = {"ETag": {"schema": {"type": "string"}, "description": "The version, for If-Match and If-None-Match"}}
    return {
        status: {**response, "headers": response.get("headers", {}) | tag} if str(status).startswith("2") else response
        for status, response in responses.items()
    }


def has_tensors(part: Any, components: tuple[str, ...]) -> bool:
    """Returns whether a model, or a type of one of its fields, refers to one of these components."""
    if isinstance(part, WithJsonSchema):
        text = json.dumps(part.json_schema)
        return any(json.dumps(component(name)) in text for name in components)
    if isinstance(part, type) and issubclass(part, BaseModel):
        parts = [member for field in part.model_fields.values() for member in (field.annotation, *field.metadata)]
        return any(has_tensors(member, components) for member in parts)
    return any(has_tensors(member, components) for member in get_args(part))


def _contents(types: Sequence[str], named_tensors: str) -> dict[str, Any]:
    """Returns the schemas of types other than JSON: texts, or bytes."""
    schemas = {kind: {"type": "string"} | ({} if kind in TEXTS else {"format": "binary"}) for kind in types}
    if SAFETENSORS_TYPE in schemas:
        schemas[SAFETENSORS_TYPE]["description"] = named_tensors
    return {kind: {"schema": schema} for kind, schema in schemas.items()}


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` for these problems, by status."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[PROBLEMS[code].status].append(code)
    return {
        status: {
            "description": "; ".join(f"{PROBLEMS[code].title} (`{code}`)" for code in status_codes),
            "content": {PROBLEM_TYPE: {"schema": reference(Problem)}},
        }
        for status, status_codes in sorted(by_status.items())
    }


def reference(model: type[BaseModel]) -> dict[str, str]:
    """Returns the reference to a model's component, and adds the model to `DECLARED`.

    Raises:
        TypeError: Two models have the same name.
    """
    if DECLARED.setdefault(model.__name__, model) is not model:
        raise TypeError(f"two models are called {model.__name__}: each needs a public name of its own")
    return {"$ref": REFERENCE.format(model=model.__name__)}
