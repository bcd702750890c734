"""A gradient of the client's own by plain HTTP: the pass waits on the server between two requests."""

from typing import Any

import httpx
import pytest

from serving import Server, ok

BODY = [
    {"do": "variable", "id": "x", "value": [1.0, 2.0]},
    {"do": "tape.open", "id": "t"},
    {"do": "op", "op": "square", "inputs": ["x"], "outputs": ["r"]},
    {"do": "op", "op": "identity", "inputs": ["r"], "outputs": ["y"]},
    {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "mine", "label": "steep"},
    {"do": "op", "op": "mul", "inputs": ["y", 3.0], "outputs": ["z"]},
    {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["z"], "sources": ["x"]},
    {"do": "backward.cotangents", "id": "b", "outputs": ["dy"], "tag": "mine"},
    {"do": "fetch", "id": "dy"},
]


@pytest.fixture
def http(server: Server) -> Any:
    with server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client


def send(http: httpx.Client, *commands: Any, release: Any = ()) -> Any:
    return ok(http.post("/v1/sessions/demo/batch", json={"commands": list(commands), "release": list(release)})).json()


def test_the_client_reads_computes_and_goes_on(http: httpx.Client) -> None:
    stands, fetched = send(http, *BODY)["results"]
    assert stands["facts"] == {"through": False, "tag": "mine", "function": "steep", "cotangents": ["dense"]}
    dy = fetched["value"]["data"]
    assert dy == [3.0, 3.0]
    mine = [10.0 * element for element in dy]
    answer = send(
        http,
        {"do": "backward.resume", "id": "b", "cotangents": [{"dtype": "float32", "shape": [2], "data": mine}]},
        {"do": "backward.end", "id": "b", "outputs": ["g"], "predicted": ["dense"]},
        {"do": "fetch", "id": "g"},
    )
    assert answer["failure"] is None
    through, kinds, gradient = answer["results"]
    assert through["facts"] == {"through": True}
    assert kinds["kinds"] == ["dense"]
    assert gradient["value"]["data"] == [30.0, 30.0]


def test_a_wrong_tag_says_where_the_pass_stands_and_the_pass_stays(http: httpx.Client) -> None:
    send(http, *BODY)
    failure = send(http, {"do": "backward.cotangents", "id": "b", "outputs": ["again"], "tag": "other"})["failure"]
    assert (failure["code"], failure["command"]) == ("structure_mismatch", 0)
    assert "has stopped at 'steep' (tag 'mine')" in failure["message"]
    answer = send(
        http,
        {"do": "backward.resume", "id": "b", "cotangents": [None]},
        {"do": "backward.end", "id": "b", "outputs": ["g"]},
    )
    assert [result.get("kinds") for result in answer["results"]] == [None, ["none"]]


def test_a_pass_released_in_the_middle_is_gone_and_the_tape_has_answered(http: httpx.Client) -> None:
    send(http, *BODY)
    send(http, release=["b"])
    assert send(http, {"do": "backward.resume", "id": "b", "cotangents": [None]})["failure"]["code"] == "released_id"
    again = {"do": "gradient", "tape": "t", "targets": ["z"], "sources": ["x"], "outputs": ["g"]}
    assert send(http, again)["failure"]["code"] == "tape_consumed"


def test_a_failure_before_it_poisons_the_pass(http: httpx.Client) -> None:
    broken = [*BODY[:6], {"do": "op", "op": "matmul", "inputs": ["z", "z"], "outputs": ["w"]}, *BODY[6:]]
    failure = send(http, *broken)["failure"]
    assert failure["op"] == "matmul"
    later = send(http, {"do": "backward.resume", "id": "b", "cotangents": [None]})["failure"]
    assert later["code"] == "poisoned"
    assert failure["message"].removeprefix("op 'matmul': ") in later["message"]
