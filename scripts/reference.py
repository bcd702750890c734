"""Writes what is generated from the catalogue: docs/reference.md, the stub of `ops`, the SDK's functions and stubs.

With --check nothing is written, and the exit status says whether all of it is current.
"""

import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from teletape_engine.catalogue.describe import catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.ops import FAMILIES

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
import functions
import stubs
from ops_stub import STUB, stub

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# The ops

Written by `make reference` from the catalogue; a test holds it current. For each op: its name on the wire, TensorFlow's
names for it in the SDK, what it takes, and for each input whether it has a gradient and what a tape keeps for it.

A command, a step of a function and a URL may name an op by TensorFlow's names too: `math.add`, `tf.add`, the op type
`AddV2` or `raw_ops.AddV2` all mean `add`. The inputs and attributes are ours, whichever name is used, and answers use
our name. {ambiguous} mean several ops each, so they name none.

"""


def page() -> str:
    """The whole page."""
    described = {description["name"]: description for description in catalogue()}
    types = Counter(op.op_type for op in CATALOGUE.values())
    several = " and ".join(f"`{op_type}`" for op_type, count in sorted(types.items()) if count > 1)
    parts = [HEAD.format(ambiguous=several)]
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
    signature = ", ".join([part for part in (inputs, ("*, " if shown else "") + ", ".join(shown)) if part])
    names = ", ".join(f"`{name}`" for name in op["tensorflow"])
    lines = [f"### {op['name']}({signature})\n", f"{op['documentation']}\n"]
    facts = [f"type {op['op_type']}"] + ([names] if names else []) + (["made of other ops"] if op["composite"] else [])
    if not op["composite"]:
        facts += [f"gradient of {name}: {_structure(gradient)}" for name, gradient in op["gradients"].items()]
    lines.append(f"*{' · '.join(facts)}*\n")
    return "\n".join(lines) + "\n"


def _structure(gradient: dict[str, Any]) -> str:
    words = {"none": "None", "not_registered": "LookupError", "dense": "dense", "slices": "IndexedSlices on axis 0"}
    arrays = ", ".join(gradient["keeps"])
    return words[gradient["kind"]] + (f", keeps {arrays}" if arrays else "")


def written() -> dict[Path, str]:
    """What each generated file has to hold."""
    return {PAGE: page(), STUB: stub(), **functions.files(), **stubs.files()}


def _others(texts: Collection[Path]) -> list[Path]:
    """Generated files of earlier days, which the catalogue no longer says anything about."""
    return [*functions.others(texts), *stubs.others(texts)]


def stale() -> list[str]:
    """The files that are not what the catalogue says, and those that it no longer says anything about."""
    texts = written()
    differ = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return [path.name for path in (*differ, *_others(texts))]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        names = stale()
        sys.exit(f"{', '.join(names)}: not current: make reference" if names else 0)
    texts = written()
    for path in _others(texts):
        path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
