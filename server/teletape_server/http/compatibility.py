"""Whether one OpenAPI document breaks the clients of another: what is gone, newly required, or of another type.

What a client sends may only become freer, what it is answered only richer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def breaks(old: Document, new: Document) -> list[str]:
    """What a client written for `old` can no longer rely on under `new`; empty: nothing."""
    return list(dict.fromkeys(_operations(old, new)))


def _operations(old: Document, new: Document) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            where = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                yield f"{where}: gone"
                continue
            yield from _parameters(before, after, where)
            yield from _bodies(old, new, before.get("requestBody"), after.get("requestBody"), where)
            for status, answer in before["responses"].items():
                if status.startswith("2"):
                    yield from _answers(old, new, answer, after["responses"].get(status), f"{where} {status}")


def _parameters(before: Document, after: Document, where: str) -> Iterator[str]:
    old = {(one["in"], one["name"]): one for one in before.get("parameters", ())}
    new = {(one["in"], one["name"]): one for one in after.get("parameters", ())}
    for key in old.keys() - new.keys():
        yield f"{where}: the {key[0]} parameter {key[1]} is gone"
    for key, one in new.items():
        if one.get("required") and not old.get(key, {}).get("required"):
            yield f"{where}: the {key[0]} parameter {key[1]} is required now"


def _bodies(old: Document, new: Document, before: Any, after: Any, where: str) -> Iterator[str]:
    if after and after.get("required") and not (before and before.get("required")):
        yield f"{where}: a body is required now"
    for kind, content in (before or {}).get("content", {}).items():
        if kind not in (after or {}).get("content", {}):
            yield f"{where}: bodies of {kind} are not taken any more"
        else:
            yield from _Schemas(old, new, sent=True).compare(content, after["content"][kind], f"{where}: body")


def _answers(old: Document, new: Document, before: Any, after: Any, where: str) -> Iterator[str]:
    if after is None:
        yield f"{where}: this answer is gone"
        return
    for kind, content in before.get("content", {}).items():
        if kind not in after.get("content", {}):
            yield f"{where}: it is not answered as {kind} any more"
        else:
            yield from _Schemas(old, new, sent=False).compare(content, after["content"][kind], f"{where}: answer")


class _Schemas:
    """Compares schemas of what is `sent` by the client, or answered to it."""

    def __init__(self, old: Document, new: Document, *, sent: bool) -> None:
        self._old, self._new, self._sent = old, new, sent
        self._seen: set[tuple[str, str]] = set()

    def compare(self, before: Document, after: Document, where: str) -> Iterator[str]:
        """What breaks between two media types."""
        yield from self._schema(before.get("schema", {}), after.get("schema", {}), where)

    def _schema(self, before: Document, after: Document, where: str) -> Iterator[str]:
        pair = before.get("$ref", ""), after.get("$ref", "")
        if all(pair):
            if pair in self._seen:
                return
            self._seen.add(pair)
        before, after = _resolved(self._old, before), _resolved(self._new, after)
        # The side that must cover the other: what was taken is taken still, what is answered was answered before.
        covering, covered = (after, before) if self._sent else (before, after)
        for name in ("type", "const"):
            if name in covering and covering.get(name) != covered.get(name):
                yield f"{where}: {name} {before.get(name)!r} has become {after.get(name)!r}"
        for name in ("enum", "anyOf"):
            if name in covering:
                known = [_text(one) for one in covering[name]]
                lost = [one for one in covered.get(name, [covered]) if _text(one) not in known]
                if lost:
                    yield f"{where}: {name} differs in {_text(lost)[:100]}"
        yield from self._properties(before, after, where)
        if "items" in before and "items" in after:
            yield from self._schema(before["items"], after["items"], f"{where}[]")

    def _properties(self, before: Document, after: Document, where: str) -> Iterator[str]:
        old, new = before.get("properties", {}), after.get("properties", {})
        for name in old:
            if name not in new:
                yield f"{where}.{name}: gone"
            else:
                yield from self._schema(old[name], new[name], f"{where}.{name}")
        needed, given = set(before.get("required", ())), set(after.get("required", ()))
        if self._sent:
            for name in sorted(given - needed):
                yield f"{where}.{name}: required now"
        else:
            for name in sorted((needed - given) & new.keys()):
                yield f"{where}.{name}: not always there any more"


def _resolved(document: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found  # type: ignore[no-any-return]  # a schema


def _text(schema: Any) -> str:
    """A schema for comparing: prose and examples left out."""

    def bare(one: Any) -> Any:
        if isinstance(one, dict):
            return {k: bare(v) for k, v in one.items() if k not in ("description", "examples", "title", "default")}
        return [bare(part) for part in one] if isinstance(one, list) else one

    return json.dumps(bare(schema), sort_keys=True)
