"""docs/sessions.md: every reason for which a session ends is there, and what it says of codes and limits is true."""

import re
from pathlib import Path

from teletape_server.ipc.leases import Reason
from teletape_server.problems import PROBLEMS
from teletape_server.sessions import ended_sessions
from teletape_server.sessions.quotas import Quota
from teletape_server.settings import Settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())


def test_the_page_has_every_reason_for_which_a_session_ends() -> None:
    table = PAGE.partition("| reason |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(Reason)
    for row in table.splitlines()[2:]:
        codes = re.findall(r"`(\w+)`", row.split("|")[3])
        assert set(codes) <= PROBLEMS.keys()


def test_the_page_says_the_defaults() -> None:
    settings = Settings()
    assert f"{settings.idle_limit / 60:g} minutes after its last work" in PROSE
    assert settings.max_age == 86_400
    assert "one day after its beginning" in PROSE
    assert settings.idempotency_window == 3600
    assert "one hour after it was given" in PROSE
    assert f"Up to {Quota.waiting} may wait" in PROSE
    assert f"the last {ended_sessions._MAX_ENDED:,} ended sessions" in PROSE
