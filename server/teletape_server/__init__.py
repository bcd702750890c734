"""The server: sessions of the tape engine over HTTP. docs/protocol.md and docs/rest.md describe its interface."""

from __future__ import annotations

import importlib.metadata
from functools import cache


@cache
def version() -> str:
    """Returns the distribution's version; "0" in a checkout that is not installed."""
    try:
        return importlib.metadata.version("teletape")
    except importlib.metadata.PackageNotFoundError:
        return "0"
