"""What docs/rest.md and examples/ show runs as it stands, twice, and prints what is said beside it."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from serving import Server
from teletape_server.settings import Settings

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8470"
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/rest.md").read_text(encoding="utf-8"), re.S)


def run(command: list[str], url: str, *, text: str | None = None, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    done = subprocess.run(
        command,
        input=text,
        env=environment | {"TELETAPE_URL": url, "no_proxy": "127.0.0.1"} | more,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_examples() -> None:
    assert len(BLOCKS) == 5


def test_the_table_of_resources_has_every_operation() -> None:
    def plain(path: str) -> str:
        return re.sub(r"\{\w+\}", "{}", path)

    document = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))
    lines = re.findall(r"^\| (`/.*?) \| (.*) \|$", (ROOT / "docs/rest.md").read_text(encoding="utf-8"), re.M)
    rows = {plain(name): text for names, text in lines for name in re.findall(r"`(/\w[^`]*)`", names)}
    for path, methods in document["paths"].items():
        place = plain(path.removeprefix("/v1"))
        row = max((one for one in rows if place == one or place.startswith(f"{one}/")), key=len)
        behind = place.removeprefix(row).removeprefix("/{}")
        assert not behind or f"`{behind}`" in rows[row], path
        assert [one.upper() for one in methods if one.upper() not in rows[row]] == [], path


@pytest.mark.parametrize("block", BLOCKS)
def test_the_examples_of_the_page(server_url: str, block: str) -> None:
    assert ADDRESS in block
    expected = re.findall(r"^# (.+)$", block, re.M)
    assert expected
    for _ in range(2):
        printed = run(["bash", "-eu"], server_url, text=block.replace(ADDRESS, server_url))
        for one in expected:
            if one.startswith("{"):
                assert json.loads(one) in [json.loads(found) for found in objects(printed)]
            else:
                assert one in printed


def objects(text: str) -> list[str]:
    """The JSON objects that stand in a text, one behind the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while (start := text.find("{", at)) >= 0:
        _, at = decoder.raw_decode(text, start)
        found.append(text[start:at])
    return found


def test_the_walk_by_curl(server_url: str) -> None:
    for _ in range(2):
        printed = run(["bash", "examples/curl.sh"], server_url)
        assert '"data":[32.0,100.0,216.0]' in printed
        assert '"data":[0.68,1.0,0.84000015]' in printed
        assert "tensor-shape: 2" in printed


def test_derivatives_by_curl(server_url: str) -> None:
    for _ in range(2):
        printed = run(["bash", "examples/derivatives.sh"], server_url)
        answers = [json.loads(one) for one in objects(re.sub(r"(?s)digraph tape \{.*?\n\}\n", "", printed))]
        told = {name: value for one in answers for name, value in one.items()}
        jacobian, product = told["results"][0]["derivatives"][0], told["results"][1]["derivatives"][0]
        assert jacobian["value"]["data"] == [[3.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 27.0]]
        assert product["value"]["data"] == [3.0, 6.0, 9.0]
        [why] = told["explanations"]
        assert (why["code"], why["where"]) == ("non_differentiable_op", "derivatives.sh:23")
        assert told["agrees"] is True
        assert 'label="round → steps' in printed
        [slope] = told["derivatives"]  # of the loop: of the root of 2.25
        assert slope["value"]["data"] == pytest.approx(1 / 3)
        assert told["values"] == {"gradient": {"dtype": "float32", "shape": [2], "data": [7.0, 7.5]}}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_javascript(server_url: str) -> None:
    lines = run(["node", "examples/gradient.mjs"], server_url).split()
    assert [lines[0], lines[3]] == ["y", "dx"]
    assert [float(lines[2]), float(lines[5])] == pytest.approx([1.8185949, 0.0770037], rel=1e-4)


def test_the_examples_send_a_key() -> None:
    with Server(Settings(api_keys={"ann": "the-key-of-ann"})).running() as server:
        for one in ("curl.sh", "derivatives.sh"):
            run(["bash", f"examples/{one}"], server.url, TELETAPE_API_KEY="the-key-of-ann")
        if shutil.which("node"):
            run(["node", "examples/gradient.mjs"], server.url, TELETAPE_API_KEY="the-key-of-ann")
