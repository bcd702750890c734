"""The OpenAPI document: every model once under a public name, and the operations in the order of the API page.

The page's operations can be run from top to bottom with their examples, and then again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

import teletape_wire as wire
from teletape_server.http.declarations import DECLARED, REFERENCE
from teletape_server.http.openapi.command_schemas import command_components
from teletape_server.http.openapi.links import add_links
from teletape_server.models.base import COMPONENT, COMPONENTS, EXAMPLES
from teletape_server.models.tapes.questions import ASK
from teletape_server.problems import PROBLEM_TYPE

_LAST: Final = "delete"  # the section of all deletions
_SESSION_PATH: Final = "/v1/sessions/{session}"
_METHODS: Final = ("post", "get", "put", "delete")
#: Where PUT creates what the other methods need.
_CREATED_BY_PUT: Final = {"/v1/published/{name}": ("put", "get", "delete")}
#: Answers of the examples, recorded from a server by tests/server/contract/test_recorded_answers.py.
RECORDED_ANSWERS: Final = Path(__file__).with_name("recorded_answers.json")

#: The sections of the page, in order: an operation comes after those whose results its example needs.
SECTIONS: Final = {
    "run": "A batch of commands in one request: values in, gradients out. Nothing is stored.",
    "sessions": "A session holds tensors, variables, functions and tapes on one device until it is deleted or idle for "
    "too long. All examples below use the session of the first one.",
    "variables": "Variables have a value that assignments change. A variable can be used wherever a tensor can.",
    "tensors": "The tensors of a session: those you create, results of ops, and gradients that you keep.",
    "tapes": "A tape records the ops that are posted to it, and then computes derivatives of them.",
    "ops": "Ops without a tape.",
    "functions": "A function is a list of steps on named inputs, saved under an id. It can be called, "
    "differentiated and repeated in loops.",
    "accumulators": "Sums of gradients over many requests, to which each batch is added once.",
    "admin": "API keys, and what was done on this server.",
    "published": "A function that is published is called without a session, by every key that may see it.",
    "batches": "Many commands in one request. Everything above is also a command; docs/protocol.md lists them.",
    "requests": "Requests that take long, or were sent with `Prefer: respond-async`: each has an address, where GET "
    "waits for its answer.",
    _LAST: "Deletes what the examples created. Deleting the session deletes everything in it.",
    "expressions": "Formulas as text, parsed into functions as data.",
    "catalogue": "The ops that the server can run. A client sends calls of these ops as data, and never code.",
    "server": "Facts about the server.",
}

_ABOUT: Final = (
    "Run the operations from top to bottom: each example works as it is, also a second time; only the ids of requests "
    "are the server's. "
    "Every refusal is a problem (RFC 9457) with a `code` and a text that says what was wrong and what to do. JSON "
    "answers show the first 1000 elements of a large tensor; `full=true` returns all, and `Accept: "
    "application/octet-stream` returns a tensor as bytes. Several named tensors travel in one body, both ways, as "
    "`application/vnd.safetensors`. Requests that compute also report their progress as events: "
    "send `Accept: text/event-stream`, and read `progress` events and then one `answer` or `problem`."
)

_DOCUMENT: Final[list[dict[str, Any]]] = []
_TEXT: Final[list[bytes]] = []
_YAML: Final[list[bytes]] = []


def operation_id(route: APIRoute) -> str:
    """Returns section-name, which is the same from version to version."""
    return f"{route.tags[0]}-{route.name.rstrip('_')}"


def text(app: FastAPI) -> bytes:
    """Returns the application's document as JSON; writes it once, since it is the same for every application."""
    if not _TEXT:
        _TEXT.append(json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode())
    return _TEXT[0]


def yaml_text(app: FastAPI) -> bytes:
    """Returns the application's document as YAML; writes it once."""
    if not _YAML:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C ten times faster, where it is installed
        _YAML.append(yaml.dump(app.openapi(), Dumper=dumper, allow_unicode=True, sort_keys=False, width=120).encode())
    return _YAML[0]


def document(app: FastAPI) -> dict[str, Any]:
    """Returns the application's OpenAPI document; makes it once, since it is the same for every application."""
    if not _DOCUMENT:
        _DOCUMENT.append(_document(app))
    return _DOCUMENT[0]


