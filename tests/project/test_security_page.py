"""SECURITY.md: the tests, settings and codes that it names exist."""

import dataclasses
import re
from pathlib import Path

from teletape_server.problems import PROBLEMS
from teletape_server.settings import Settings

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8")


def test_the_tests_that_hold_the_page_exist() -> None:
    paths = re.findall(r"`(\w+/[\w/]*test_\w+\.py)`", PAGE)
    assert len(paths) > 15
    assert not [path for path in paths if not (TESTS / path).exists()]


def test_settings_and_codes_of_the_page_exist() -> None:
    flags = {setting.metadata["flag"] for setting in dataclasses.fields(Settings)}
    flags |= {"--" + setting.name.replace("_", "-") for setting in dataclasses.fields(Settings)}
    assert set(re.findall(r"`(--[a-z-]+)[` ]", PAGE)) <= flags
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE)) - {"no_new_privs"} <= PROBLEMS.keys()
