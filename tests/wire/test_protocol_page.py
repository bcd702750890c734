"""docs/protocol.md says what the code does: its tables are held to it, its examples run."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import COMMANDS
from teletape_engine.session.session import Session
from teletape_server.problems import PROBLEMS
from teletape_wire.frame import CODES, FETCHED, KINDS, MADE, MAGIC, MAX_ITEMS, SLICES, TOLD

PAGE = (Path(__file__).parent.parent.parent / "docs" / "protocol.md").read_text()


def test_every_command_stands_on_the_page_with_its_fields() -> None:
    shown = {}
    for code, verb, fields in re.findall(r"^\| (\d+) \| `([a-z_.]+)` \| ([^|]+) \|", PAGE, re.MULTILINE):
        shown[verb] = (int(code), fields.strip())
    assert shown == {verb: (CODES[verb], signature(cls)) for verb, cls in COMMANDS.items()}


def signature(cls: type) -> str:
    parts = []
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            parts.append(f"{field.name} = {json.dumps(field.default)}")
        elif field.default_factory is not dataclasses.MISSING:
            parts.append(f"{field.name} = {json.dumps(field.default_factory())}")
        else:
            parts.append(field.name)
    return ", ".join(parts)


def test_every_structural_command_is_named_as_one() -> None:
    sentence = re.search(r"\*Structural\* commands \(([^)]+)\)", PAGE)
    assert sentence
    assert set(re.findall(r"`([a-z.]+)`", sentence[1])) == {verb for verb, cls in COMMANDS.items() if cls.structural}


def test_every_problem_stands_on_the_page() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert {code: (int(status), title) for code, status, title in rows} == PROBLEMS


def test_the_numbers_on_the_page_are_the_codes_own() -> None:
    assert "`" + MAGIC.hex(" ").upper() + "`" in PAGE
    assert f"| 8–9 | version: {wire.VERSION} |" in PAGE
    assert f"at most {MAX_ITEMS:,} members" in PAGE
    assert f"first {wire.PREVIEW} elements" in PAGE
    assert f"{wire.MAX_HEADER >> 20} MiB" in PAGE
    assert wire.FRAME_TYPE in PAGE
    for code, opening in (
        (FETCHED, "command, id, tensor"),
        (SLICES, "command, id, values"),
        (KINDS, "command, kinds"),
        (MADE, "command, [["),
        (TOLD, "command, facts"),
    ):
        assert f"`[{code}, {opening}" in PAGE


def test_the_example_gives_the_answer_shown() -> None:
    asked, answered = re.findall(r"^    (\{.*?\})$\n\n", PAGE, re.MULTILINE | re.DOTALL)
    answer = Session().execute(wire.batch_from_json(json.loads(asked)))
    found = wire.answer_to_json(answer, wire.Served(0.0, 0.0, 0.0), full=False)
    expected = json.loads(answered)
    assert found["results"] == expected["results"]
    assert found.keys() == expected.keys()
    assert found["failure"] is None
    assert np.isfinite(found["bytes_in_use"])
