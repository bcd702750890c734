"""HEAD wherever there is GET, OPTIONS on every path, and every method of a path in a refusal."""

import httpx
import pytest
from rest_client import Rest

from serving import Server, ok, problem

OTHERS = {"/docs": {"GET"}, "/openapi.json": {"GET"}, "/static/api/page.js": {"GET"}}


def methods_by_path(server: Server) -> dict[str, set[str]]:
    paths = {path: {method.upper() for method in item} for path, item in server.app.openapi()["paths"].items()} | OTHERS
    return {path: all_ | {"OPTIONS"} | ({"HEAD"} & {"HEAD" if "GET" in all_ else ""}) for path, all_ in paths.items()}


def test_options_and_refusals_have_every_method_of_the_path(server: Server) -> None:
    paths = methods_by_path(server)
    assert paths["/v1/sessions/{session}/variables/{variable}"] == {"DELETE", "GET", "HEAD", "OPTIONS", "PUT"}
    with server.client() as http:
        for path, methods in paths.items():
            answer = http.options(path)
            assert (answer.status_code, answer.content) == (204, b"")
            assert answer.headers["Allow"] == ", ".join(sorted(methods)), path
            for method in {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} - methods:
                refusal = http.request(method, path)
                assert refusal.status_code == 405
                assert refusal.headers["Allow"] == ", ".join(sorted(methods)), (method, path)
                if method != "HEAD":
                    text = problem(refusal, 405, "method_not_allowed")["detail"]
                    assert text == f"{path} has no {method}: it has {', '.join(sorted(methods))}"
        problem(http.options("/v1/nothing"), 404, "not_found")


@pytest.mark.parametrize("accept", ["application/json", "application/octet-stream"])
def test_head_is_get_without_the_body(rest: Rest, accept: str) -> None:
    rest.create("variables", {"id": "w", "value": [1.5] * 5000})
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    for path in (f"{rest.path}/variables/w", f"{rest.path}/variables/w?full=true"):
        whole, head = (ok(rest.http.request(method, path, headers=headers)) for method in ("GET", "HEAD"))
        assert head.content == b""
        for answer in (whole, head):
            for name in ("date", "x-request-id"):
                del answer.headers[name]
        assert head.headers == whole.headers
        assert int(head.headers["content-length"]) == len(whole.content)


@pytest.mark.parametrize("path", ["/v1/info", "/docs", "/openapi.json", "/static/api/page.js"])
def test_pages_and_facts_have_head_too(http: httpx.Client, path: str) -> None:
    head = ok(http.head(path))
    assert head.content == b""
    assert int(head.headers["content-length"]) > 0


def test_head_of_what_is_not_there_is_the_refusal_without_its_body(rest: Rest) -> None:
    answer = rest.http.head(f"{rest.path}/variables/none")
    assert (answer.status_code, answer.content) == (404, b"")
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_connection_goes_on_after_head(http: httpx.Client) -> None:
    for _ in range(3):
        ok(http.head("/v1/info"))
        assert ok(http.get("/v1/health")).json() == {"status": "ok"}
