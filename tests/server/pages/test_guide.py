"""The guide and the pages of problems: every page and every code is served, every link in them leads to something."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import httpx
import pytest

from serving import ok, problem
from teletape_server.pages import markdown
from teletape_server.problems import PROBLEMS


@pytest.fixture
def http(server_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server_url, trust_env=False, follow_redirects=True) as client:
        yield client


def test_the_contents_list_every_page(http: httpx.Client) -> None:
    contents = ok(http.get("/guide")).text
    assert sorted(re.findall(r'<li><a href="guide/([a-z_-]+)"', contents)) == markdown.names()


def test_every_link_and_picture_of_every_page_leads_to_something(http: httpx.Client) -> None:
    pages = [f"/guide/{name}" for name in markdown.names()] + [f"/problems/{code}" for code in PROBLEMS]
    texts = {page: ok(http.get(page)).text for page in pages}
    broken = []
    statuses: dict[str, int] = {}
    for page, text in texts.items():
        for address in re.findall(r'(?:href|src)="([^"]+)"', text):
            if address.startswith("http"):
                continue
            target = urljoin(page, address)
            path, _, anchor = target.partition("#")
            if path not in texts and path not in statuses:
                statuses[path] = http.get(path).status_code
            if statuses.get(path, 200) != 200 or (anchor and path in texts and f'id="{anchor}"' not in texts[path]):
                broken.append((page, address))
    assert broken == []


def test_a_page_has_its_title_its_code_and_its_tables(http: httpx.Client) -> None:
    answer = ok(http.get("/guide/rest"))
    assert "<title>REST · Teletape</title>" in answer.text
    assert '<div class="table"><table>' in answer.text
    assert 'class="language-sh"' in answer.text
    assert "unsafe-inline" not in answer.headers["content-security-policy"]


def test_text_of_a_page_is_never_markup() -> None:
    assert "<script" not in markdown.html("<script>alert(1)</script>", guide="")


def test_the_type_of_a_problem_opens_its_page(http: httpx.Client) -> None:
    refusal = problem(http.get("/v1/sessions/nobody"), 404, "unknown_session")
    page = ok(http.get(refusal["type"]))
    assert "<h1>Unknown session</h1>" in page.text
    assert "HTTP status 404" in page.text
    assert "What to do:" in page.text


def test_what_is_not_there_says_where_to_look(http: httpx.Client) -> None:
    assert "/guide lists all pages" in problem(http.get("/guide/none"), 404, "not_found")["detail"]
    assert "/guide/problems" in problem(http.get("/problems/none"), 404, "not_found")["detail"]
    problem(http.get("/guide/pictures/none.svg"), 404, "not_found")
    problem(http.get("/guide/pictures/..%2frest.md"), 404, "not_found")
