"""`tf.summary.trace_on` and related functions: TensorFlow's graphs and profiles, which Teletape has in other forms."""

from __future__ import annotations

from typing import Any

from teletape.core.program.logs import get_logger

_INSTEAD = "tape.graph() draws a tape and tf.session().profile() has times"


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Warns that no graph is recorded, and names the replacement; the program goes on."""
    get_logger().warning("tf.summary.trace_on records nothing in Teletape: %s", _INSTEAD)


def trace_off() -> None:
    """Does nothing."""


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Does nothing; `trace_on` has warned."""


def graph(graph_data: Any) -> None:
    """Refuses: a function has no TensorFlow graph here.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"tf.summary.graph is not in Teletape, which has no tf.Graph: {_INSTEAD}")
