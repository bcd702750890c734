"""The API page as a list of requests: each operation's example, from top to bottom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx

JSON = "application/json"
OWN_IDS = ("/v1/requests/", "/v1/admin/")


class Step(NamedTuple):
    """One operation as the page would send it when "Execute" is pressed."""

    operation: str
    method: str
    path: str
    query: dict[str, Any]
    body: Any
    accept: str


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation, in the page's order: section by section, in each as the document has them."""
    for section in document["tags"]:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][-1] == section["name"]:
                    yield path, method, operation


def steps(document: dict[str, Any]) -> Iterator[Step]:
    """The operations with an example: all but those of requests and keys, whose ids the server makes."""
    for path, method, operation in operations(document):
        if not path.startswith(OWN_IDS):
            yield _step(path, method, operation)


def _step(path: str, method: str, operation: dict[str, Any]) -> Step:
    query = {}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
        elif parameter["in"] == "query" and "example" in parameter:
            query[parameter["name"]] = parameter["example"]
    content = operation.get("requestBody", {}).get("content", {}).get(JSON)
    body = None if content is None else next(iter(content["examples"].values()))["value"]
    # As the page does: the first type that any answer has, of an operation without one that of its problems.
    accept = next(kind for answer in operation["responses"].values() for kind in answer.get("content", ()))
    return Step(operation["operationId"], method, path, query, body, accept)


def send(http: httpx.Client, step: Step, **more_headers: str) -> httpx.Response:
    """Sends it as a browser does, and returns the answer, which must be a success."""
    headers = {"Accept": step.accept, **more_headers}
    content = None
    if step.body is not None:
        headers["Content-Type"] = JSON
        content = json.dumps(_as_javascript(step.body))
    response = http.request(step.method, step.path, params=step.query, content=content, headers=headers)
    assert response.is_success, f"{step.operation}: {response.status_code} {response.text}"
    return response


def _as_javascript(value: Any) -> Any:
    """The value once a browser has read and written it: 2.0 comes out as 2."""
    if isinstance(value, dict):
        return {name: _as_javascript(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_javascript(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
