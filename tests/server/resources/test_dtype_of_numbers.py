"""The dtype of numbers that are sent without one: of a session, a function, a request."""

import math

import httpx
import pytest
from rest_client import Rest, op

from serving import ok, problem


@pytest.fixture
def doubles(http: httpx.Client) -> Rest:
    """A session whose numbers are float64."""
    session = ok(http.post("/v1/sessions", json={"dtype": "float64"})).json()
    assert session["dtype"] == "float64"
    return Rest(http, session["id"])


def test_numbers_of_a_session_have_its_dtype_where_they_meet_no_tensor(doubles: Rest) -> None:
    doubles.create("variables", {"id": "v", "value": [0.1, 2]})
    doubles.create("tensors", {"id": "i", "value": {"dtype": "int32", "data": [0]}})
    doubles.create("tensors", {"id": "x", "value": {"dtype": "float32", "data": [0.1]}})
    ops = [
        op("mul", "v", 0.1, to="a"),
        op("sqrt", 2, to="b"),
        op("add", "x", 0.1, to="c"),
        op("gather", [1.5, 2.5], "i", to="d"),
    ]
    values = doubles.done("ops", {"ops": ops, "fetch": ["a", "b", "c", "d"]})["values"]
    assert {name: value["dtype"] for name, value in values.items()} == {
        "a": "float64",
        "b": "float64",
        "c": "float32",
        "d": "float64",
    }
    assert values["b"]["data"] == math.sqrt(2)
    run = doubles.done("run", {"tensors": {"t": 0.1}, "commands": [{"do": "fetch", "id": "t"}], "scratch": True})
    assert run["values"]["t"] == {"dtype": "float64", "shape": [], "data": 0.1}


def test_a_session_of_another_dtype_is_another_session(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "dtypes", "dtype": "float64"}))
    fault = problem(http.post("/v1/sessions", json={"id": "dtypes"}), 409, "id_in_use")
    assert "dtype float64" in fault["detail"]
    fault = problem(http.post("/v1/sessions", json={"dtype": "int32"}), 422, "invalid_request")
    http.delete("/v1/sessions/dtypes")


def test_numbers_of_a_function_have_its_dtype(rest: Rest) -> None:
    steps = [op("sqrt", 2, to="root"), op("mul", "root", "x", to="y")]
    body = {"inputs": ["x"], "steps": steps, "outputs": ["y"]}
    created = rest.create("functions", {"id": "double", "dtype": "float64", **body})
    assert created["dtype"] == "float64"
    assert rest.create("functions", {"id": "single", **body})["dtype"] is None
    for x in (3, [3.0, 0.1]):
        for question in ("value_and_gradient", "jacobian"):
            [derivative] = rest.done(f"functions/double/{question}", {"inputs": [x]})["derivatives"]
            assert derivative["value"]["dtype"] == "float64"
        [value] = rest.done("functions/double/call", {"inputs": [x], "scratch": True})["values"].values()
        assert (value["dtype"], value["shape"]) == ("float64", [2] if isinstance(x, list) else [])
        [value] = rest.done("functions/single/call", {"inputs": [x], "scratch": True})["values"].values()
        assert value["dtype"] == "float32"
    fault = problem(rest.post("functions", {"dtype": "int32", **body}), 422, "invalid_request")
    assert fault["details"]["fields"][0]["field"] == "dtype"


def test_numbers_of_a_run_have_its_dtype(http: httpx.Client, rest: Rest) -> None:
    commands = [{"do": "variable", "id": "x", "value": 0.1}, {"do": "op", **op("mul", "x", "t", to="y")}]
    body = {"tensors": {"t": [2]}, "commands": commands, "fetch": ["y"], "dtype": "float64"}
    alone = ok(http.post("/v1/run", json=body)).json()
    assert alone["values"]["y"] == {"dtype": "float64", "shape": [1], "data": [0.2]}
    assert rest.done("run", {**body, "scratch": True})["values"] == alone["values"]
    single = ok(http.post("/v1/run", json={**body, "dtype": "float32"})).json()
    assert single["values"]["y"]["dtype"] == "float32"


def test_a_training_in_doubles_stays_in_doubles(doubles: Rest) -> None:
    doubles.create("functions", {"id": "loss", "text": "loss = mean((x @ w - y) ** 2)"})
    doubles.create("variables", {"id": "w", "value": [0, 0]})
    body = {
        "inputs": {"w": "w", "x": [[1, 2], [3, 4], [5, 6]], "y": [5, 11, 17]},
        "optimizer": {"name": "sgd", "learning_rate": 0.02},
        "steps": 3,
        "fetch": ["w"],
    }
    answer = doubles.done("functions/loss/train", body)
    assert (answer["loss"]["dtype"], answer["values"]["w"]["dtype"]) == ("float64", "float64")
