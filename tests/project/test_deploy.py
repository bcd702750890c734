"""docs/deploy.md names every setting of the server and of the compose file, with its default."""

import re
from pathlib import Path

import pytest

from serving import Server, ok
from teletape_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def table(first: str) -> list[list[str]]:
    """The cells, without backticks, of the table whose head begins with `first`."""
    rows = PAGE.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


def test_every_setting_of_the_server_is_documented_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Settings.load(["--help"], {})
    printed = " ".join(capsys.readouterr().out.split())
    documented = re.findall(r"(--[a-z-]+) \[?[A-Z]+\]? [^()]*\(default ([^)]+)\); (TELETAPE_\w+)", printed)
    rows = {(flag, default, variable) for flag, variable, default, _ in table("flag")}
    secrets = {"TELETAPE_API_KEYS", "TELETAPE_KEY_DATABASE"}
    assert rows - {("none", "none", name) for name in secrets} == set(documented)
    assert all(name in printed for name in secrets)


def test_every_setting_of_the_compose_file_is_documented() -> None:
    settings = re.findall(r"\$\{(\w+)(:-)?([^}?]*)", COMPOSE)
    defaults = {name: (value or "none") if has_default else "required" for name, has_default, value in settings}
    documented = {variable: default for variable, default, _ in table("in `.env`")}
    assert documented == defaults
    assert set(defaults) <= set(re.findall(r"\w+", COMPOSE.partition("\nx-server")[0])), "its head lists them too"


def test_the_memory_of_a_session_process_is_capped_as_the_page_says(server: Server) -> None:
    prose = " ".join(PAGE.split())
    assert "grow by `memory-limit + max-body + 512 MiB` after its start, which is 3.5 GiB" in prose
    defaults = Settings()
    assert defaults.memory_limit + defaults.max_body + (512 << 20) == 3.5 * (1 << 30)
    with server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "capped"}))
        limits = Path(f"/proc/{server.worker('capped')}/limits").read_text(encoding="ascii")
    [cap] = re.findall(r"^Max data size +(\d+)", limits, re.M)
    growth = server.settings.memory_limit + server.settings.max_body + (512 << 20)
    assert growth < int(cap) < growth + (256 << 20), "the own memory at the start is less than 256 MiB"
