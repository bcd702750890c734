"""docs/protocol.md is what the code does: tables written from the command records, examples that are executed."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import teletape_wire as wire
from programs import load_script
from teletape_engine.commands import COMMANDS, Batch, Fetch, OnFailure
from teletape_engine.commands.meanings import MEANINGS
from teletape_engine.session.session import Session
from teletape_server.problems import PROBLEMS
from teletape_wire.frame import CODES, FACTS, FETCHED, KINDS, MAGIC, MAX_ITEMS, SLICES, SPECS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())


protocol = load_script("protocol")


def test_the_tables_and_examples_are_current() -> None:
    """Writing the page executes the session of all examples, which must not fail."""
    assert protocol.page() == PAGE, "run make pages"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_on_the_page_with_its_fields_and_an_example(name: str) -> None:
    section = re.search(rf"^#### `{re.escape(name)}`\n(.*?)(?=^###|^<!-- end)", PAGE, re.M | re.S)
    assert section
    assert f"code {CODES[name]}" in " ".join(section[1].split())
    fields = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*) \| .+ \|$", section[1], re.M)
    assert [field for field, _, _ in fields] == [field.name for field in dataclasses.fields(COMMANDS[name])]
    example = json.loads(re.search(r"```json\n(.*?)\n```", section[1])[1])
    assert example in protocol.SESSION
    assert example["do"] == name
    assert example.keys() - {"do"} <= {field for field, _, _ in fields}


def test_every_meaning_is_of_a_field() -> None:
    fields = {(name, field.name) for name, cls in COMMANDS.items() for field in dataclasses.fields(cls)}
    used = {f"{name}.{field}" if f"{name}.{field}" in MEANINGS else field for name, field in fields}
    assert used == set(MEANINGS)


def test_the_members_of_a_batch_are_on_the_page_with_their_defaults() -> None:
    section = PAGE.partition("## 4. Batches")[2].partition("## 5.")[0]
    rows = re.findall(r"^\| `(\w+)` \|([^|]+)\| *`?([^|`]*?)`? *\|", section, re.M)
    written = wire.batch_to_json(
        Batch((Fetch("x"),), ("y",), 1, 1, bytes(range(16)), ("z",), on_failure=OnFailure.FREE, replace=True)
    )
    assert {name for name, _, _ in rows} == written.keys()
    defaults = wire.batch_to_json(
        wire.batch_from_json(
            {"commands": []} | {name: json.loads(default) for name, _, default in rows if default.strip()}
        )
    )
    assert defaults == {"commands": []}, "the page's defaults are those of a batch"


def test_every_structural_command_is_named_as_one() -> None:
    sentence = re.search(r"\*Structural\* commands \(([^)]+)\)", PROSE)
    assert sentence
    assert set(re.findall(r"`([a-z.]+)`", sentence[1])) == {name for name, cls in COMMANDS.items() if cls.structural}


def test_every_problem_is_on_the_page() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert {code: (int(status), title) for code, status, title in rows} == PROBLEMS


def test_the_numbers_on_the_page_are_the_codes_own() -> None:
    assert "`" + MAGIC.hex(" ").upper() + "`" in PROSE
    assert f"| 8–9 | version: {wire.VERSION} |" in PROSE
    assert f"at most {MAX_ITEMS:,} members" in PROSE
    assert f"first {wire.PREVIEW} elements" in PROSE
    assert f"{wire.MAX_HEADER >> 20} MiB" in PROSE
    assert wire.FRAME_TYPE in PROSE
    for code, opening in (
        (FETCHED, "command, id, tensor"),
        (SLICES, "command, id, values"),
        (KINDS, "command, kinds"),
        (SPECS, "command, [["),
        (FACTS, "command, facts"),
    ):
        assert f"`[{code}, {opening}" in PROSE


def test_the_example_batch_gives_the_answer_shown() -> None:
    request, response = re.findall(r"^    (\{.*?\})$\n\n", PAGE, re.MULTILINE | re.DOTALL)
    answer = Session(clock=float).execute(wire.batch_from_json(json.loads(request)))
    computed = wire.answer_to_json(answer, wire.Served(0.0, 0.0, 0.0), full=False)
    expected = json.loads(response)
    assert computed["results"] == expected["results"]
    assert computed.keys() == expected.keys()
    assert computed["failure"] is None
    assert np.isfinite(computed["bytes_in_use"])
