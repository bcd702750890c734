"""What the pages and the README show runs as it stands, inside the process and on a server, and prints what it says.

Pages whose output stands in a block of its own are run beside the tests of their subject (test_explain, test_picture).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8470"
PAGES = [
    "control-flow",
    "custom-gradients",
    "derivatives",
    "forward-mode",
    "functions",
    "leaving",
    "sparse",
]


def blocks(page: str, language: str, containing: str = "") -> list[str]:
    """The page's blocks in that language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [one for one in re.findall(rf"```{language}\n(.*?)```", text, re.S) if containing in one]


def said(program: str) -> list[str]:
    """What stands behind each print, up to an explanation, or below it."""
    behind = r"^\s*print\(.*\)  # (.*?)(?:[:;] .*)?$"
    below = r"^tf\.print\(.*\)\n# (.*)$"
    return [one[0] or one[1] for one in re.findall(f"{behind}|{below}", program, re.M)]


def printed(command: list[str], text: str, **environment: str) -> str:
    """What a program given on standard input prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    done = subprocess.run(
        command, input=text, env=clean | environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("where", ["in the process", "over HTTP"])
@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page(page: str, where: str, server_url: str) -> None:
    program = "\n".join(blocks(f"docs/{page}.md", "python"))
    expected = said(program)
    assert expected, "a program that prints nothing shows nothing"
    environment = {"TELETAPE_URL": server_url} if where == "over HTTP" else {}
    assert printed([sys.executable, "-"], program, **environment).splitlines() == expected


def test_the_programs_of_the_readme(server_url: str) -> None:
    program = "\n".join(blocks("README.md", "python"))
    found = printed([sys.executable, "-"], program.replace(ADDRESS, server_url)).splitlines()
    assert found == said(program) == ["[2. 4. 6.]", "None", "integer_or_bool"]


def requests(text: str, server_url: str) -> str:
    assert ADDRESS in text, "the page's address is replaced by the test's server"
    return printed(["bash", "-eu"], text.replace(ADDRESS, server_url), no_proxy="127.0.0.1")


def test_the_gradient_from_one_request_by_curl(server_url: str) -> None:
    [block] = blocks("README.md", "sh", "/v1/run")
    values = json.loads(requests(block, server_url))["values"]
    assert values["y"]["data"] == pytest.approx(1.8185949, rel=1e-5)
    assert values["dx"]["data"] == pytest.approx(0.0770037, rel=1e-4)


def test_the_walk_by_curl(server_url: str) -> None:
    [block] = blocks("README.md", "sh", "/tapes/tape/gradient")
    for _ in range(2):  # also a second time
        assert '"data":[2.0,4.0,6.0]' in requests(block, server_url).replace(" ", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_same_from_javascript(server_url: str) -> None:
    [block] = blocks("README.md", "js", "/v1/run")
    assert float(printed(["node", "--input-type=module"], block.replace(ADDRESS, server_url))) == pytest.approx(
        0.0770037, rel=1e-4
    )


def test_a_custom_gradient_by_curl(server_url: str) -> None:
    [block] = blocks("docs/custom-gradients.md", "sh")
    [expected] = re.findall(r"^# (\{.+)$", block, re.MULTILINE)
    assert json.loads(requests(block, server_url))["values"]["gradient"] == json.loads(expected)


def test_many_questions_by_curl(server_url: str) -> None:
    [block] = blocks("docs/derivatives.md", "sh")
    [expected] = re.findall(r"^# (\{.+)$", block, re.MULTILINE)
    found = re.findall(r"\{\"results\".*?\"bytes_in_use\":\d+\}", requests(block, server_url))
    assert json.loads(expected)["results"] in [json.loads(one)["results"] for one in found]
