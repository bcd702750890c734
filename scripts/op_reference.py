"""Writes docs/reference.md: every op of the catalogue, with what its record says and an example that runs."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import examples

from teletape_engine.catalogue.describe import catalogue, describe
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.ops import FAMILIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# The ops

Written by `make reference` from the catalogue; a test holds it current. For each op: its name on the wire, TensorFlow's
names for it in the SDK, what it takes, an example, and for each input whether it has a gradient and what a tape keeps
for it. The examples ran when this page was written, in float64; an array of more than {shown} elements is shown as its
dtype and shape. [The functions](reference-functions.md) are TensorFlow's functions that are made of these ops.

A command, a step of a function and a URL may name an op by TensorFlow's names too: `math.add`, `tf.add`, the op type
`AddV2` or `raw_ops.AddV2` all mean `add`. The inputs and attributes are ours, whichever name is used, and answers use
our name. {ambiguous} mean several ops each, so they name none.

"""


def page() -> str:
    """The whole page."""
    described = {description["name"]: description for description in catalogue()}
    types = Counter(op.op_type for op in CATALOGUE.values())
    *several, last = [f"`{op_type}`" for op_type, count in sorted(types.items()) if count > 1]
    parts = [HEAD.format(ambiguous=f"{', '.join(several)} and {last}", shown=examples.SHOWN)]
    for family in FAMILIES:
        module = family.__name__
        names = [name for name, op in CATALOGUE.items() if (op.expand or op.forward).__module__ == module]
        if names:
            parts.append(f"## {module.removeprefix('teletape_engine.ops.').replace('.', ': ')}\n\n")
            parts += [entry(described[name]) for name in names]
    return "".join(parts).rstrip() + "\n"


def heading(op: dict[str, Any]) -> str:
    """The heading of an op's entry: its name with its inputs and attributes."""
    inputs = f"*{op['inputs'][0]}" if op["variadic"] else ", ".join(op["inputs"])
    attributes = op["attributes"]
    shown = [
        name if name in attributes["required"] else f"{name}={schema.get('default')!r}"
        for name, schema in attributes["properties"].items()
    ]
    signature = ", ".join([part for part in (inputs, ("*, " if shown else "") + ", ".join(shown)) if part])
    return f"{op['name']}({signature})"


def anchor(op: Op) -> str:
    """What a link to an op's entry ends in: letters, digits and underscores of the heading, blanks as hyphens."""
    return re.sub(r"[^\w\- ]", "", heading(describe(op)).lower()).replace(" ", "-")


def entry(op: dict[str, Any]) -> str:
    """The text about an op."""
    call, run = examples.of_op(CATALOGUE[op["name"]])
    names = ", ".join(f"`{name}`" for name in op["tensorflow"])
    lines = [f"### {heading(op)}\n", f"{op['documentation']}\n", f"    {call}\n    → {run.result}\n"]
    facts = [f"type {op['op_type']}"] + ([names] if names else [])
    facts += [f"results {', '.join(op['results'])}"] if len(op["results"]) > 1 else []
    if op["composite"]:
        facts += [f"made of {', '.join(run.ops)}" if run.ops else "made of other ops"]
        facts += [f"gradient of {name}: {gradient}" for name, gradient in run.gradients.items()]
    else:
        facts += [f"gradient of {name}: {_structure(gradient)}" for name, gradient in op["gradients"].items()]
    facts += [op["on_gpu"]] if op["on_gpu"] else []
    lines.append(f"*{' · '.join(facts)}*\n")
    return "\n".join(lines) + "\n"


def _structure(gradient: dict[str, Any]) -> str:
    words = {"none": "None", "not_registered": "LookupError", "dense": "dense", "slices": "IndexedSlices on axis 0"}
    arrays = ", ".join(gradient["keeps"])
    return words[gradient["kind"]] + (f", keeps {arrays}" if arrays else "")
