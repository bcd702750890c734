"""Writes what is generated: from the catalogue the reference, stubs and functions, from openapi.json a client.

With --check nothing is written, and the exit status says whether all of it is current.
"""

import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
import function_reference
import functions
import op_reference
import public_surface
import service_client
import stubs
from ops_stub import STUB, stub


def written() -> dict[Path, str]:
    """What each generated file has to hold."""
    pages = {module.PAGE: module.page() for module in (op_reference, function_reference)}
    modules = (functions, public_surface, stubs, service_client)
    return {**pages, STUB: stub(), **{path: text for module in modules for path, text in module.files().items()}}


def _others(texts: Collection[Path]) -> list[Path]:
    """Generated files of earlier days, which the catalogue no longer says anything about."""
    return [*functions.others(texts), *stubs.others(texts)]


def stale() -> list[str]:
    """The files that are not what the catalogue says, and those that it no longer says anything about."""
    texts = written()
    differ = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return [path.name for path in (*differ, *_others(texts))]


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        names = stale()
        sys.exit(f"{', '.join(names)}: not current: make reference" if names else 0)
    _write(public_surface.files())  # first: the examples of a new name need it
    if "--again" not in sys.argv:
        sys.exit(subprocess.call([sys.executable, *sys.argv, "--again"]))
    texts = written()
    for path in _others(texts):
        path.unlink()
    _write(texts)
