"""Writes the tables of commands in docs/protocol.md from the engine's command records; --check compares instead.

What a command does is the first paragraph of its record's docstring, what a field means is in
`teletape_engine.commands.meanings`. `SESSION` is one session in which every command occurs: the first use of each is
its example, executed here, with what it answers.
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import teletape_wire as wire
from teletape_engine.commands import COMMANDS, Command, FieldKind
from teletape_engine.commands.fields import Field
from teletape_engine.commands.meanings import meaning
from teletape_engine.commands.schema import FIELDS
from teletape_engine.session.session import Session
from teletape_wire.frame import CODES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "protocol.md"
BEGIN, END = "<!-- begin: written by make pages -->\n", "<!-- end -->"
GROUPS = {
    "Tensors and variables": "constant variable assign op fetch slices slices.component",
    "Tapes and contexts": (
        "tape.open tape.watch tape.pause tape.resume tape.own tape.reset tape.describe tape.graph tape.check_gradients "
        "context.switch context.end declare client.attach client.detach profile"
    ),
    "Derivatives": (
        "gradient gradient_statistics jacobian batch_jacobian vjps hessian hvp sparse_jacobian sparse_hessian estimate "
        "explain"
    ),
    "Forward mode": "accumulator.open accumulator.close accumulator.resume jvp",
    "Functions and control flow": "function call value_and_gradient while cond scan map check_gradients",
    "Custom gradients": (
        "custom backward.begin backward.cotangents backward.resume backward.end custom.function custom.call"
    ),
}
SESSION: list[dict[str, Any]] = [
    {"do": "constant", "id": "x", "value": [1.0, 2.0, 3.0]},
    {"do": "variable", "id": "w", "value": [0.5, -1.0, 2.0], "name": "weights"},
    {"do": "assign", "variable": "w", "value": [0.0, 0.5, 0.0], "mode": "add"},
    {"do": "tape.open", "id": "t", "persistent": True, "replayable": True},
    {"do": "tape.watch", "tape": "t", "tensors": ["x"]},
    {"do": "op", "op": "mul", "inputs": ["x", "w"], "outputs": ["products"], "where": "train.js:7"},
    {"do": "op", "op": "square", "inputs": ["products"], "outputs": ["squares"]},
    {"do": "op", "op": "reduce_sum", "inputs": ["squares"], "outputs": ["loss"], "attrs": {"keepdims": False}},
    {"do": "fetch", "id": "loss"},
    {"do": "tape.pause", "tape": "t"},
    {"do": "gradient", "tape": "t", "targets": ["loss"], "sources": ["w"], "outputs": ["dw"], "predicted": ["dense"]},
    {"do": "jacobian", "tape": "t", "targets": ["squares"], "sources": ["x"], "outputs": ["J"], "chunk_size": 2},
    {"do": "vjps", "tape": "t", "targets": ["squares"], "sources": ["w"], "outputs": ["rows"], "output_gradients": [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]},
    {"do": "hessian", "tape": "t", "targets": ["loss"], "sources": ["w"], "outputs": ["H"]},
    {"do": "hvp", "tape": "t", "targets": ["loss"], "sources": ["w"], "vectors": [[1.0, 0.0, 0.0]], "outputs": ["Hv"]},
    {"do": "sparse_jacobian", "tape": "t", "targets": ["squares"], "sources": ["w"], "outputs": [None, None, "Jw"]},
    {"do": "sparse_hessian", "tape": "t", "targets": ["loss"], "sources": ["w"], "outputs": ["starts", "at", "Hw"],
     "format": "csr"},
    {"do": "explain", "tape": "t", "targets": ["loss"], "sources": ["w"]},
    {"do": "gradient_statistics", "tape": "t", "targets": ["loss"], "sources": ["w"]},
    {"do": "estimate", "tape": "t", "targets": ["squares"], "sources": ["w"], "question": "jacobian"},
    {"do": "tape.describe", "tape": "t"},
    {"do": "tape.graph", "tape": "t", "targets": ["loss"], "sources": ["w"], "nodes": 100},
    {"do": "tape.check_gradients", "tape": "t", "targets": ["loss"], "sources": ["w"], "settings": {"seed": 1}},
    {"do": "tape.resume", "tape": "t"},
    {"do": "tape.own", "tape": "t", "tensors": ["products", "squares"]},
    {"do": "tape.reset", "tape": "t", "release_outputs": True},
    {"do": "context.switch", "context": "thread-2"},
    {"do": "context.switch", "context": {"id": 0}},
    {"do": "context.end", "context": "thread-2"},
    {"do": "client.attach"},
    {"do": "client.detach", "client": 1},
    {"do": "profile"},
    # One example is one row.
    {"do": "constant", "id": "batch", "value": [[1.0, 2.0], [3.0, 4.0]]},
    {"do": "tape.watch", "tape": "t", "tensors": ["batch"]},
    {"do": "op", "op": "square", "inputs": ["batch"], "outputs": ["rows_squared"]},
    {"do": "batch_jacobian", "tape": "t", "targets": ["rows_squared"], "sources": ["batch"], "outputs": ["Jb"]},
    {"do": "tape.pause", "tape": "t"},
    # A sparse gradient.
    {"do": "constant", "id": "grads", "value": [[1.0, 1.0], [2.0, 2.0]]},
    {"do": "constant", "id": "ids", "value": {"dtype": "int32", "data": [7, 42]}},
    {"do": "slices", "id": "sparse", "values": "grads", "indices": "ids", "rows": 1000},
    {"do": "slices.component", "id": "sparse", "component": "indices", "output": "touched"},
    # Forward mode.
    {"do": "accumulator.open", "id": "acc", "primals": ["w"], "tangents": [[1.0, 0.0, 0.0]]},
    {"do": "op", "op": "square", "inputs": ["w"], "outputs": ["w2"]},
    {"do": "accumulator.close", "accumulator": "acc"},
    {"do": "jvp", "accumulator": "acc", "targets": ["w2"], "outputs": ["dw2"]},
    {"do": "accumulator.resume", "accumulator": "acc"},
    {"do": "accumulator.close", "accumulator": "acc"},
    # Functions.
    {"do": "function", "id": "halve", "inputs": ["v"], "outputs": ["half"], "steps": [
        {"do": "op", "op": "mul", "inputs": ["v", 0.5], "outputs": ["half"]}]},
    {"do": "function", "id": "is_large", "inputs": ["v"], "outputs": ["large"], "steps": [
        {"do": "op", "op": "greater", "inputs": ["v", 1.0], "outputs": ["large"]}]},
    {"do": "function", "id": "add_up", "inputs": ["sum", "v"], "outputs": ["next", "next"], "steps": [
        {"do": "op", "op": "add", "inputs": ["sum", "v"], "outputs": ["next"]}]},
    {"do": "call", "function": "halve", "inputs": ["loss"], "outputs": ["half_loss"]},
    {"do": "value_and_gradient", "function": "halve", "inputs": ["loss"], "targets": ["half"], "sources": ["v"],
     "outputs": ["half_again", "dhalf"]},
    {"do": "while", "cond": "is_large", "body": "halve", "inputs": [10.0], "outputs": ["last", "iterations"],
     "report_decisions": True},
    {"do": "cond", "branches": ["halve", "is_large"], "inputs": [True, 10.0], "outputs": ["chosen"]},
    {"do": "scan", "body": "add_up", "inputs": [0.0, "x"], "carried": 1, "outputs": ["total", "running_sums"]},
    {"do": "map", "function": "add_up", "inputs": ["x", 1.0], "mapped": [True, False], "outputs": ["more", "same"]},
    {"do": "check_gradients", "function": "halve", "inputs": [[1.0, 2.0]], "settings": {"seed": 1}},
    # Custom gradients.
    {"do": "tape.open", "id": "t2", "persistent": True},
    {"do": "op", "op": "identity", "inputs": ["w"], "outputs": ["clipped"]},
    {"do": "custom", "inputs": ["w"], "outputs": ["clipped"], "tag": "clip-1", "label": "clipped"},
    {"do": "op", "op": "square", "inputs": ["clipped"], "outputs": ["loss2"]},
    {"do": "tape.pause", "tape": "t2"},
    {"do": "backward.begin", "id": "pass", "tape": "t2", "targets": ["loss2"], "sources": ["w"]},
    {"do": "backward.cotangents", "id": "pass", "outputs": ["dy"], "tag": "clip-1"},
    {"do": "op", "op": "clip_by_value", "inputs": ["dy", -1.0, 1.0], "outputs": ["dx"]},
    {"do": "backward.resume", "id": "pass", "cotangents": ["dx"]},
    {"do": "backward.end", "id": "pass", "outputs": ["dw_clipped"]},
    {"do": "function", "id": "clip", "inputs": ["dy"], "outputs": ["dx"], "steps": [
        {"do": "op", "op": "clip_by_value", "inputs": ["dy", -1.0, 1.0], "outputs": ["dx"]}]},
    {"do": "custom.function", "id": "clip-1-traced", "tag": "clip-1", "function": "clip", "inputs": [],
     "has_gradient": [True]},
    {"do": "jacobian", "tape": "t2", "targets": ["loss2"], "sources": ["w"], "outputs": ["J2"],
     "custom_gradients": ["clip-1-traced"]},
    {"do": "op", "op": "identity", "inputs": ["w"], "outputs": ["copy"]},
    {"do": "custom.call", "function": "clip", "inputs": ["w", "copy"], "outputs": ["clipped2"], "has_gradient": [True]},
    {"do": "declare", "no_gradient": "AdjustContrastv2"},
]  # fmt: skip


#: What a field holds: one, and several.
TYPES = {
    FieldKind.ID: ("id", "ids"),
    FieldKind.FUNCTION_ID: ("function id", "function ids"),
    FieldKind.INPUT: ("input", "inputs"),
    FieldKind.TENSOR: ("tensor or number", "tensors or numbers"),
    FieldKind.STEP: ("command", "commands"),
    FieldKind.ATTRIBUTES: ("object", "objects"),
    FieldKind.NAME: ("string", "strings"),
    FieldKind.FLAG: ("boolean", "booleans"),
    FieldKind.COUNT: ("integer", "integers"),
}


def type_of(field: Field) -> str:
    """What the page calls the type of a field."""
    one_value, several = (("new " if field.created else "") + name for name in TYPES[field.kind])
    text = f"list of {several}" + (" and nulls" if field.null_members else "") if field.is_list else one_value
    return text + (", or null" if field.nullable else "")


def default_of(field: Field) -> str:
    """The field's default as JSON, or nothing if it has none."""
    return "" if field.required else f"`{json.dumps(field.default)}`"


