"""Query parameters that an operation does not have: refused on every route, with the one that was meant."""

import httpx
import pytest

from serving import Server, ok, problem
from teletape_engine.suggestions import did_you_mean
from teletape_server.middleware.templates import PathTemplates


def test_every_operation_refuses_a_parameter_that_it_does_not_have(server: Server) -> None:
    operations = [
        (
            method,
            path,
            {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"},
        )
        for path, item in server.app.openapi()["paths"].items()
        for method, operation in item.items()
    ]
    assert len(operations) > 50
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        for method, path, known in operations:
            answer = http.request(method, path.replace("{session}", "demo"), params={"limits_of": "1"})
            [fault] = problem(answer, 422, "invalid_request")["details"]["fields"]
            assert (fault["field"], fault["kind"]) == ("limits_of", "unknown_parameter"), path
            for name in known:
                answer = http.request(method, path.replace("{session}", "demo"), params={name + "x": "1"})
                detail = problem(answer, 422, "invalid_request")["detail"]
                assert f"{name}x: is no query parameter of this request: did you mean " in detail
                assert repr(name) in detail


def test_the_refusal_names_all_of_them_and_what_there_is(http: httpx.Client) -> None:
    answer = http.post("/v1/run", params={"ful": "true", "zzz": "1", "device": "cpu"}, json={"commands": []})
    assert problem(answer, 422, "invalid_request")["detail"] == (
        "ful: is no query parameter of this request: did you mean 'full'?; "
        "zzz: is no query parameter of this request, which has full, device, request"
    )
    assert "which has none" in problem(http.get("/v1/info?x=1"), 422, "invalid_request")["detail"]
    many = problem(http.get("/v1/info", params={f"x{at}": 1 for at in range(100)}), 422, "invalid_request")
    assert len(many["details"]["fields"]) == 8
    long = problem(http.get("/v1/info", params={"x" * 5000: 1}), 422, "invalid_request")
    assert len(long["details"]["fields"][0]["field"]) == 100


def test_a_key_is_checked_before_parameters_are(server: Server) -> None:
    with server.client(None) as http:
        problem(http.get("/v1/sessions?x=1"), 401, "unauthenticated")
        problem(http.get("/v1/health?x=1"), 422, "invalid_request")


def test_pages_take_any_parameter(http: httpx.Client) -> None:
    for path in ("/docs", "/openapi.json"):
        ok(http.get(path, params={"from": "elsewhere"}))


@pytest.mark.parametrize(
    ("name", "question"),
    [("ful", "did you mean 'full'?"), ("devise", "did you mean 'device'?"), ("x", ""), ("", "")],
)
def test_suggestions(name: str, question: str) -> None:
    assert did_you_mean(name, ["full", "device", "device"]) == question


def test_suggestions_of_several() -> None:
    assert did_you_mean("tape", ["tapes", "tap", "device"]) == "did you mean 'tapes' or 'tap'?"


def test_templates_of_paths() -> None:
    templates = PathTemplates(["/v1", "/v1/run", "/v1/ops/{op}", "/v1/s/{session}/t/{tape}", "/v1/s/{session}"])
    for path, template in {
        "/v1": "/v1",
        "/v1/run": "/v1/run",
        "/v1/ops/run": "/v1/ops/{op}",
        "/v1/s/t/t/t": "/v1/s/{session}/t/{tape}",
        "/v1/s/{}": "/v1/s/{session}",
        "/v1/s/": None,
        "/v1/s/x/t": None,
        "/v1/s/x/": None,
        "": None,
        "/v2": None,
        "/v1/ops": None,
    }.items():
        assert templates.of(path) == template, path
