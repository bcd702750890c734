"""Compares this SDK's ops with those of a server of another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from teletape.core.errors import RequestError
from teletape.core.network.http import Connection
from teletape.core.program import logs
from teletape_engine.catalogue import describe

#: The facts of a record on which the kind of a gradient depends, without the kinds themselves.
_COMPARED: Final = ("inputs", "variadic", "attributes", "composite", "dynamic")


def differing_ops(http: Connection, info: Mapping[str, Any]) -> frozenset[str]:
    """Returns the names of the ops whose records differ on the server, or that it does not have.

    Args:
        http: The connection.
        info: The server's facts about itself; ops are compared if it has another catalogue.
    """
    if info["catalogue"] == describe.digest():
        return frozenset()
    try:
        theirs = {record["name"]: _compared(record) for record in http.get("/v1/ops")["ops"]}
    except (KeyError, TypeError, RequestError):  # a server so different that it cannot be compared
        theirs = {}
    ours = {record["name"]: _compared(record) for record in describe.catalogue()}
    differing = frozenset(name for name, record in ours.items() if theirs.get(name) != record)
    logs.get_logger().warning(
        "the server (version %s) has other records of %d of this SDK's %d ops%s: a gradient through one of them "
        "costs a request, since only the server knows whether it is None",
        info["version"],
        len(differing),
        len(ours),
        f" ({', '.join(sorted(differing))})" if 0 < len(differing) <= 10 else "",
    )
    return differing


def _compared(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a record that is compared, because another version may have further facts."""
    kinds = {name: gradient["kind"] for name, gradient in record["gradients"].items()}
    results = record.get("results", ["y"])  # an older server's ops have one each, and it does not say so
    return {**{name: record[name] for name in _COMPARED}, "results": results, "gradients": kinds}
