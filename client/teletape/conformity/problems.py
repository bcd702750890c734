"""Requests that a server refuses: the status, the code, and an answer that says what to do."""

from __future__ import annotations

import functools
from typing import Any, Final

from teletape.conformity.checks import CHECKS, Deviation, Server, check, expect


def _op(op: str, *inputs: Any, **attrs: Any) -> dict[str, Any]:
    """Returns a program of one op."""
    return {"commands": [{"do": "op", "op": op, "inputs": [*inputs], "attrs": attrs, "outputs": ["y"]}]}


#: What is wrong, the request, and the status and code of the answer.
_REFUSALS: Final[tuple[tuple[str, str, str, Any, int, str], ...]] = (
    ("an unknown path", "GET", "/nothing", None, 404, "not_found"),
    ("an unknown session", "GET", "/sessions/none-of-this-name", None, 404, "unknown_session"),
    ("an unknown op", "POST", "/run", _op("nope", 1.0), 422, "unknown_op"),
    ("an unknown id", "POST", "/run", _op("sin", "x"), 404, "unknown_id"),
    ("an unknown command", "POST", "/run", {"commands": [{"do": "dance"}]}, 422, "bad_command"),
    ("a wrong type", "POST", "/run", {"commands": 5}, 422, "invalid_request"),
    ("a field that there is not", "POST", "/run", {"commands": [], "nothing": 1}, 422, "invalid_request"),
    (
        "a pair of wrong shapes",
        "POST",
        "/run",
        _op("add", [1.0, 2.0], [1.0, 2.0, 3.0]),
        422,
        "invalid_argument",
    ),
    ("a wrong attribute", "POST", "/run", _op("reduce_sum", [1.0], axes=1), 422, "bad_attribute"),
    ("a formula that cannot be read", "POST", "/expressions", {"text": "y = sin(x"}, 422, "invalid_expression"),
    ("a method that a path has not", "PUT", "/health", {}, 405, "method_not_allowed"),
    ("an unknown published function", "GET", "/published/none-of-this-name", None, 404, "unknown_id"),
    ("an unknown parameter of the query", "GET", "/ops?colour=red", None, 422, "invalid_request"),
)


def _refused(method: str, path: str, body: Any, status: int, code: str, server: Server) -> None:
    answer = server.http.request(method, f"/v1{path}", json=body)
    expect(answer.status_code, status, "the status")
    expect(answer.headers["content-type"].partition(";")[0], "application/problem+json", "the type of the answer")
    facts = answer.json()
    expect(facts.get("code"), code, "the code")
    expect(facts.get("status"), status, "the status in the body")
    for field in ("type", "title", "detail"):
        if not facts.get(field):
            raise Deviation(f"the problem has no {field}: {facts}")
    if not answer.headers.get("x-request-id"):
        raise Deviation("the answer has no X-Request-Id")


for _what, _method, _path, _body, _status, _code in _REFUSALS:
    CHECKS[f"{_what} is refused"] = functools.partial(_refused, _method, _path, _body, _status, _code)


@check("a body that is no JSON is refused")
def _no_json(server: Server) -> None:
    answer = server.http.post("/v1/run", content=b"{commands", headers={"Content-Type": "application/json"})
    expect(answer.status_code, 400, "the status")
    expect(answer.json()["code"], "malformed_json", "the code")


@check("a type of body that a path does not take is refused")
def _media_type(server: Server) -> None:
    answer = server.http.post("/v1/run", content=b"commands", headers={"Content-Type": "text/csv"})
    expect(answer.status_code, 415, "the status")
    expect(answer.json()["code"], "unsupported_media_type", "the code")


@check("a type of answer that a path does not give is refused")
def _accept(server: Server) -> None:
    answer = server.http.post("/v1/run", json={"commands": []}, headers={"Accept": "image/png"})
    expect(answer.status_code, 406, "the status")
    expect(answer.json()["code"], "not_acceptable", "the code")


@check("a refused method names the allowed ones")
def _allow(server: Server) -> None:
    answer = server.http.put("/v1/health", json={})
    expect("GET" in answer.headers.get("allow", ""), True, f"Allow: {answer.headers.get('allow')}")


@check("a command that fails is named by its number")
def _command(server: Server) -> None:
    commands = [{"do": "constant", "id": "a", "value": 1.0}, *_op("sin", "missing")["commands"]]
    answer = server.http.post("/v1/run", json={"commands": commands})
    if answer.status_code < 400:
        raise Deviation(f"expected a refusal, got {answer.status_code} {answer.text:.200}")
    expect(answer.json()["details"]["command"], 1, "details.command")
