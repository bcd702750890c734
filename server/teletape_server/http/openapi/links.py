"""Links of the OpenAPI document: which operations take the id that the answer of a creation has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

#: By operation that creates: the parameter that its id is, and the operations that take it. Those of the resource
#: itself, and the first that a caller needs; every other path with the parameter takes it too.
_CREATIONS: Final = {
    "sessions-create": (
        "session",
        ("sessions-get", "sessions-extend", "sessions-delete", "variables-create", "tensors-create", "tapes-create"),
    ),
    "variables-create": ("variable", ("variables-get", "variables-assign", "variables-delete")),
    "tensors-create": ("tensor", ("tensors-get", "tensors-delete")),
    "tapes-create": ("tape", ("tapes-get", "tapes-record", "tapes-graph", "tapes-reset", "tapes-delete")),
    "functions-create": ("function", ("functions-get", "functions-delete")),
}


def add_links(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    """Adds to the answers of creations the links to operations that take the new id.

    Raises:
        KeyError: An operation that is named here is not in the document.
    """
    operations = {
        operation["operationId"]: (path, operation) for path, methods in paths.items() for operation in methods.values()
    }
    for creation, (parameter, targets) in _CREATIONS.items():
        _, operation = operations[creation]
        links = {}
        for target in targets:
            path, _ = operations[target]
            parameters = {name: f"$request.path.{name}" for name in re.findall(r"\{(\w+)\}", path)}
            links[target] = {"operationId": target, "parameters": parameters | {parameter: "$response.body#/id"}}
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                answer["links"] = links
