"""Writes a diagram as DOT, the language of Graphviz. Names are quoted: whatever characters they have, they are text.

Long edges make a layout slow and unreadable: an edge over many ranks is drawn as a label next to the node it reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LONG_EDGE: Final = 16  #: An edge over more ranks is drawn as a label, if the diagram has more than `_SMALL` nodes.
_SMALL: Final = 60
_LARGE: Final = 300  #: With more nodes the layout is simplified.
_NAME_LENGTH: Final = 48  #: Characters of a name that are shown.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_STYLES: Final = {
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
    """Returns the facts of `teletape_engine.diagram.facts` as DOT text."""
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: Mapping[str, Any]) -> Iterator[str]:
    nodes = diagram["nodes"]
    ranks = _ranks(diagram)
    yield "digraph tape {"
    yield '  graph [rankdir=TB, fontname="Helvetica", fontsize=11, labelloc=t, nodesep=0.3, ranksep=0.35];'
    if len(nodes) > _LARGE:
        yield "  graph [splines=line, nslimit=0.1, nslimit1=0.1, mclimit=0.01];"
    yield '  node [fontname="Helvetica", fontsize=10, style=filled, color="#5b6b7b", margin="0.12,0.06"];'
    yield '  edge [color="#5b6b7b", arrowsize=0.6, fontname="Helvetica", fontsize=9];'
    yield f"  label={quoted(*_title(diagram))};"
    for node in nodes:
        yield f"  {node['id']} [{_attributes(node)}];"
    by_id = {node["id"]: node for node in nodes}
    for number, edge in enumerate(diagram["edges"]):
        begin, end = edge["from"], edge["to"]
        if len(nodes) > _SMALL and ranks[end] - ranks[begin] > _LONG_EDGE:
            label = quoted("from " + _short_name(by_id[begin]))
            yield f'  s{number} [shape=plaintext, style="", fontsize=9, fontcolor="#5b6b7b", label={label}];'
            begin = f"s{number}"
        yield f"  {begin} -> {end}{_edge(edge)};"
    yield "}"


def _title(diagram: Mapping[str, Any]) -> list[str]:
    parts = [f"{diagram['ops']:,} ops"]
    if diagram["consumed"]:
        parts.append("consumed: it keeps nothing any more")
    elif diagram["bytes"] is not None:
        parts.append(f"{bytes_text(diagram['bytes'])} kept")
    if any("cut" in node["marks"] for node in diagram["nodes"]):
        parts.append("red: where the gradient ends")
    return [", ".join(parts), *([diagram["folded"]] if diagram["folded"] else [])]


def _short_name(node: Mapping[str, Any]) -> str:
    if node["name"]:
        return shortened(node["name"])
    return shortened(node["label"]) if node["first"] is None else f"#{node['first']:,} {shortened(node['label'])}"


def _attributes(node: Mapping[str, Any]) -> str:
    name, label = node["name"], node["label"]
    label_is_name = node["kind"] in ("variable", "tensor", "outside") and name is not None
    lines = [shortened(name if label_is_name else label)]
    if name and not label_is_name:
        lines[0] += f" → {shortened(name)}"
    if node["dtype"] is not None:
        lines.append(f"{node['dtype']} {node['shape']}")
    if node["bytes"]:
        lines.append("keeps " + ", ".join(node["keeps"] + [bytes_text(node["bytes"])]))
    elif node["keeps"]:
        lines.append("keeps " + ", ".join(node["keeps"]) + ", kept by an earlier op")
    if node["why"]:
        lines.append(node["why"])
    attributes = [f"label={quoted(*lines)}", _STYLES[node["kind"]]]
    if node["where"]:
        attributes.append(f"tooltip={quoted(node['where'])}")
    marks = node["marks"]
    if "cut" in marks:
        attributes.append('color="#c62828", fontcolor="#c62828", penwidth=2.5')
    elif "target" in marks or "source" in marks:
        attributes.append('color="#1b5e20", penwidth=2.5')
    elif "path" in marks:
        attributes.append('color="#1b5e20", penwidth=1.5')
    return ", ".join(attributes)


def _edge(edge: Mapping[str, Any]) -> str:
    attributes = []
    if edge["uses"] > 1:
        attributes.append(f'label="×{edge["uses"]:,}"')
    if edge["path"]:
        attributes.append('color="#1b5e20", penwidth=1.5')
    elif not edge["carries"]:
        attributes.append('style=dashed, color="#c62828"')
    return f" [{', '.join(attributes)}]" if attributes else ""


def _ranks(diagram: Mapping[str, Any]) -> dict[str, int]:
    """The rank of each node: below all that it uses. A node that uses nothing is just above its first user."""
    ranks = {node["id"]: 0 for node in diagram["nodes"]}
    above_user: dict[str, int] = {}
    used = {edge["to"] for edge in diagram["edges"]}
    for edge in diagram["edges"]:  # in the order of the calls that they reach
        begin, end = edge["from"], edge["to"]
        ranks[end] = max(ranks[end], ranks[begin] + 1)
    for edge in diagram["edges"]:
        if edge["from"] not in used:
            rank = ranks[edge["to"]] - 1
            above_user[edge["from"]] = min(above_user.get(edge["from"], rank), rank)
    return ranks | above_user


def bytes_text(nbytes: int) -> str:
    """A number of bytes for people: 1,536 as 1.5 KiB."""
    size = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def shortened(name: str) -> str:
    """The name, cut to `_NAME_LENGTH` characters."""
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"


def quoted(*lines: str) -> str:
    """Lines of text as one DOT string; escapes, entities and control characters in them have no effect."""
    return '"' + "\\n".join(map(_safe, lines)) + '"'


def _safe(line: str) -> str:
    return _CONTROL.sub("\ufffd", line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
