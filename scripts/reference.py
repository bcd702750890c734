"""Writes docs/reference.md and the stub of `ops` from the catalogue; with --check it tells whether they are current."""

import sys
from pathlib import Path
from typing import Any

from teletape_engine.catalogue.describe import catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.ops import FAMILIES

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
from ops_stub import STUB, stub

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# The ops

Written by `make reference` from the catalogue; a test holds it current. For each op: its name on the wire, TensorFlow's
names for it in the SDK, what it takes, and for each input whether it has a gradient and what a tape keeps for it.

"""


def page() -> str:
    """The whole page."""
    described = {one["name"]: one for one in catalogue()}
    parts = [HEAD]
    for family in FAMILIES:
        module = family.__name__
        names = [name for name, op in CATALOGUE.items() if (op.expand or op.forward).__module__ == module]
        if names:
            parts.append(f"## {module.removeprefix('teletape_engine.ops.').replace('.', ': ')}\n\n")
            parts += [entry(described[name]) for name in names]
    return "".join(parts).rstrip() + "\n"


def entry(op: dict[str, Any]) -> str:
    """One op."""
    inputs = f"*{op['inputs'][0]}" if op["variadic"] else ", ".join(op["inputs"])
    attributes = op["attributes"]
    shown = [
        name if name in attributes["required"] else f"{name}={schema.get('default')!r}"
        for name, schema in attributes["properties"].items()
    ]
    signature = ", ".join([one for one in (inputs, ("*, " if shown else "") + ", ".join(shown)) if one])
    names = ", ".join(f"`{name}`" for name in op["tensorflow"])
    lines = [f"### {op['name']}({signature})\n", f"{op['documentation']}\n"]
    facts = [f"type {op['op_type']}"] + ([names] if names else []) + (["made of other ops"] if op["composite"] else [])
    if not op["composite"]:
        facts += [f"gradient of {name}: {_told(one)}" for name, one in op["gradients"].items()]
    lines.append(f"*{' · '.join(facts)}*\n")
    return "\n".join(lines) + "\n"


def _told(gradient: dict[str, Any]) -> str:
    words = {"none": "None", "not_registered": "LookupError", "dense": "dense", "slices": "IndexedSlices on axis 0"}
    kept = ", ".join(gradient["keeps"])
    return words[gradient["kind"]] + (f", keeps {kept}" if kept else "")


def written() -> dict[Path, str]:
    """What each generated file has to hold."""
    return {PAGE: page(), STUB: stub()}


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        old = [path.name for path, text in written().items() if not path.exists() or path.read_text() != text]
        sys.exit(f"{', '.join(old)}: not current: make reference" if old else 0)
    for path, text in written().items():
        path.write_text(text)