def entry(name: str, cls: type[Command], answers: dict[str, Any]) -> str:
    """One command: what it does, its fields, its example and the answer."""
    summary = " ".join((cls.__doc__ or "").partition("\n\n")[0].split())
    facts = [f"code {CODES[name]}"] + ["structural"] * cls.structural + ["may be a step of a function"] * cls.step
    lines = [f"#### `{name}`\n", textwrap.fill(f"{summary} *({', '.join(facts)})*", 120) + "\n"]
    if FIELDS[name]:
        lines += ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for field in FIELDS[name].values():
        cells = (f"`{field.name}`", type_of(field), default_of(field), meaning(name, field.name))
        lines.append("| " + " | ".join(cells) + " |")
    example = next(command for command in SESSION if command["do"] == name)
    lines += ["", "```json", json.dumps(example), "```"]
    if name in answers:
        lines += ["", "answers", "", "```json", json.dumps(answers[name]), "```"]
    return "\n".join(lines) + "\n"


def run() -> dict[str, Any]:
    """Executes the session; returns what the example of each command answers, shortened."""
    batch = wire.batch_from_json({"commands": SESSION})
    answer = wire.answer_to_json(Session(clock=float).execute(batch), full=False)
    assert answer["failure"] is None, answer["failure"]
    answers: dict[str, Any] = {}
    for result in answer["results"]:
        name = SESSION[result.pop("command")]["do"]
        answers.setdefault(name, shortened({"command": 0} | result))
    return answers


def shortened(value: Any, depth: int = 0) -> Any:
    """The value with long lists and texts cut, and numbers rounded, for the page."""
    if isinstance(value, dict):
        return {key: shortened(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list):
        members = [shortened(member, depth + 1) for member in value]
        whole = len(members) < 4 or all(isinstance(member, int | float) for member in members)
        return members if whole else [*members[:1], "…"]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def generated() -> str:
    """The part of the page that this script writes."""
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(COMMANDS), "each command is in one group"
    answers = run()
    parts = []
    for title, names in GROUPS.items():
        parts.append(f"### {title}\n")
        parts += [entry(name, COMMANDS[name], answers) for name in names.split()]
    return "\n".join(parts)


def page() -> str:
    """The whole page."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{generated()}\n{END}{tail}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/protocol.md is not current: make pages")
    PAGE.write_text(page(), encoding="utf-8")
