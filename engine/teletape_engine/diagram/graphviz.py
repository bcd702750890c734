"""Lays out DOT as SVG with Graphviz, in a process of its own with limits: layouts take time, and names are untrusted.

It runs the program `dot` if that is installed, else the copy of Graphviz in the package pygraphviz.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from typing import Final

from teletape_engine.errors import TeletapeError

SECONDS: Final = 20.0  #: Limit for one layout.
_BYTES: Final = 2 << 30  #: Limit of the address space.

#: Run by a Python without the caller's paths: it takes its limits, then becomes `dot`, or draws with pygraphviz.
_CHILD: Final = """
import os, resource, sys
seconds, nbytes, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for kind, wanted in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, nbytes), (resource.RLIMIT_CORE, 0)):
    hard = resource.getrlimit(kind)[1]
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (limit, limit))
if program:
    os.execv(program, [program, "-Tsvg"])
import pygraphviz
drawing = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode()).draw(format="svg", prog="dot")
sys.stdout.buffer.write(drawing)
"""


class NoLayoutError(TeletapeError):
    """Graphviz is not installed here."""

    code = "layout_unavailable"


class LayoutFailedError(TeletapeError):
    """Graphviz failed or took too long."""

    code = "layout_failed"


def available() -> bool:
    """Whether Graphviz is installed here."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def svg(dot: str, *, seconds: float = SECONDS) -> str:
    """Returns the picture of a DOT text as SVG.

    Args:
        dot: As `teletape_engine.diagram.dot` writes it.
        seconds: Time limit.

    Raises:
        NoLayoutError: Graphviz is not installed here.
        LayoutFailedError: Graphviz took too long, or rejected the text.
    """
    if not available():
        raise NoLayoutError(
            "a picture needs Graphviz, which is not installed here: pip install 'teletape[graph]', or apt-get install "
            "graphviz; JSON and DOT need nothing"
        )
    limits = [str(int(seconds) + 1), str(_BYTES), shutil.which("dot") or ""]
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, *limits], input=dot.encode(), capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise LayoutFailedError(
            f"the layout took longer than {seconds:g} s and was stopped: ask for fewer nodes, or for DOT"
        ) from None
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        message = lines[-1][:300] if lines else "no message"
        raise LayoutFailedError(f"Graphviz failed ({process.returncode}): {message}")
    return process.stdout.decode()
