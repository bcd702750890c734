"""The OpenAPI document: what routes declare about bodies that this process does not read, and the order of the page.

Schemas and examples are those of the models with which the session's process checks; the page's operations run as they
stand from top to bottom, and again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

import teletape_wire as wire
from teletape_server.http.schemas import Problem
from teletape_server.problems import PROBLEM_TYPE, PROBLEMS
from teletape_server.worker.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER
from teletape_server.worker.models import checks, explanations, functions, loops, models, pictures, questions

_LAST: Final = "release"  # the section of all that ends something
_ENDING: Final = "/v1/sessions/{session}"
_METHODS: Final = ("post", "get", "put", "delete")
_REF: Final = "#/components/schemas/{model}"
RAW: Final = {"type": "string", "format": "binary"}
#: A tensor's bytes, beside JSON.
TENSOR: Final = {RAW_TYPE: RAW}
#: How far a long request is, and its answer at the end, beside JSON.
EVENTS: Final = {
    "text/event-stream": {
        "type": "string",
        "description": "Events: `progress` while the request runs, then one `answer` or `problem`",
    }
}

#: The sections of the page, in order: what a walk from top to bottom needs comes before what needs it.
SECTIONS: Final = {
    "server": "What answers here, and what it can do.",
    "catalogue": "The ops there are. A program is data: calls of these, and nothing else.",
    "run": "One request, one session: the gradient of a function from a single call.",
    "sessions": "A session holds values, variables and tapes on one device until it is ended, or idle for too long. "
    "The examples below all use the one that the first of them makes.",
    "variables": "Named slots whose value changes. A variable may stand wherever a value may.",
    "tensors": "The values of the session: what you put there, what ops made, gradients you kept.",
    "tapes": "A tape records the ops that are posted to it, and answers for gradients as often as you ask.",
    "ops": "Ops on no tape.",
    "functions": "Programs saved under an id, and called with values.",
    "batches": "All of the above as commands, many to a request. docs/protocol.md has the vocabulary.",
    _LAST: "At the end: let go of what is held. Ending the session lets go of everything.",
}


# ------------------------------------------------------------------------------------------------- declared by routes
def takes(
    model: type[BaseModel], *, example: Any = None, others: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """`openapi_extra` of a route whose body is `model` as JSON, or of `others`: content types and their schemas.

    Without `example` the model's own is shown.
    """
    shown = example_of(model) if example is None else example
    content = {wire.JSON_TYPE: {"schema": _ref(model), "example": shown}}
    return {"requestBody": {"required": True, "content": content | _contents(others)}}


def answers(
    model: type[BaseModel],
    *problems: str,
    status: int = 200,
    others: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """`responses` of a route that answers with `model` as JSON, with `others`, or with these problems."""
    content = {wire.JSON_TYPE: {"schema": _ref(model)}} | _contents(others)
    good: dict[str, Any] = {"description": (model.__doc__ or "").strip(), "content": content}
    if RAW_TYPE in content:
        good["headers"] = {
            DTYPE_HEADER: {"schema": {"type": "string"}, "description": "Of raw bytes: the dtype, such as float32"},
            SHAPE_HEADER: {"schema": {"type": "string"}, "description": "Of raw bytes: the shape, such as 2,3"},
        }
    return {status: good, **refusals(*problems)}


def _contents(others: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    return {content_type: {"schema": dict(schema)} for content_type, schema in (others or {}).items()}


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """`responses` for these problems, by status."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[PROBLEMS[code].status].append(code)
    return {
        status: {
            "description": "; ".join(f"{PROBLEMS[code].title} (`{code}`)" for code in found),
            "content": {PROBLEM_TYPE: {"schema": _ref(Problem)}},
        }
        for status, found in sorted(by_status.items())
    }


#: What any request to a session can meet.
SESSION: Final = ("unauthenticated", "unknown_session", "session_ended", "busy")
#: What one with a body can meet.
BODY: Final = ("malformed_json", "invalid_request", "unsupported_media_type", "body_too_large", "incomplete_body")
#: What one that names something in the session can meet.
NAMED: Final = ("unknown_id", "released_id", "poisoned")
#: What one that computes can meet.
WORK: Final = (
    *("unknown_op", "bad_attribute", "bad_command", "invalid_argument", "unimplemented", "resource_exhausted"),
    *("cancelled", "deadline_exceeded"),
)


def example_of(model: type[BaseModel]) -> Any:
    """The example that the model carries."""
    extra: Any = model.model_config["json_schema_extra"]
    return extra["examples"][0]


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


# ---------------------------------------------------------------------------------------------------------- the whole
def operation_id(route: APIRoute) -> str:
    """section-name: short, and the same from version to version."""
    return f"{route.tags[0]}-{route.name.rstrip('_')}"


def document(app: FastAPI) -> dict[str, Any]:
    """The application's OpenAPI document."""
    found = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=_ABOUT,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        routes=app.routes,
        tags=[{"name": name, "description": about} for name, about in SECTIONS.items()],
    )
    found["paths"] = _ordered(found["paths"])
    components = found["components"]
    components["schemas"] = dict(sorted({**components["schemas"], **_schemas()}.items()))
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key"},
        "key": {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "The same key, in another header",
        },
    }
    found["security"] = [{"bearer": []}, {"key": []}, {}]
    for path in found["paths"].values():
        for method, operation in path.items():
            _complete(operation, components["schemas"])
            if method == "delete":
                operation["tags"] = [_LAST]
    return found


def _ordered(paths: dict[str, Any]) -> dict[str, Any]:
    """The paths as given, but the one that ends a session last; on each, what makes before what reads."""
    ordered = {path: {one: paths[path][one] for one in _METHODS if one in paths[path]} for path in paths}
    ordered[_ENDING] = ordered.pop(_ENDING)
    return ordered


def _complete(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Gives the page what it fills in: one example for each parameter and body; and problems their media type."""
    for parameter in operation.get("parameters", ()):
        examples = parameter["schema"].get("examples")
        if examples:
            parameter["example"] = examples[0]
    body = operation.get("requestBody", {}).get("content", {}).get(wire.JSON_TYPE, {})
    if body and "example" not in body:
        body["example"] = schemas[body["schema"]["$ref"].rpartition("/")[2]]["examples"][0]
    operation["responses"]["default"]["content"] = {PROBLEM_TYPE: {"schema": _ref(Problem)}}


_ABOUT: Final = (
    "Gradients on somebody else's machine. Try the operations from top to bottom: each example runs as it stands, also "
    "a second time. Every refusal is a problem (RFC 9457) with a `code`, what was found and what to do. JSON answers "
    "show the first 1000 elements of a large tensor unless `full=true` is asked for; raw bytes are had with `Accept: "
    "application/octet-stream`."
)


def _schemas() -> dict[str, Any]:
    given: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "validation")]
    described = (
        models,
        functions,
        loops,
        questions,
        explanations,
        pictures,
        checks,
    )
    for one in {name: one for module in described for name, one in vars(module).items()}.values():
        if isinstance(one, type) and issubclass(one, models.Body | models.Answer) and one.__bases__ != (BaseModel,):
            given.append((one, "validation"))
    _, schema = models_json_schema(given, ref_template=_REF)
    definitions: dict[str, Any] = schema["$defs"]
    return definitions
