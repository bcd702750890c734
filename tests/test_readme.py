"""What the README shows runs as it stands, against a real server, and prints what it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8470"


def block(language: str, containing: str) -> str:
    found = [one for one in re.findall(rf"```{language}\n(.*?)```", README, re.S) if containing in one]
    assert len(found) == 1, f"one {language} block with {containing!r}, found {len(found)}"
    return found[0]


def run(command: list[str], text: str, url: str) -> str:
    assert ADDRESS in text, "the README's address is replaced by the test's server"
    script = text.replace(ADDRESS, url)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    done = subprocess.run(
        command, input=script, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_gradient_from_one_request_by_curl(server_url: str) -> None:
    values = json.loads(run(["bash", "-eu"], block("sh", "/v1/run"), server_url))["values"]
    assert values["y"]["data"] == pytest.approx(1.8185949, rel=1e-5)
    assert values["dx"]["data"] == pytest.approx(0.0770037, rel=1e-4)


def test_the_walk_by_curl(server_url: str) -> None:
    for _ in range(2):  # also a second time
        answers = run(["bash", "-eu"], block("sh", "/tapes/tape/gradient"), server_url)
        assert '"data":[2.0,4.0,6.0]' in answers.replace(" ", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_same_from_javascript(server_url: str) -> None:
    printed = run(["node", "--input-type=module"], block("js", "/v1/run"), server_url)
    assert float(printed) == pytest.approx(0.0770037, rel=1e-4)


def test_the_python_program(server_url: str) -> None:
    assert run([sys.executable, "-"], block("python", "import teletape as tf"), server_url).strip() == "[2. 4. 6.]"
