"""POST /v1/price: what commands would take, in the words of what would become of them; and nothing has run."""

from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import ok, problem

LARGE = {"dtype": "float32", "shape": [100_000, 1000]}
#: A gradient of 400 MB.
GRADIENT = {
    "commands": [
        {"do": "variable", "id": "x", "value": LARGE},
        {"do": "tape.open", "id": "t"},
        {"do": "op", **op("tanh", "x", to="y")},
        {"do": "op", **op("reduce_sum", "y", to="loss", axis=None)},
        {"do": "gradient", "tape": "t", "targets": ["loss"], "sources": ["x"], "outputs": ["dx"]},
    ],
    "fetch": ["loss", "dx"],
}


def price(http: httpx.Client, body: Any) -> Any:
    return ok(http.post("/v1/price", json=body)).json()


def test_a_large_gradient_is_priced_by_shapes_alone(http: httpx.Client) -> None:
    answer = price(http, GRADIENT)
    assert answer["verdict"] == "fits"
    assert answer["reason"].startswith(f"it needs {answer['cost']['peak_bytes']:,} bytes in addition to the 0 in use")
    small = price(http, {"commands": [{"do": "op", **op("square", 3.0, to="y")}]})
    assert small["reason"].endswith(" and computes for less than 0.001 s")
    assert [(each["command"], each["id"], each["kind"], each["shape"]) for each in answer["results"]] == [
        (0, "x", "variable", LARGE["shape"]),
        (2, "y", "tensor", LARGE["shape"]),
        (3, "loss", "tensor", []),
        (4, "dx", "tensor", LARGE["shape"]),
    ]
    cost = answer["cost"]
    assert cost["bytes_up"] == 400_000_000
    assert cost["bytes_down"] == 400_000_004
    assert 1_600_000_000 <= cost["peak_bytes"] <= 2_400_000_000
    assert 0.01 < cost["seconds"] < 60
    assert answer["depends"] == []
    assert (answer["wait"], answer["problem"]) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        {"commands": [{"do": "op", **op("tahn", 1.0, to="y")}]},
        {"commands": [{"do": "op", **op("tanh", "x", to="y")}]},
        {"tensors": {"a": [1.0, 2.0]}, "commands": [{"do": "op", **op("matmul", "a", "a", to="y")}]},
        {"tensors": {"a": [1.0, 2.0], "i": [0.0]}, "commands": [{"do": "op", **op("gather", "a", "i", to="y")}]},
        {"commands": [{"do": "op", **op("fill", 1.0, to="big", shape=[1 << 30])}]},
        {"commands": [{"do": "what"}]},
        {"commands": [{"do": "op"}]},
        {"commands": [], "fetch": ["y"]},
        {"tensors": {"a": [1.0]}, "commands": [{"do": "op", **op("matmul", {"dtype": "float32"}, "a", to="y")}]},
    ],
)
def test_a_refusal_is_the_one_that_the_commands_would_get(http: httpx.Client, body: Any) -> None:
    answer = price(http, body)
    true = http.post("/v1/run", json=body)
    assert not true.is_success
    expected = {name: true.json()[name] for name in ("status", "title", "code", "detail", "details")}
    assert (answer["verdict"], answer["problem"]) == ("refused", expected)
    assert answer["reason"] == expected["detail"]


def test_in_a_session_its_values_count_and_stay(rest: Rest, http: httpx.Client) -> None:
    rest.create("variables", {"id": "w", "value": [[1.0, 2.0]]})
    rest.create("tapes", {"id": "t", "persistent": True})
    rest.done("tapes/t/ops", {"ops": [op("square", "w", to="squares"), op("reduce_sum", "squares", to="loss")]})
    rest.create("functions", {"id": "f", "inputs": ["x"], "outputs": ["y"], "steps": [op("exp", "x", to="y")]})
    before, tag = ok(http.get(rest.path)).json()["bytes_in_use"], rest.get("variables/w").headers["etag"]
    body = {
        "session": rest.session,
        "commands": [
            {"do": "op", **op("mul", "w", {"dtype": "float32", "shape": [1000, 2]}, to="product")},
            {"do": "gradient", "tape": "t", "targets": ["loss"], "sources": ["w"], "outputs": ["dw"]},
            {"do": "call", "function": "f", "inputs": ["product"], "outputs": ["powers"]},
            {"do": "assign", "variable": "w", "value": "dw", "mode": "sub"},
        ],
        "fetch": ["powers", "w"],
    }
    answer = price(http, body)
    assert answer["verdict"] == "fits"
    assert [(each["id"], each["shape"]) for each in answer["results"]] == [
        ("product", [1000, 2]),
        ("dw", [1, 2]),
        ("powers", [1000, 2]),
    ]
    assert answer["cost"]["bytes_in_use"] == before
    assert answer["cost"]["bytes_after"] == before + 2 * 8000 + 8 + 8  # the tape keeps the old w
    assert answer["cost"]["bytes_down"] == 8000 + 8
    assert ok(http.get(rest.path)).json()["bytes_in_use"] == before
    assert rest.get("variables/w").headers["etag"] == tag
    problem(rest.get("tensors/product"), 404, "unknown_id")
    refused = price(http, {**body, "commands": [{"do": "op", **op("square", "w", to="w")}], "fetch": []})
    assert refused["verdict"] == "refused"
    assert refused["problem"]["code"] == "id_in_use"
    problem(http.post("/v1/price", json={**body, "session": "none"}), 404, "unknown_session")


def test_what_depends_on_values_asks_for_them(http: httpx.Client) -> None:
    find = [{"do": "op", **op("nonzero", "bits", to="places")}]
    answer = price(http, {"tensors": {"bits": {"dtype": "bool", "shape": [50]}}, "commands": find})
    assert answer["verdict"] == "fits"
    assert [(each["command"], each["on"]) for each in answer["depends"]] == [(0, "bits")]
    assert answer["results"][-1] | {"exact": False, "shape": [50, 1]} == answer["results"][-1]
    answer = price(http, {"tensors": {"bits": [True, False, True]}, "commands": find})
    assert answer["depends"] == []
    assert answer["results"][-1] | {"exact": True, "shape": [2, 1]} == answer["results"][-1]
    doubled = [*find, {"do": "op", **op("add", "places", {"dtype": "int64", "shape": [2, 1]}, to="sum")}]
    answer = price(http, {"tensors": {"bits": {"dtype": "bool", "shape": [50]}}, "commands": doubled})
    assert answer["verdict"] == "unknown"
    assert answer["problem"]["code"] == "invalid_argument"


def test_a_body_that_is_no_price_is_refused(http: httpx.Client) -> None:
    problem(http.post("/v1/price", json=[]), 422, "invalid_request")
    problem(http.post("/v1/price", json={"commands": [], "more": 1}), 422, "invalid_request")
    problem(http.post("/v1/price", json={"commands": [], "session": 5}), 422, "invalid_request")
    wrong = {"commands": [], "tensors": {"a": {"dtype": "float33", "shape": [2]}}}
    problem(http.post("/v1/price", json=wrong), 422, "invalid_argument")
    problem(http.post("/v1/price", content=b"x", headers={"Content-Type": "text/plain"}), 415, "unsupported_media_type")
