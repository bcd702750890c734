"""docs/glossary.md: its names exist in engine, wire, REST and SDK, and none of them uses a word that was replaced."""

import ast
import dataclasses
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import teletape as tf
import teletape_wire as wire
from teletape.names.table import NAMES
from teletape_engine.commands import COMMANDS
from teletape_engine.session.session import Session

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine" / "teletape_engine"
OPENAPI = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| term", "| ---"))
]
COLUMNS = {"engine": 2, "wire": 3, "REST": 4, "SDK": 5}

#: Words that the glossary has replaced, as a whole name of the wire or of REST.
REPLACED_NAMES = set(
    "put more tell along together gives kept cts customs max_rows seeds wrt backward.to backward.give program "
    "calls custom.program waited computed trip trips answers jacobians products ids target told made".split()
)
#: … and as a part of any name, in all four.
REPLACED_WORDS = set(
    "trip trips seeds wrt customs trail trails rerun verb verbs program programs sketch outline outlines shadow "
    "shadowed replay hop curvature standin standins witness witnesses departure departures".split()
)


def names(column: str) -> list[str]:
    """The names in a column of the glossary."""
    return [name for row in ROWS for name in re.findall(r"`([^`]+)`", row[COLUMNS[column]])]


def wire_names() -> set[str]:
    """Commands, their fields, and the members of batches and answers in JSON."""
    fields = {field.name for cls in COMMANDS.values() for field in dataclasses.fields(cls)}
    answer = wire.answer_to_json(Session().execute(wire.batch_from_json({"commands": []})), wire.Served(), full=True)
    results = {"command", "id", "value", "kinds", "facts", "specs", "dtype", "shape", "data"}
    return {
        *COMMANDS,
        *fields,
        *answer,
        *results,
        "do",
        "commands",
        "release",
        "client",
        "seq",
        "nonce",
        "temporaries",
        "on_failure",
        "replace",
    }


def rest_segments() -> set[str]:
    """The parts of REST's paths."""
    return {part for path in OPENAPI["paths"] for part in path.split("/")[2:] if not part.startswith("{")}


def rest_fields() -> set[str]:
    """The members of REST's bodies and answers, and the parameters of its paths and queries."""
    collected: set[str] = set()

    def visit(schema: Any) -> None:
        if isinstance(schema, dict):
            properties = schema.get("properties")
            if isinstance(properties, dict):
                collected.update(properties)
            if "in" in schema and isinstance(schema.get("name"), str):
                collected.add(schema["name"])
            for key, value in schema.items():
                if key not in ("example", "examples"):
                    visit(value)
        elif isinstance(schema, list):
            for value in schema:
                visit(value)

    visit(OPENAPI)
    return collected


def sdk_names() -> set[str]:
    """The public names, and the public members of the classes that users hold."""
    classes = (tf.GradientTape, tf.Tensor, tf.Variable, tf.autodiff.ForwardAccumulator, type(tf.session()))
    members = {name for cls in classes for name, _ in inspect.getmembers(cls) if not name.startswith("_")}
    return {*tf.__all__, *NAMES, *members}


def engine_names() -> set[str]:
    """Folders, modules, and the public classes and functions at the top of the engine's modules."""
    collected: set[str] = set()
    for path in ENGINE.rglob("*.py"):
        collected |= {path.stem, path.parent.name}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        collected |= {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    return {name for name in collected if not name.startswith("_")}


def resolve(root: Any, path: str) -> Any:
    """The value of a dotted name below a package; modules are imported on the way."""
    value = root
    for part in path.split("."):
        if not hasattr(value, part) and inspect.ismodule(value):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def test_every_row_has_a_meaning_and_six_cells() -> None:
    assert len(ROWS) > 50
    assert [row for row in ROWS if len(row) != 6 or not row[0] or not row[1]] == []
    terms = [row[0] for row in ROWS]
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize("name", sorted(set(names("engine"))))
def test_a_name_of_the_engine_exists(name: str) -> None:
    if name.endswith("/"):
        assert (ENGINE / name).is_dir()
    else:
        assert resolve(importlib.import_module("teletape_engine"), name) is not None


def test_names_of_the_wire_exist() -> None:
    assert set(names("wire")) <= wire_names()


def test_names_of_rest_exist() -> None:
    assert {name for name in names("REST") if not name.startswith("/")} <= rest_fields()
    assert {name[1:] for name in names("REST") if name.startswith("/")} <= rest_segments()


@pytest.mark.parametrize("name", sorted(set(names("SDK"))))
def test_a_name_of_the_sdk_exists(name: str) -> None:
    assert name.startswith("tf.")
    assert resolve(tf, name.removeprefix("tf.")) is not None


def test_every_command_and_every_noun_of_rest_is_in_the_glossary() -> None:
    assert set(COMMANDS) <= set(names("wire"))
    assert rest_segments() <= {name[1:] for name in names("REST") if name.startswith("/")}


@pytest.mark.parametrize(
    ("where", "used"), [("wire", wire_names()), ("REST fields", rest_fields()), ("REST paths", rest_segments())]
)
def test_no_replaced_name_is_used(where: str, used: set[str]) -> None:
    assert used & REPLACED_NAMES == set(), where


@pytest.mark.parametrize("collect", [wire_names, rest_fields, rest_segments, sdk_names, engine_names])
def test_no_replaced_word_is_part_of_a_name(collect: Any) -> None:
    assert {name for name in collect() if REPLACED_WORDS & set(words(name))} == set()


def words(name: str) -> list[str]:
    """The words of a name in snake_case, CamelCase or with dots."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
