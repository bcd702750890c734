"""The JavaScript client: its own tests run in Node against a server, its types are compiled, a page can import it."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from faces import CLIENTS, NODE, ROOT

from programs import run
from serving import ok

CLIENT = ROOT / "client/js"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_its_own_tests_pass_in_node(server_url: str) -> None:
    tests = sorted(str(path) for path in (CLIENT / "test").glob("*.test.js"))
    printed = run(["node", "--test", *tests], patience=110, TELETAPE_URL=server_url)
    assert "# fail 0" in printed
    assert int(printed.partition("# pass ")[2].split()[0]) > 20


def test_its_types_are_written_when_a_checkout_is_installed() -> None:
    """npm runs `prepare` for a package in a folder; its tools have the versions that the tests below use."""
    scripts = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["scripts"]
    assert scripts["prepare"] == "npm run types"
    for name, version in json.loads((CLIENTS / "package.json").read_text(encoding="utf-8"))["devDependencies"].items():
        assert f"{name}@{version}" in scripts["types"]


def test_a_page_can_import_it_from_the_server(server_url: str) -> None:
    for path in (CLIENT / "src").glob("*.js"):
        answer = ok(httpx.get(f"{server_url}/static/client/{path.name}", trust_env=False))
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.text == path.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.clients
def test_its_types_accept_programs_and_refuse_mistakes(tmp_path: Path) -> None:
    package = tmp_path / "node_modules/@teletape/client"
    shutil.copytree(CLIENT, package, ignore=shutil.ignore_patterns("types", "api.d.ts"))
    document = ROOT / "openapi/openapi.json"
    commands = [
        [NODE / "openapi-typescript", document, "-o", package / "src/api.d.ts", "--default-non-nullable=false"],
        [NODE / "tsc", "-p", package],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=CLIENTS, capture_output=True, text=True, timeout=110, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for path in (package / "src").glob("*.d.ts"):
        shutil.copy(path, package / "types")
    shutil.copy(CLIENT / "test/types.ts", tmp_path)
    options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022"]
    done = subprocess.run(
        [NODE / "tsc", *options, "types.ts"], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout
