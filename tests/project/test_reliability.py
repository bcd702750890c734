"""reliability/: each slow proof runs, here for a moment, and its row has the numbers that docs/reliability.md shows."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "teletape").exists(), reason="the programs start the server of the checkout's .venv"
)


def printed(program: str, *arguments: str) -> dict[str, Any]:
    """The numbers that a program prints; its status must be 0."""
    command = [str(ROOT / ".venv" / "bin" / "python"), f"reliability/{program}.py", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    numbers: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return numbers


def row(program: str, *arguments: str) -> dict[str, Any]:
    """The row of a program that watches the server meanwhile."""
    numbers = printed(program, *arguments)
    assert numbers["health_ms"]["count"] > 0
    assert len(numbers["front_mb"]) == 2
    return numbers


def test_the_server_ends_requests_that_stop_halfway() -> None:
    numbers = row("flood", "--only", "stalled bodies", "--connections", "8", "--seconds", "0.5", "--stall-limit", "0.5")
    assert numbers["ends"] == {"408": 8}


@pytest.mark.more  # it starts a server, whose sessions flood it
def test_another_key_works_on_while_one_floods() -> None:
    numbers = printed("rivals", "--only", "small calls", "--shares", "off", "--sessions", "2", "--seconds", "0.5")
    assert numbers["alone_ms"]["count"] > 0
    assert numbers["flooded_ms"]["count"] > 0
    assert 0 < numbers["other_share"] <= 1


@pytest.mark.long
def test_clients_lose_nothing_over_a_lossy_network_while_processes_are_killed() -> None:
    numbers = row("soak", "--minutes", "0.02", "--clients", "2", "--kill-every", "0.4")
    assert numbers["comparisons"] > 0
    assert (numbers["lost"], numbers["doubled"], numbers["wrong"], numbers["errors"]) == (0, 0, 0, 0)


@pytest.mark.more  # it starts four servers and four programs
def test_programs_have_the_same_weights_after_kills() -> None:
    numbers = printed("chaos", "--kills", "2", "--programs", "2", "--every", "0.1")
    assert (numbers["equal"], numbers["different"]) == (2, 0)
    assert sum(numbers["killed"].values()) >= 2


@pytest.mark.long
def test_a_parked_session_is_woken() -> None:
    numbers = printed("restarts", "--only", "wake", "--megabytes", "1", "--rounds", "1")["wake"]
    assert 0 < numbers["seconds to the first answer"]["max"] < 30


@pytest.mark.more  # it starts nine servers
def test_programs_go_on_after_a_restart_and_dormant_sessions_are_listed() -> None:
    rows = printed(
        *("restarts", "--count", "4", "--dormant", "3", "--megabytes", "1", "--rounds", "2", "--sessions", "2")
    )
    for kind in ("stopped in order", "killed"):
        assert rows[kind]["programs"] == 4
        assert rows[kind]["seconds until each went on"]["max"] < 120
    assert rows["dormant"]["processes of theirs"] == 0
    assert 0 < rows["begin"]["MB of its own"] < rows["begin"]["MB with its part of what is shared"]


def test_answers_that_wait_for_the_disk_share_syncs(tmp_path: Path) -> None:
    rows = printed("durability", "--seconds", "0.2", "--only", "many", "--folder", str(tmp_path))
    assert rows["64 callers of 1 sessions, journal-sync"]["answers a sync"] > 1
