"""The examples without Python run twice and print what they should; docs/rest.md lists every operation."""

import json
import re
import shutil
from pathlib import Path

import pytest

from programs import json_objects, run
from serving import Server
from teletape_server.settings import Settings

ROOT = Path(__file__).parents[3]


def test_the_table_of_resources_has_every_operation() -> None:
    def plain(path: str) -> str:
        return re.sub(r"\{\w+\}", "{}", path)

    document = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))
    lines = re.findall(r"^\| (`/.*?) \| (.*) \|$", (ROOT / "docs/rest.md").read_text(encoding="utf-8"), re.M)
    rows = {plain(name): text for names, text in lines for name in re.findall(r"`(/\w[^`]*)`", names)}
    for path, methods in document["paths"].items():
        resource = plain(path.removeprefix("/v1") or path)
        row = max((name for name in rows if resource == name or resource.startswith(f"{name}/")), key=len)
        rest = resource.removeprefix(row).removeprefix("/{}")
        assert not rest or f"`{rest}`" in rows[row], path
        assert [method.upper() for method in methods if method.upper() not in rows[row]] == [], path


def test_the_walk_by_curl(server_url: str) -> None:
    for _ in range(2):
        printed = run(["bash", "examples/curl.sh"], TELETAPE_URL=server_url)
        assert '"data":[32.0,100.0,216.0]' in printed
        assert '"data":[0.68,1.0,0.84000015]' in printed
        assert "tensor-shape: 2" in printed


def test_derivatives_by_curl(server_url: str) -> None:
    for _ in range(2):
        printed = run(["bash", "examples/derivatives.sh"], TELETAPE_URL=server_url)
        answers = json_objects(re.sub(r"(?s)digraph tape \{.*?\n\}\n", "", printed))
        fields = {name: value for answer in answers for name, value in answer.items()}
        [questions] = [answer["results"] for answer in answers if isinstance(answer.get("results"), list)]
        jacobian, product = [question["derivatives"][0] for question in questions]
        assert jacobian["value"]["data"] == [[3.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 27.0]]
        assert product["value"]["data"] == [3.0, 6.0, 9.0]
        [why] = fields["explanations"]
        assert (why["code"], why["where"]) == ("non_differentiable_op", "derivatives.sh:23")
        assert fields["agrees"] is True
        assert 'label="round → steps' in printed
        [slope] = fields["derivatives"]  # of the loop: of the root of 2.25
        assert slope["value"]["data"] == pytest.approx(1 / 3)
        assert fields["values"] == {"gradient": {"dtype": "float32", "shape": [2], "data": [7.0, 7.5]}}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_javascript(server_url: str) -> None:
    lines = run(["node", "examples/gradient.mjs"], TELETAPE_URL=server_url).split()
    assert [lines[0], lines[3]] == ["y", "dx"]
    assert [float(lines[2]), float(lines[5])] == pytest.approx([1.8185949, 0.0770037], rel=1e-4)


def test_the_examples_send_a_key() -> None:
    with Server(Settings(api_keys={"ann": "the-key-of-ann"})).running() as server:
        for script in ("curl.sh", "derivatives.sh"):
            run(["bash", f"examples/{script}"], TELETAPE_URL=server.url, TELETAPE_API_KEY="the-key-of-ann")
        if shutil.which("node"):
            run(["node", "examples/gradient.mjs"], TELETAPE_URL=server.url, TELETAPE_API_KEY="the-key-of-ann")
