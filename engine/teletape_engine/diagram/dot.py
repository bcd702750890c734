"""A diagram as DOT, the language of Graphviz. Every name in it is text and nothing else, whatever characters it has.

Long edges are what makes a layout slow and unreadable: beyond a few ranks an edge is drawn as a label beside the node
that it reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LONG: Final = 16  #: Ranks from which an edge is drawn as a label, in a diagram of more than `_FEW` nodes.
_FEW: Final = 60
_MANY: Final = 300  #: Nodes from which the layout takes short cuts.
_WIDTH: Final = 48  #: Characters of a name that are shown.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_LOOK: Final = {
    "variable": 'shape=cylinder, fillcolor="#fde9b8"',
    "tensor": 'shape=ellipse, fillcolor="#fdf6de"',
    "watched": 'shape=ellipse, fillcolor="#fdf6de", peripheries=2',
    "read": 'shape=box, fillcolor="#f2f2f2"',
    "op": 'shape=box, fillcolor="#e6effa"',
    "group": 'shape=box3d, fillcolor="#dbe6f3"',
    "cut": 'shape=octagon, fillcolor="#fdecea"',
    "outside": 'shape=ellipse, fillcolor="#ffffff", style="filled,dashed"',
}


def dot(diagram: Mapping[str, Any]) -> str:
    """The facts of `teletape_engine.diagram.facts` as DOT text."""
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: Mapping[str, Any]) -> Iterator[str]:
    nodes = diagram["nodes"]
    ranks = _ranks(diagram)
    yield "digraph tape {"
    yield '  graph [rankdir=TB, fontname="Helvetica", fontsize=11, labelloc=t, nodesep=0.3, ranksep=0.35];'
    if len(nodes) > _MANY:
        yield "  graph [splines=line, nslimit=0.1, nslimit1=0.1, mclimit=0.01];"
    yield '  node [fontname="Helvetica", fontsize=10, style=filled, color="#5b6b7b", margin="0.12,0.06"];'
    yield '  edge [color="#5b6b7b", arrowsize=0.6, fontname="Helvetica", fontsize=9];'
    yield f"  label={quoted(*_title(diagram))};"
    for node in nodes:
        yield f"  {node['id']} [{_attributes(node)}];"
    shown = {node["id"]: node for node in nodes}
    for at, edge in enumerate(diagram["edges"]):
        begin, end = edge["from"], edge["to"]
        if len(nodes) > _FEW and ranks[end] - ranks[begin] > _LONG:
            stub = quoted("from " + _called(shown[begin]))
            yield f'  s{at} [shape=plaintext, style="", fontsize=9, fontcolor="#5b6b7b", label={stub}];'
            begin = f"s{at}"
        yield f"  {begin} -> {end}{_edge(edge)};"
    yield "}"


def _title(diagram: Mapping[str, Any]) -> list[str]:
    parts = [f"{diagram['ops']:,} ops"]
    if diagram["consumed"]:
        parts.append("answered: nothing is kept any more")
    elif diagram["bytes"] is not None:
        parts.append(f"{measured(diagram['bytes'])} kept")
    if any("cut" in node["marks"] for node in diagram["nodes"]):
        parts.append("red: where the gradient ends")
    return [", ".join(parts), *([diagram["folded"]] if diagram["folded"] else [])]


def _called(node: Mapping[str, Any]) -> str:
    if node["name"]:
        return shortened(node["name"])
    return shortened(node["label"]) if node["first"] is None else f"#{node['first']:,} {shortened(node['label'])}"


def _attributes(node: Mapping[str, Any]) -> str:
    name, label = node["name"], node["label"]
    called = node["kind"] in ("variable", "tensor", "outside") and name is not None
    lines = [shortened(name if called else label)]
    if name and not called:
        lines[0] += f" → {shortened(name)}"
    if node["dtype"] is not None:
        lines.append(f"{node['dtype']} {node['shape']}")
    if node["bytes"]:
        lines.append("keeps " + ", ".join(node["keeps"] + [measured(node["bytes"])]))
    elif node["keeps"]:
        lines.append("keeps " + ", ".join(node["keeps"]) + ", kept before")
    if node["why"]:
        lines.append(node["why"])
    out = [f"label={quoted(*lines)}", _LOOK[node["kind"]]]
    if node["where"]:
        out.append(f"tooltip={quoted(node['where'])}")
    marks = node["marks"]
    if "cut" in marks:
        out.append('color="#c62828", fontcolor="#c62828", penwidth=2.5')
    elif "target" in marks or "source" in marks:
        out.append('color="#1b5e20", penwidth=2.5')
    elif "path" in marks:
        out.append('color="#1b5e20", penwidth=1.5')
    return ", ".join(out)


def _edge(edge: Mapping[str, Any]) -> str:
    out = []
    if edge["uses"] > 1:
        out.append(f'label="×{edge["uses"]:,}"')
    if edge["path"]:
        out.append('color="#1b5e20", penwidth=1.5')
    elif not edge["carries"]:
        out.append('style=dashed, color="#c62828"')
    return f" [{', '.join(out)}]" if out else ""


def _ranks(diagram: Mapping[str, Any]) -> dict[str, int]:
    """How far down each node stands: below all that it uses. What uses nothing stands above its first user."""
    ranks = {node["id"]: 0 for node in diagram["nodes"]}
    first: dict[str, int] = {}
    used = {edge["to"] for edge in diagram["edges"]}
    for edge in diagram["edges"]:  # in the order of their ends, which is the order of the calls
        begin, end = edge["from"], edge["to"]
        ranks[end] = max(ranks[end], ranks[begin] + 1)
    for edge in diagram["edges"]:
        if edge["from"] not in used:
            below = ranks[edge["to"]] - 1
            first[edge["from"]] = min(first.get(edge["from"], below), below)
    return ranks | first


def measured(nbytes: int) -> str:
    """A number of bytes for people: 1,536 as 1.5 KiB."""
    size = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def shortened(name: str) -> str:
    """A name of at most `_WIDTH` characters, its end cut."""
    return name if len(name) <= _WIDTH else name[: _WIDTH - 1] + "…"


def quoted(*lines: str) -> str:
    """Lines of text as one DOT string: escapes, entities and control characters among them mean nothing."""
    return '"' + "\\n".join(map(_safe, lines)) + '"'


def _safe(line: str) -> str:
    return _CONTROL.sub("\ufffd", line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