def _document(app: FastAPI) -> dict[str, Any]:
    document: dict[str, Any] = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=_ABOUT,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/"}],
        routes=app.routes,
        tags=[{"name": name, "description": about} for name, about in SECTIONS.items()],
    )
    schemas = document["components"]["schemas"] | _declared_schemas() | COMPONENTS | command_components()
    document["paths"] = _ordered(document["paths"])
    recorded = json.loads(RECORDED_ANSWERS.read_text(encoding="utf-8")) if RECORDED_ANSWERS.exists() else {}
    for _, method, operation in operations(document):
        _complete(operation, schemas, recorded.get(operation["operationId"]))
        if method == "delete":
            operation["tags"] = [_LAST]
    for schema in schemas.values():
        examples = schema.pop(EXAMPLES, None)
        if examples:
            schema["examples"] = list(examples.values())
    document |= {"paths": _simplified(document["paths"])}
    add_links(document["paths"])
    document["components"]["schemas"] = _reachable(document["paths"], _simplified(schemas))
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key in another header"},
    }
    document["security"] = [{"bearer": []}, {"key": []}, {}]
    return document


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields path, method and operation of everything in a document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _declared_schemas() -> dict[str, Any]:
    """Returns the schemas of the models that routes have declared, and of the models in their fields."""
    models = [*DECLARED.values(), *ASK.values()]
    _, schema = models_json_schema([(model, "validation") for model in models], ref_template=REFERENCE)
    definitions: dict[str, Any] = schema["$defs"]
    for model in models:
        extra = model.model_config.get("json_schema_extra")
        if isinstance(extra, dict):  # pydantic has sorted the members of the examples
            definitions[model.__name__] |= extra
    return definitions


def _ordered(paths: dict[str, Any]) -> dict[str, Any]:
    """Returns the paths with the deletion of a session last, and creation before everything else on each path."""
    ordered = {
        path: {method: paths[path][method] for method in _CREATED_BY_PUT.get(path, _METHODS) if method in paths[path]}
        for path in paths
    }
    ordered[_SESSION_PATH] = ordered.pop(_SESSION_PATH)
    return ordered


def _complete(operation: dict[str, Any], schemas: dict[str, Any], recorded: Any) -> None:
    """Adds examples of parameters, body and answer, and the media type of problems."""
    for parameter in operation.get("parameters", ()):
        examples = parameter["schema"].pop("examples", None)
        if examples:
            parameter["example"] = examples[0]
        schema = parameter["schema"]
        schema.pop("title", None)
        members = [member for member in schema.get("anyOf", ()) if member != {"type": "null"}]
        if len(members) == 1:  # a parameter is left out rather than null
            del schema["anyOf"]
            schema |= members[0]
    body = operation.get("requestBody", {}).get("content", {}).get(wire.JSON_TYPE)
    if body and "examples" not in body:
        named = schemas[body["schema"]["$ref"].rpartition("/")[2]][EXAMPLES]
        body["examples"] = {name: {"value": value} for name, value in named.items()}
    if recorded is not None:
        [(status, answer)] = recorded.items()
        operation["responses"][status]["content"][wire.JSON_TYPE]["example"] = answer
    operation["responses"]["default"]["content"] = {
        PROBLEM_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}
    }


def _simplified(part: Any) -> Any:
    """Returns a part of the document in the form that generators of clients read best.

    A reference replaces the name of a component. Titles and defaults of fields are left out: generators name types by
    the titles, and make fields with a default required.
    """
    if isinstance(part, list):
        return [_simplified(member) for member in part]
    if not isinstance(part, dict):
        return part
    result = {}
    for key, value in part.items():
        if key in ("example", "examples", "mapping"):
            result[key] = value
        elif key == COMPONENT and isinstance(value, str):
            result["$ref"] = REFERENCE.format(model=value)
        elif key == "properties":
            result[key] = {name: _field(schema) for name, schema in value.items()}
        elif key == "patternProperties":  # generators read no pattern there: they allow no property at all
            [(pattern, schema)] = value.items()
            result["additionalProperties"] = _simplified(schema)
            result["propertyNames"] = {**part["propertyNames"], "pattern": pattern}
        elif key not in result:
            result[key] = _simplified(value)
    return result


def _field(schema: Any) -> Any:
    schema = dict(schema)
    schema.pop("title", None)
    default = schema.pop("default", None)
    if isinstance(default, str | int | float) and default != "":
        parts = [schema[name] for name in ("description",) if name in schema]
        schema["description"] = ". ".join([*parts, f"Default: {json.dumps(default)}"])
    return _simplified(schema)


def _reachable(paths: Any, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the components that the paths refer to, directly or through others, by name."""
    names: set[str] = set()
    pending = list(_references(paths))
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            pending += _references(schemas[name])
    return {name: schemas[name] for name in sorted(names)}


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for member in part:
            yield from _references(member)
