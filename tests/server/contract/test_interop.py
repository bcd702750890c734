"""docs/interop.md: its programs run with the clients as they are on PyPI, and print what the page shows."""

import re
from pathlib import Path

import pytest
from faces import ROOT, run_client

from programs import load_script

PAGE = "docs/interop.md"
FOLDER = ROOT / "examples/interop"

pages = load_script("pages")
BLOCKS = [block for block in pages.blocks(PAGE, "python") if block.is_excerpt]


def program(block) -> Path:
    """The file that a block is from."""
    match = re.match(r"# from (\S+): main\n", block.source)
    assert match, block.source
    return ROOT / match[1]


def test_the_page_shows_each_program() -> None:
    assert {program(block) for block in BLOCKS} == set(FOLDER.glob("*.py"))


@pytest.mark.clients
@pytest.mark.parametrize("block", [pytest.param(block, id=program(block).name) for block in BLOCKS])
def test_a_program_prints_what_the_page_shows(block, server_url: str) -> None:
    shown = block.output.splitlines()
    printed = run_client(program(block), server_url).splitlines()
    assert len(printed) == len(shown), printed
    assert [pair for pair in zip(shown, printed, strict=True) if not pages.agree(*pair)] == []
