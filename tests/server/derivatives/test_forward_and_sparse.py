"""Forward mode and sparse updates without Python: commands of a run and of a batch, and a variable's PUT."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serving import ok, problem


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    path = f"/v1/sessions/{ok(http.post('/v1/sessions', json={})).json()['id']}"
    yield path
    http.delete(path)


def op(name: str, *inputs: Any, to: str) -> dict[str, Any]:
    return {"do": "op", "op": name, "inputs": list(inputs), "outputs": [to]}


OPEN = {"do": "accumulator.open", "id": "a", "primals": ["x"], "tangents": [[1.0, 0.0]]}
CUBE = [op("mul", "x", "x", to="xx"), op("mul", "xx", "x", to="y")]


def test_a_jvp_and_a_hessian_vector_product_from_one_request(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": [1.0, 2.0]},
        OPEN,
        {"do": "tape.open", "id": "t"},
        *CUBE,
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["g"]},
        {"do": "jvp", "accumulator": "a", "targets": ["y", "g"], "outputs": ["jvp", "hvp"]},
    ]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["jvp", "hvp"]})).json()
    assert {name: value["data"] for name, value in answer["values"].items()} == {"jvp": [3.0, 0.0], "hvp": [6.0, 0.0]}


def test_a_tangent_that_there_is_none_of_is_null(http: httpx.Client) -> None:
    commands = [
        {"do": "constant", "id": "x", "value": [1.0, 2.0]},
        OPEN,
        {"do": "constant", "id": "z", "value": 1.0},
        {"do": "jvp", "accumulator": "a", "targets": ["z"], "outputs": ["dz"]},
        {"do": "jvp", "accumulator": "a", "targets": ["z"], "outputs": ["zero"], "unconnected": "zero"},
    ]
    values = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["dz", "zero"]})).json()["values"]
    assert values["dz"] is None
    assert values["zero"]["data"] == 0.0


def test_an_accumulator_goes_on_from_one_batch_to_the_next(http: httpx.Client, session: str) -> None:
    begin = {"commands": [{"do": "variable", "id": "x", "value": [1.0, 2.0]}, OPEN]}
    assert ok(http.post(f"{session}/batch", json=begin)).json()["failure"] is None
    commands = [*CUBE, {"do": "accumulator.close", "accumulator": "a"}, op("mul", "y", "y", to="z")]
    commands += [
        {"do": "jvp", "accumulator": "a", "targets": ["y", "z"], "outputs": ["dy", "dz"]},
        {"do": "fetch", "id": "dy"},
    ]
    answer = ok(http.post(f"{session}/batch", json={"commands": commands})).json()
    assert answer["failure"] is None
    kinds, fetched = answer["results"]
    assert kinds["kinds"] == ["dense", "none"]
    assert fetched["value"]["data"] == [3.0, 0.0]


def test_a_wrong_tangent_is_reported_and_nothing_is_lost(http: httpx.Client, session: str) -> None:
    wrong = {**OPEN, "tangents": [1.0]}
    first = {"commands": [{"do": "variable", "id": "x", "value": [1.0, 2.0]}, wrong]}
    failure = ok(http.post(f"{session}/batch", json=first)).json()["failure"]
    assert failure["code"] == "invalid_argument"
    assert "a tangent has the shape and dtype of its primal" in failure["message"]
    again = {
        "commands": [{**OPEN, "id": "b"}, *CUBE, {"do": "jvp", "accumulator": "b", "targets": ["y"], "outputs": ["d"]}]
    }
    assert ok(http.post(f"{session}/batch", json=again)).json()["failure"] is None
    missing = ok(
        http.post(f"{session}/batch", json={"commands": [{**again["commands"][-1], "accumulator": "x"}]})
    ).json()
    assert "is a variable, expected an accumulator" in missing["failure"]["message"]


# -------------------------------------------------------------------------------------------------------------- sparse
@pytest.fixture
def table(http: httpx.Client, session: str) -> str:
    """A variable whose rows 0 and 2 a tape has looked up."""
    ok(http.post(f"{session}/variables", json={"id": "table", "value": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}))
    commands = [
        {"do": "tape.open", "id": "t"},
        op("gather", "table", [2, 0, 2], to="rows"),
        {"do": "gradient", "tape": "t", "targets": ["rows"], "sources": ["table"], "outputs": ["g"]},
    ]
    assert ok(http.post(f"{session}/batch", json={"commands": commands})).json()["failure"] is None
    return f"{session}/variables/table"


def shown(http: httpx.Client, table: str) -> Any:
    return ok(http.get(table)).json()["value"]["data"]


def test_a_sparse_gradient_updates_a_variable_by_its_id(http: httpx.Client, table: str) -> None:
    facts = ok(http.put(table, json={"value": "g", "mode": "scatter_sub"})).json()
    assert facts["version"] == 1
    assert shown(http, table) == [[0.0, 1.0], [3.0, 4.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"value": [[9.0, 9.0]], "mode": "scatter_update", "indices": [1]}, [[1.0, 2.0], [9.0, 9.0], [5.0, 6.0]]),
        ({"value": 10.0, "mode": "scatter_mul", "indices": [0, 0]}, [[100.0, 200.0], [3.0, 4.0], [5.0, 6.0]]),
        ({"value": [7.0], "mode": "scatter_nd_max", "indices": [[0, 1]]}, [[1.0, 7.0], [3.0, 4.0], [5.0, 6.0]]),
        (
            {"value": [[0.0], [0.0]], "mode": "slice", "indices": [[2, -2, 2], [1, 1, 1]]},
            [[1.0, 0.0], [3.0, 4.0], [5.0, 0.0]],
        ),
    ],
)
def test_a_part_of_a_variable_is_put(http: httpx.Client, table: str, body: Any, expected: Any) -> None:
    ok(http.put(table, json=body))
    assert shown(http, table) == expected


def test_what_cannot_be_put_says_why(http: httpx.Client, table: str) -> None:
    outside = problem(
        http.put(table, json={"value": [[1.0, 1.0]], "mode": "scatter_add", "indices": [3]}), 422, "invalid_argument"
    )
    assert "indices[0] = 3 is not in [0, 3)" in outside["detail"]
    without = problem(http.put(table, json={"value": [[1.0, 1.0]], "mode": "scatter_add"}), 422, "invalid_argument")
    assert "needs indices" in without["detail"]
    assert http.put(table, json={"value": 1.0, "mode": "scatter_pow", "indices": [0]}).status_code == 422
    assert shown(http, table) == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
