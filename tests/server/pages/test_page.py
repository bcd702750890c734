"""The API page's files: all from this server, with headers that limit what they may do."""

import json
import re
from pathlib import Path

import httpx
import pytest

import teletape_server
from serving import ok, problem

ROOT = Path(__file__).parents[3]
STATIC = Path(teletape_server.__file__).parent / "static"


def test_the_page_may_talk_to_its_own_server_alone(server_url: str) -> None:
    page = ok(httpx.get(f"{server_url}/docs", trust_env=False))
    policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert not re.search(r"https?:|//", re.sub(r"<!doctype html>", "", page.text))
    assert page.headers["x-content-type-options"] == "nosniff"


def test_every_file_that_the_page_names_is_there(server_url: str) -> None:
    with httpx.Client(base_url=server_url, trust_env=False) as http:
        named = re.findall(r'(?:src|href)="([^"]+)"', http.get("/docs").text)
        assert len(named) == 13
        types = {path: ok(http.get("/" + path)).headers["content-type"].partition(";")[0] for path in named}
        assert types["static/vendor/swagger-ui/swagger-ui.css"] == "text/css"
        assert types["static/api/page.js"] == "text/javascript"
        problem(http.get("/static/none.js"), 404, "not_found")
        problem(http.get("/static/..%2fapp.py"), 404, "not_found")


def test_fastapis_own_pages_are_off(server_url: str) -> None:
    problem(httpx.get(f"{server_url}/redoc", trust_env=False), 404, "not_found")


def test_what_is_vendored_says_what_it_is() -> None:
    versions = json.loads((ROOT / "scripts/vendor/package.json").read_text())["dependencies"]
    folders = {folder.name: (folder / "VENDORED.md").read_text() for folder in (STATIC / "vendor").iterdir()}
    assert f"swagger-ui-dist {versions.pop('swagger-ui-dist')}, Apache-2.0" in folders["swagger-ui"]
    del versions["esbuild"]  # it writes the bundles, and is in none
    listed = "\n".join(folders.values())
    assert [name for name, version in versions.items() if f"* {name} {version}, " not in listed] == []
    for name, about in folders.items():
        licence = (STATIC / "vendor" / name / "LICENSE").read_text()
        assert [package for package in re.findall(r"^\* (\S+ \S+),", about, re.M) if package not in licence] == []
        assert re.search(r"Apache License|Permission is hereby granted|Permission to use, copy", licence)
        assert not list((STATIC / "vendor" / name).glob("*.map"))


@pytest.mark.parametrize("name", ["swagger-ui-bundle.js", "swagger-ui.css"])
def test_no_file_asks_for_a_source_map(name: str) -> None:
    assert "# sourceMappingURL=" + name not in (STATIC / "vendor/swagger-ui" / name).read_text()


def test_the_validator_is_off() -> None:
    settings = (STATIC / "api/page.js").read_text()
    assert json.loads(re.search(r"validatorUrl: (\w+)", settings)[1]) is None  # type: ignore[index]  # it is there
