"""README.md says what is true: limits are the defaults of settings, absent names are absent, versions are right."""

import functools
import json
import re
import tomllib
from pathlib import Path

import pytest

import teletape as tf
from teletape_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_limits_are_the_defaults_of_the_settings() -> None:
    rows = dict(re.findall(r"^\| (.+?) \| (\d.*?) \|$", PAGE.partition("| limit | default |")[2], re.M))
    settings = Settings()
    assert rows == {
        "memory of one session's arrays": f"{settings.memory_limit >> 30} GiB",
        "live sessions of one API key, of one server": f"{settings.sessions_per_key}, {settings.sessions}",
        "a session ends when idle for": f"{settings.idle_limit / 60:g} minutes",
        "largest request": f"{settings.max_body >> 30} GiB",
        "longest computation of one request": f"{settings.time_limit / 60:g} minutes",
    }
    assert f"http://127.0.0.1:{settings.port}" in PAGE


def test_the_versions_are_those_of_the_project() -> None:
    assert f"version {PROJECT['version']}" in PROSE
    python = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert f"Python {python[0]} to {python[-1]}" in PROSE


def test_more_programs_are_recorded_than_it_says() -> None:
    results = [path for path in (ROOT / "tests/conformance/results").glob("*.json") if path.stem != "about"]
    programs = {path.stem: len(json.loads(path.read_text(encoding="utf-8"))) for path in results}
    claim = re.search(r"More than (\d+) programs, (\d+) of them whole ones in the style of public code", PROSE)
    assert claim
    assert int(claim[1]) < sum(programs.values())
    assert int(claim[2]) <= sum(count for stem, count in programs.items() if stem.startswith("foreign_"))
    examples = json.loads((ROOT / "tests/conformance/whole_programs/results.json").read_text(encoding="utf-8"))
    assert "and the nine examples" in PROSE
    assert len(examples) == 9


def test_what_is_not_there_yet_is_not_there() -> None:
    paragraph = re.search(r"\*\*Not there yet\*\*(.*?)\n\n", PAGE, re.S)
    assert paragraph
    names = re.findall(r"`tf\.([\w.]+)`", paragraph[1])
    assert names
    for name in set(names):
        with pytest.raises(AttributeError):
            functools.reduce(getattr, name.split("."), tf)


def test_the_api_begins_with_the_version_that_it_says() -> None:
    paths = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    assert [path for path in paths if not f"{path}/".startswith("/v1/")] == []


def test_the_commands_are_targets_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^    make (\w+)", PAGE, re.M)
    assert commands == ["demo", "test"]
    assert all(re.search(rf"^{command}:", makefile, re.M) for command in [*commands, "serve"])
