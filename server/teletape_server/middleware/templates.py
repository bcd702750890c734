"""Path templates: which one of the API's paths, as its document has them, a request's path is an instance of.

The framework knows it too, but has no public way to ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from teletape_engine.suggestions import nearest

_PARAMETER: Final = "{}"
_MOST_NEAR: Final = 6
_TEMPLATE: Final = "/"  # no segment of a path is this


class PathTemplates:
    """The paths of a document, segment by segment.

    Args:
        templates: Such as /v1/sessions/{session}.
    """

    def __init__(self, templates: Iterable[str]) -> None:
        self._root: dict[str, Any] = {}
        for template in templates:
            node = self._root
            for segment in template.split("/"):
                node = node.setdefault(_PARAMETER if segment.startswith("{") else segment, {})
            node[_TEMPLATE] = template

    def of(self, path: str) -> str | None:
        """Returns the template of a path; None if no operation has such a path."""
        node: dict[str, Any] = self._root
        for segment in path.split("/"):
            node = node.get(segment) or (node.get(_PARAMETER, {}) if segment else {})
        template: str | None = node.get(_TEMPLATE)
        return template

    def near(self, path: str) -> list[str]:
        """Returns up to six paths of operations that differ from this one in one segment, the nearest first."""
        path = path.rstrip("/")
        for other in (path, f"/v1{path}", f"/v1/sessions/{{session}}{path.removeprefix('/v1')}"):
            if self.of(other) is not None:
                return [other]
        for segments in (path.split("/"), f"/v1{path}".split("/")):
            paths = dict(_near(self._root, segments, (), None))
            if paths:
                example = next(iter(paths.values()))
                wrong = next((part for part, other in zip(segments, example, strict=True) if part != other), "")
                names = nearest(wrong[:100], paths) or sorted(paths)
                return ["/".join(paths[name]) for name in names[:_MOST_NEAR]]
        return []


def _near(
    node: Mapping[str, Any], rest: Sequence[str], parts: tuple[str, ...], corrected: str | None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the segment that is corrected, if any, and the path's segments, for each path with at most one such."""
    if not rest:
        if _TEMPLATE in node:
            yield corrected or "", parts
        return
    for segment, child in node.items():
        if segment == rest[0] or (segment == _PARAMETER and rest[0]):
            yield from _near(child, rest[1:], (*parts, rest[0]), corrected)
        elif corrected is None and segment not in (_TEMPLATE, _PARAMETER):
            yield from _near(child, rest[1:], (*parts, segment), segment)
