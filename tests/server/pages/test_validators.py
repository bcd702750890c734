"""What a browser may keep: pages, files and the document have an ETag, and come once while they stay the same."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import yaml
from fastapi import FastAPI

from serving import Server, ok, until
from teletape_server.http.openapi import document
from teletape_server.settings import Settings

KEPT = ["/docs", "/guide", "/openapi.json", "/openapi.yaml", "/static/shared/theme.css", "/static/shared/icon.svg"]


@pytest.mark.parametrize("path", KEPT)
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_what_a_browser_has_already_comes_without_a_body(http: httpx.Client, path: str, encoding: str) -> None:
    headers = {"Accept-Encoding": encoding}
    first = ok(http.get(path, headers=headers))
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        for method in ("GET", "HEAD"):
            again = http.request(method, path, headers=headers | {"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
            assert again.headers["cache-control"] == "no-cache"
            assert "content-encoding" not in again.headers
            assert again.headers["x-request-id"]
    for other in ('"other"', tag.strip('"'), ""):
        assert ok(http.get(path, headers=headers | {"If-None-Match": other})).content == first.content


def test_each_encoding_has_a_tag_of_its_own(http: httpx.Client) -> None:
    for path in ("/guide", "/openapi.json", "/static/shared/theme.css"):
        tags = {http.get(path, headers={"Accept-Encoding": name}).headers["etag"] for name in ("gzip", "identity")}
        assert len(tags) == 2


def test_answers_of_the_api_are_not_kept(http: httpx.Client) -> None:
    for path in ("/v1/info", "/v1/health", "/v1/sessions"):
        assert "etag" not in ok(http.get(path)).headers


def test_the_document_in_yaml_is_the_document(http: httpx.Client) -> None:
    answer = ok(http.get("/openapi.yaml"))
    assert answer.headers["content-type"] == "application/yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert yaml.load(answer.content, Loader=loader) == http.get("/openapi.json").json()


def test_the_index_leads_to_everything(http: httpx.Client) -> None:
    answer = ok(http.get("/v1"))
    index = answer.json()
    assert (index["name"], index["api_version"]) == ("teletape", "v1")
    for relation, path in index["links"].items():
        if relation == "run":
            assert http.get(path).headers["allow"] == "OPTIONS, POST"
        else:
            ok(http.get(path))
    assert answer.links["service-desc"]["url"] == index["links"]["service-desc"] == "/openapi.json"
    assert answer.links["service-doc"]["url"] == index["links"]["service-doc"]


def test_the_yaml_document_is_written_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, written, release = list[FastAPI](), document.yaml_text, threading.Event()

    def slow(app: FastAPI) -> bytes:
        calls.append(app)
        release.wait(60)
        return written(app)

    monkeypatch.setattr(document, "yaml_text", slow)
    with Server(Settings()).running() as server, server.client() as http, ThreadPoolExecutor(5) as threads:
        answers = [threads.submit(http.get, "/openapi.yaml") for _ in range(5)]
        until(lambda: server.answering() == 5)
        release.set()
        assert len({ok(answer.result()).content for answer in answers}) == 1
    assert len(calls) == 1
