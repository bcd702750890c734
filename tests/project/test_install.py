"""What `make` installs, and with which installer: scripts/install.py."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from programs import ROOT, load_script

install = load_script("install")


@pytest.mark.parametrize(("target", "extras"), [("demo", "demo"), ("test", "dev"), ("lint", "dev")])
def test_the_demo_installs_what_it_needs_and_the_rest_installs_all(target: str, extras: str) -> None:
    command = ["make", "--dry-run", "--what-if=pyproject.toml", target]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in printed.splitlines() if "install.py" in line] == [extras]


def test_after_all_is_installed_the_demo_installs_nothing() -> None:
    command = ["make", "--dry-run", "--what-if=pyproject.toml", "test"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "touch .venv/.installed-demo .venv/.installed" in printed


def test_uv_reads_the_settings_of_pip() -> None:
    listing = (
        "global.index-url='https://files.example/simple'\n"
        "global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'\n"
        "global.timeout='60'\n"
        "install.find-links='/wheels /more'\n"
        ":env:.index-url='https://other.example/simple'\n"
        ":env:.cert='/etc/certificates.pem'\n"
    )
    assert install.for_uv(listing) == {
        "UV_DEFAULT_INDEX": "https://other.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/certificates.pem",
    }
    assert install.for_uv("") == {}


def test_the_project_gets_the_versions_of_the_constraints() -> None:
    assert install.project("demo") == ["--constraint", str(ROOT / "constraints.txt"), "--editable", f"{ROOT}[demo]"]


@pytest.mark.parametrize(
    ("failing", "commands", "status"),
    [
        ((), ["pip install uv", "pip config", "uv pip install"], 0),
        (("pip install uv",), ["pip install uv", "pip install"], 0),
        (("uv pip install",), ["pip install uv", "pip config", "uv pip install", "pip install"], 0),
        (("uv pip install", "pip install"), ["pip install uv", "pip config", "uv pip install", "pip install"], 1),
    ],
)
def test_pip_installs_where_uv_does_not(
    failing: tuple[str, ...], commands: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        words = (
            "uv pip install"
            if command[0] == str(install.UV)
            else "pip config"
            if "config" in command
            else "pip install"
        )
        words += " uv" if command[-1] == "uv" else ""
        ran.append(words)
        if words.endswith("pip install"):
            assert command[-2:] == ["--requirement", "needs.txt"]
            assert command[command.index("--python") + 1] == "other/bin/python"
        return subprocess.CompletedProcess(command, words in failing, "", "")

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install.subprocess, "call", lambda command, **options: run(command).returncode)
    monkeypatch.setattr(sys, "argv", ["install.py", "--into", "other", "needs.txt"])
    assert install.main() == status
    assert ran == commands
    assert str(install.UV).startswith(sys.prefix)
