"""Clients generated from the OpenAPI document: TypeScript types fit the pages' bodies, and a Python client runs."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faces import CLIENTS, NODE, ROOT

PYTHON = ROOT / ".venv/clients/bin"
DOCUMENT = ROOT / "openapi/openapi.json"
PAGES = ("README.md", "docs/rest.md")

pytestmark = pytest.mark.clients


class Body(NamedTuple):
    """The JSON body of a request that a page shows."""

    page: str
    path: str
    method: str
    text: str


def bodies() -> Iterator[Body]:
    """Every body that a page sends with curl or fetch, with the path in the document that it is sent to."""
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in re.findall(r"```(?:sh|js)\n(.*?)```", text, re.S):
            variables = dict(re.findall(r"^(\w+)=['\"]?([^'\"\n]+)['\"]?$", block, re.M))
            for method, url, body in requests(block):
                for name, value in variables.items():
                    url = re.sub(rf"\$\{{?{name}\}}?", value, url)
                path = "/v1/" + url.partition("/v1/")[2].partition("?")[0]
                yield Body(page, template(path, paths), method.lower(), body)


def requests(block: str) -> Iterator[tuple[str, str, str]]:
    """Method, URL and JSON body of each request in a block of a page."""
    for command in re.findall(r"^curl .*?(?=^\S|\Z)", re.sub(r"\\\n", " ", block), re.S | re.M):
        body = re.search(r"-d '(\{.*?\})'", command, re.S)
        url = re.search(r"(http://\S+/v1/[^\s\"']*|\$\{?\w+\}?[^\s\"']*/[^\s\"']*|\"\$S\")", command)
        if body and url and "$J" in command + " $J":
            method = re.search(r"-X (\w+)", command)
            yield method[1] if method else "POST", url[1].strip('"'), body[1]
    for url, body in re.findall(r"fetch\(\"([^\"]+)\".*?JSON\.stringify\((\{.*?\})\),\n\}", block, re.S):
        yield "POST", url, body


def template(path: str, paths: dict[str, Any]) -> str:
    """The path of the document that a URL's path fits; of several the one with the fewest parameters."""
    fitting = [known for known in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path)]
    assert fitting, path
    return min(fitting, key=lambda known: known.count("{"))


def run(*command: Any, folder: Path, **environment: str) -> str:
    """Runs a command that has to succeed; returns what it printed."""
    path = f"{PYTHON}:{NODE}:/usr/local/bin:/usr/bin:/bin"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "no_proxy": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the types generated from the document."""
    folder = tmp_path_factory.mktemp("typescript")
    run(NODE / "openapi-typescript", DOCUMENT, "-o", folder / "api.d.ts", folder=CLIENTS)
    return folder


def compile_bodies(folder: Path, shown: list[Body]) -> subprocess.CompletedProcess[str]:
    """Compiles each body as a constant of the type that the document gives to its request."""
    lines = ['import type { paths } from "./api";']
    for number, body in enumerate(shown):
        request = f'paths["{body.path}"]["{body.method}"]["requestBody"]["content"]["application/json"]'
        lines.append(f"export const body{number}: {request} = {body.text};")
    (folder / "bodies.ts").write_text("\n".join(lines), encoding="utf-8")
    command = [str(NODE / "tsc"), "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "bodies.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)


def test_the_pages_show_bodies() -> None:
    shown = list(bodies())
    assert {body.page for body in shown} == set(PAGES)
    assert {"/v1/run", "/v1/sessions", "/v1/sessions/{session}/tapes/{tape}/gradient"} <= {body.path for body in shown}
    assert len(shown) >= 12


WRONG_COMMANDS = (
    '{"do": "gradint", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]}',
    '{"do": "gradient", "tape": "t", "tragets": ["y"], "sources": ["x"], "outputs": ["dx"]}',
    '{"do": "gradient", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]}',
    '{"do": "variable", "id": "x", "value": 2, "trainable": "no"}',
)


def test_the_bodies_of_the_pages_have_the_types_of_the_document_and_wrong_commands_have_none(typescript: Path) -> None:
    right = [*bodies()]
    wrong = [Body("", "/v1/run", "post", f'{{"commands": [{command}]}}') for command in WRONG_COMMANDS]
    done = compile_bodies(typescript, [*right, *wrong])
    first = len("\n".join(body.text for body in right).split("\n")) + 2  # the import is the first line
    expected = {*range(first, first + len(wrong))}
    assert {int(line) for line in re.findall(r"^bodies\.ts\((\d+),", done.stdout, re.M)} == expected, done.stdout


@pytest.mark.long
def test_a_python_client_is_generated_whole_and_runs(server_url: str, tmp_path: Path) -> None:
    config = CLIENTS / "openapi-python-client.yml"
    arguments = (
        "--path",
        DOCUMENT,
        "--config",
        config,
        "--meta",
        "none",
        "--output-path",
        tmp_path / "teletape_client",
    )
    printed = run(PYTHON / "openapi-python-client", "generate", *arguments, folder=tmp_path)
    # The generator knows no safetensors: it leaves these bodies and answers out, and offers the JSON and the raw bytes.
    warnings = re.findall(r"^WARNING .*\n\n(.*)", printed, re.M)
    assert warnings
    assert [warning for warning in warnings if "application/vnd.safetensors" not in warning] == []
    assert printed.count("WARNING") == len(warnings)
    assert "will not be generated" not in printed
    operations = [operation for methods in json.loads(DOCUMENT.read_text())["paths"].values() for operation in methods]
    endpoints = [path for path in (tmp_path / "teletape_client/api").rglob("*.py") if path.name != "__init__.py"]
    assert len(endpoints) == len(operations)
    printed = run(PYTHON / "python", CLIENTS / "run_client.py", server_url, folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert "dx 0.077" in printed
    assert "refused unknown_id" in printed
