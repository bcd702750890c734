"""Compares two OpenAPI documents, and lists the changes that break clients of the first.

Requests may accept more than before, and answers may contain more than before; the reverse breaks clients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def breaking_changes(old: Document, new: Document) -> list[str]:
    """Returns what a client written for `old` can no longer rely on under `new`."""
    return list(dict.fromkeys(_operations(old, new)))


def _operations(old: Document, new: Document) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            place = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                yield f"{place}: removed"
                continue
            yield from _parameters(before, after, place)
            yield from _request_bodies(old, new, before.get("requestBody"), after.get("requestBody"), place)
            for status, answer in before["responses"].items():
                if status.startswith("2"):
                    yield from _answers(old, new, answer, after["responses"].get(status), f"{place} {status}")


def _parameters(before: Document, after: Document, place: str) -> Iterator[str]:
    old = {(parameter["in"], parameter["name"]): parameter for parameter in before.get("parameters", ())}
    new = {(parameter["in"], parameter["name"]): parameter for parameter in after.get("parameters", ())}
    for kind, name in old.keys() - new.keys():
        yield f"{place}: the {kind} parameter {name} was removed"
    for (kind, name), parameter in new.items():
        if parameter.get("required") and not old.get((kind, name), {}).get("required"):
            yield f"{place}: the {kind} parameter {name} is now required"


def _request_bodies(old: Document, new: Document, before: Any, after: Any, place: str) -> Iterator[str]:
    if after and after.get("required") and not (before and before.get("required")):
        yield f"{place}: a body is now required"
    for content_type, content in (before or {}).get("content", {}).items():
        if content_type not in (after or {}).get("content", {}):
            yield f"{place}: bodies of {content_type} are no longer accepted"
        else:
            comparison = _SchemaComparison(old, new, is_request=True)
            yield from comparison.compare(content, after["content"][content_type], f"{place}: body")


def _answers(old: Document, new: Document, before: Any, after: Any, place: str) -> Iterator[str]:
    if after is None:
        yield f"{place}: this answer was removed"
        return
    for content_type, content in before.get("content", {}).items():
        if content_type not in after.get("content", {}):
            yield f"{place}: answers of {content_type} were removed"
        else:
            comparison = _SchemaComparison(old, new, is_request=False)
            yield from comparison.compare(content, after["content"][content_type], f"{place}: answer")


class _SchemaComparison:
    """Compares schemas of requests, or of answers."""

    def __init__(self, old: Document, new: Document, *, is_request: bool) -> None:
        self._old, self._new, self._is_request = old, new, is_request
        self._seen: set[tuple[str, str]] = set()

    def compare(self, before: Document, after: Document, place: str) -> Iterator[str]:
        """Lists the breaking changes between two media types."""
        yield from self._schema(before.get("schema", {}), after.get("schema", {}), place)

    def _schema(self, before: Document, after: Document, place: str) -> Iterator[str]:
        references = before.get("$ref", ""), after.get("$ref", "")
        if all(references):
            if references in self._seen:
                return
            self._seen.add(references)
        before, after = _resolved(self._old, before), _resolved(self._new, after)
        # `wide` has to allow all that `narrow` allows: requests may not become narrower, answers not wider.
        wide, narrow = (after, before) if self._is_request else (before, after)
        for name in ("type", "const"):
            if name in wide and wide.get(name) != narrow.get(name):
                yield f"{place}: {name} {before.get(name)!r} has become {after.get(name)!r}"
        for name in ("enum", "anyOf", "oneOf"):
            if name in wide:
                allowed = [_comparable(member) for member in wide[name]]
                lost = [member for member in narrow.get(name, [narrow]) if _comparable(member) not in allowed]
                if lost:
                    yield f"{place}: {name} differs in {_comparable(lost)[:100]}"
        yield from self._properties(before, after, place)
        if "items" in before and "items" in after:
            yield from self._schema(before["items"], after["items"], f"{place}[]")

    def _properties(self, before: Document, after: Document, place: str) -> Iterator[str]:
        old, new = before.get("properties", {}), after.get("properties", {})
        for name in old:
            if name not in new:
                yield f"{place}.{name}: removed"
            else:
                yield from self._schema(old[name], new[name], f"{place}.{name}")
        was_required, is_required = set(before.get("required", ())), set(after.get("required", ()))
        if self._is_request:
            for name in sorted(is_required - was_required):
                yield f"{place}.{name}: now required"
        else:
            for name in sorted((was_required - is_required) & new.keys()):
                yield f"{place}.{name}: no longer always present"


def _resolved(document: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Any = document
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return target  # type: ignore[no-any-return]  # a schema


def _comparable(schema: Any) -> str:
    """Returns a schema as text without what clients do not depend on: descriptions, examples, titles, defaults."""

    def stripped(part: Any) -> Any:
        if isinstance(part, dict):
            return {k: stripped(v) for k, v in part.items() if k not in ("description", "examples", "title", "default")}
        return [stripped(member) for member in part] if isinstance(part, list) else part

    return json.dumps(stripped(schema), sort_keys=True)
