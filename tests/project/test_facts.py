"""The numbers that the pages state are those of the code."""

from pathlib import Path

import pytest

import teletape_wire as wire
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.derivatives.finite_differences import ENTRIES
from teletape_engine.derivatives.jacobian import BOUND
from teletape_engine.diagram.facts import MAX_NODES
from teletape_engine.recording.provenance import LENGTH
from teletape_server.settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("explain", f"so that an explanation can trace through them: the last {LENGTH:,} of each thread"),
        ("derivatives", f"stay below `max_bytes` (by default {BOUND >> 20} MiB)"),
        ("graph", f"are folded if they have more than {MAX_NODES} nodes"),
        ("check_gradients", f"`entries` ({ENTRIES}) entries are chosen at random"),
        ("functions", f"A function has at most {MAX_ITEMS:,} steps of its own"),
        ("rest", f"Answers show the first {wire.PREVIEW} elements of a larger tensor"),
        ("protocol", f"An answer shows the first {wire.PREVIEW} elements of a larger tensor"),
        (
            "protocol",
            f"The number of commands and releases is limited by the header ({Settings().max_header >> 20} MiB)",
        ),
    ],
)
def test_a_number_of_a_page(page: str, sentence: str) -> None:
    assert sentence in " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split())
