"""DOT into SVG by Graphviz, in a process of its own with limits: layouts may take long, and the names are strangers'.

It is `dot` where that is installed, else the copy of Graphviz in the package pygraphviz, which needs no compiler.
Beside `teletape_wire` the one part of the SDK that the server imports: it needs nothing else of either.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from typing import Final

from teletape_engine.errors import TeletapeError

SECONDS: Final = 20.0  #: That a layout may take.
_BYTES: Final = 2 << 30  #: Of address space.

#: Run by a Python without the caller's paths: takes its limits, then becomes `dot`, or draws with pygraphviz.
_CHILD: Final = """
import os, resource, sys
seconds, nbytes, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for kind, wanted in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, nbytes), (resource.RLIMIT_CORE, 0)):
    hard = resource.getrlimit(kind)[1]
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (most, most))
if program:
    os.execv(program, [program, "-Tsvg"])
import pygraphviz
drawn = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode()).draw(format="svg", prog="dot")
sys.stdout.buffer.write(drawn)
"""


class NoLayoutError(TeletapeError):
    """Graphviz is not installed here."""

    code = "layout_unavailable"


class LayoutFailedError(TeletapeError):
    """Graphviz took too long, or gave up."""

    code = "layout_failed"


def available() -> bool:
    """Whether Graphviz is installed here."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def svg(dot: str, *, seconds: float = SECONDS) -> str:
    """The picture of a DOT text.

    Args:
        dot: As `teletape_engine.diagram.dot` writes it.
        seconds: After which the layout is given up.

    Raises:
        NoLayoutError: Graphviz is not installed here.
        LayoutFailedError: It took too long, or refused the text.
    """
    if not available():
        raise NoLayoutError(
            "a picture needs Graphviz, which is not installed here: pip install 'teletape[graph]', or apt-get install "
            "graphviz; JSON and DOT need nothing"
        )
    limits = [str(int(seconds) + 1), str(_BYTES), shutil.which("dot") or ""]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, *limits], input=dot.encode(), capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise LayoutFailedError(
            f"the layout took longer than {seconds:g} s and was given up: ask for fewer nodes, or for DOT"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise LayoutFailedError(f"Graphviz gave up ({done.returncode}): {said[-1][:300] if said else 'without a word'}")
    return done.stdout.decode()
