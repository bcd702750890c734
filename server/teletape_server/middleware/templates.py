"""Path templates: which one of the API's paths, as its document has them, a request's path is an instance of.

The framework knows it too, but has no public way to ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_PARAMETER: Final = "{}"
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
