"""The REST resources over HTTP: what they do, and what they say to requests that they cannot serve."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from serving import Server, ok, problem

RAW = "application/octet-stream"
ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}


class Rest:
    """A session's resources."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self.http, self.session, self.path = http, session, f"/v1/sessions/{session}"

    def post(self, place: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(f"{self.path}/{place}", json=body, headers=headers)

    def put(self, place: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.put(f"{self.path}/{place}", json=body, headers=headers)

    def get(self, place: str, **headers: str) -> httpx.Response:
        return self.http.get(f"{self.path}/{place}", headers=headers)

    def delete(self, place: str) -> httpx.Response:
        return self.http.delete(f"{self.path}/{place}")

    def made(self, place: str, body: Any) -> Any:
        response = self.post(place, body)
        assert response.status_code == 201, response.text
        assert response.headers["location"] == f"{self.path}/{place}/{response.json()['id']}"
        return response.json()

    def done(self, place: str, body: Any = None) -> Any:
        return ok(self.post(place, body)).json()

    def data(self, place: str) -> Any:
        return ok(self.get(place)).json()["value"]["data"]


@pytest.fixture(scope="module")
def http(server_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def rest(http: httpx.Client) -> Iterator[Rest]:
    one = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
    yield one
    http.delete(one.path)


def op(name: str, *inputs: Any, to: str | None = None, **attrs: Any) -> dict[str, Any]:
    return {"op": name, "inputs": list(inputs), "attrs": attrs} | ({} if to is None else {"outputs": [to]})


# ---------------------------------------------------------------------------------------------------------- variables
def test_a_variable_is_made_read_assigned_and_ended(rest: Rest) -> None:
    made = rest.made("variables", {"id": "w", "value": ONE_TO_THREE, "trainable": False, "name": "weights"})
    assert made == {
        "id": "w",
        "kind": "variable",
        "dtype": "float32",
        "shape": [3],
        "bytes": 12,
        "trainable": False,
        "version": 0,
        "name": "weights",
    }
    for mode, given, then in (
        ("add", [1, 1, 1], [2, 3, 4]),
        ("sub", [0, 1, 2], [2, 2, 2]),
        ("set", [7, 8, 9], [7, 8, 9]),
    ):
        body = {"value": {"dtype": "float32", "data": given}, "mode": mode}
        ok(rest.put("variables/w", body))
        assert rest.data("variables/w") == then
    assert ok(rest.get("variables/w")).json()["version"] == 3
    assert [one["id"] for one in ok(rest.get("variables")).json()["variables"]] == ["w"]
    assert rest.delete("variables/w").status_code == 204
    problem(rest.get("variables/w"), 410, "released_id")
    problem(rest.post("variables", {"id": "w", "value": 1.5}), 409, "id_in_use")


def test_a_value_stands_wherever_a_variable_does_and_the_other_way_round(rest: Rest) -> None:
    rest.made("tensors", {"id": "x", "value": ONE_TO_THREE})
    rest.made("variables", {"id": "w", "value": "x"})
    rest.done("ops", {"ops": [op("mul", "w", "x", to="y")]})
    ok(rest.put("variables/w", {"value": "y"}))
    assert rest.data("variables/w") == [1, 4, 9]


def test_an_assignment_keeps_shape_and_dtype(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": ONE_TO_THREE})
    for wrong in ([1.5, 2.5], {"dtype": "float64", "data": [1, 2, 3]}):
        told = problem(rest.put("variables/w", {"value": wrong}), 422, "invalid_argument")["detail"]
        assert "float32[3]" in told
    assert rest.data("variables/w") == [1, 2, 3]
    assert ok(rest.get("variables/w")).json()["version"] == 0


def test_generated_ids_begin_with_the_reserved_sign(rest: Rest) -> None:
    assert rest.made("variables", {"value": 1.5})["id"].startswith("_")
    assert rest.made("tensors", {"value": 1.5})["id"].startswith("_")
    assert rest.made("tapes", {})["id"].startswith("_")
    for wrong in ("_mine", "12", "a/b", "", "a b"):
        told = problem(rest.post("variables", {"id": wrong, "value": 1.5}), 422, "invalid_request")
        assert told["details"]["fields"][0]["field"] == "id"


# ------------------------------------------------------------------------------------------------------------ tensors
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool", "complex64"])
def test_raw_bytes_go_in_and_come_out(rest: Rest, dtype: str) -> None:
    size = {"bfloat16": 2, "bool": 1}.get(dtype) or np.dtype(dtype).itemsize
    body = bytes([1, 0] * (3 * size))
    headers = {"Content-Type": RAW, "Tensor-Dtype": dtype, "Tensor-Shape": "2,3"}
    response = rest.http.post(f"{rest.path}/tensors?id=x", content=body, headers=headers)
    assert response.status_code == 201, response.text
    found = ok(rest.get("tensors/x", Accept=RAW))
    assert found.content == body
    assert (found.headers["tensor-dtype"], found.headers["tensor-shape"]) == (dtype, "2,3")
    assert found.headers["content-type"] == RAW


def test_a_scalar_and_an_empty_tensor_go_raw(rest: Rest) -> None:
    for shape, body in (("", b"\0\0\x80?"), ("0,3", b"")):
        headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": shape}
        made = ok(rest.http.post(f"{rest.path}/tensors", content=body, headers=headers)).json()
        found = ok(rest.get(f"tensors/{made['id']}", Accept=RAW))
        assert (found.content, found.headers["tensor-shape"]) == (body, shape)


def test_a_raw_variable_takes_its_fields_from_the_query(rest: Rest) -> None:
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": "2"}
    path = f"{rest.path}/variables"
    ok(rest.http.post(f"{path}?id=w&trainable=false&name=label", content=b"\0\0\x80?" * 2, headers=headers))
    ok(rest.http.put(f"{path}/w?mode=add", content=b"\0\0\x80?" * 2, headers=headers))
    found = ok(rest.get("variables/w")).json()
    assert (found["trainable"], found["name"], found["value"]["data"]) == (False, "label", [2, 2])
    told = problem(rest.http.post(f"{path}?id=v", json={"value": 1.5}), 422, "invalid_request")
    assert "query parameters id belong" in told["detail"]


def test_a_large_tensor_is_held_once_and_previewed(rest: Rest) -> None:
    array = np.arange(1_000_000, dtype=np.float32)
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": "1000,1000"}
    ok(rest.http.post(f"{rest.path}/tensors?id=big", content=array.tobytes(), headers=headers))
    shown = ok(rest.get("tensors/big")).json()["value"]
    assert shown["complete"] is False
    assert (shown["shape"], len(shown["data"]), shown["data"][:3]) == ([1000, 1000], 1000, [0, 1, 2])
    whole = ok(rest.get("tensors/big?full=true")).json()["value"]
    assert "complete" not in whole
    assert whole["data"][-1][-1] == 999_999
    assert ok(rest.get("tensors/big", Accept=RAW)).content == array.tobytes()
    assert ok(rest.http.get(rest.path)).json()["bytes_in_use"] == array.nbytes


def test_nan_and_infinities_both_ways(rest: Rest) -> None:
    words = ["NaN", "Infinity", "-Infinity", 1.5]
    rest.made("tensors", {"id": "x", "value": words})
    assert rest.data("tensors/x") == words
    assert ok(rest.get("tensors/x")).json()["value"]["dtype"] == "float32"
    bare = '{"value": [NaN]}'
    response = rest.http.post(f"{rest.path}/tensors", content=bare, headers={"Content-Type": "application/json"})
    assert '"NaN"' in problem(response, 400, "malformed_json")["detail"]


def test_lying_raw_tensors_are_refused(rest: Rest) -> None:
    def send(body: bytes, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return rest.http.post(f"{rest.path}/tensors?id=x", content=body, headers={"Content-Type": RAW, **named})

    told = problem(send(b"1234", Tensor_Dtype="float32", Tensor_Shape="2"), 422, "invalid_request")
    assert "takes 8 bytes, the body has 4" in told["detail"]
    for headers in ({}, {"Tensor_Dtype": "float32"}, {"Tensor_Shape": "1"}):
        assert "Tensor-Shape" in problem(send(b"1234", **headers), 422, "invalid_request")["detail"]
    for shape in ("a", "-1", "1,,1", "1.5", ",".join("1" * 33)):
        problem(send(b"1234", Tensor_Dtype="float32", Tensor_Shape=shape), 422, "invalid_request")
    assert "float99" in problem(send(b"1", Tensor_Dtype="float99", Tensor_Shape="1"), 422, "invalid_argument")["detail"]
    problem(send(b"\2", Tensor_Dtype="bool", Tensor_Shape="1"), 422, "invalid_request")
    problem(send(b"", Tensor_Dtype="float32", Tensor_Shape=f"0,{10**30}"), 422, "invalid_request")
    assert ok(rest.get("tensors")).json() == {"tensors": []}


# -------------------------------------------------------------------------------------------------------------- tapes
def test_a_tape_records_its_own_ops_alone_and_answers_again_and_again(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.made("tapes", {"id": "t", "persistent": True})
    rest.done("ops", {"ops": [op("square", "w", to="unrecorded")]})
    answer = rest.done("tapes/t/ops", {"ops": [op("square", "w"), op("square", "w", to="y")]})
    assert [one["shape"] for one in answer["outputs"]] == [[3], [3]]
    assert answer["values"] == {"y": {"dtype": "float32", "shape": [3], "data": [1, 4, 9]}}
    for _ in range(2):
        [dw] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"]
        assert dw == {
            "source": "w",
            "kind": "dense",
            "id": None,
            "value": {"dtype": "float32", "shape": [3], "data": [2, 4, 6]},
        }
    [none] = rest.done("tapes/t/gradient", {"targets": ["unrecorded"], "sources": ["w"]})["derivatives"]
    assert (none["kind"], none["value"]) == ("none", None)
    [zero] = rest.done("tapes/t/gradient", {"targets": ["unrecorded"], "sources": ["w"], "unconnected": "zero"})[
        "derivatives"
    ]
    assert zero["value"]["data"] == [0, 0, 0]
    facts = ok(rest.get("tapes/t")).json()
    assert (facts["watched_variables"], facts["recording"]) == (["w"], False)
    rest.done("tapes/t/reset")
    assert ok(rest.get("tapes/t")).json()["ops"] == 0


def test_a_watched_tensor_and_weights_for_the_targets(rest: Rest) -> None:
    rest.made("tensors", {"id": "x", "value": ONE_TO_THREE})
    rest.made("tapes", {"id": "t"})
    rest.done("tapes/t/watch", {"values": ["x"]})
    rest.done("tapes/t/ops", {"ops": [op("square", "x", to="y"), op("neg", "x", to="z")]})
    question = {"targets": ["y", "z"], "sources": ["x"], "output_gradients": [ONE_TO_THREE, None], "outputs": ["dx"]}
    [dx] = rest.done("tapes/t/gradient", question)["derivatives"]
    assert (dx["id"], dx["value"]["data"]) == ("dx", [1, 7, 17])
    assert rest.data("tensors/dx") == [1, 7, 17]
    told = problem(rest.post("tapes/t/gradient", question | {"outputs": ["again"]}), 409, "tape_consumed")
    assert "non-persistent" in told["detail"]
    problem(rest.post("tapes/t/ops", {"ops": [op("neg", "x")]}), 409, "tape_consumed")
    problem(rest.post("tapes/t/reset", None), 409, "tape_consumed")


def test_a_parent_gives_the_second_derivative(rest: Rest) -> None:
    rest.made("variables", {"id": "x", "value": 2.5})
    rest.made("tapes", {"id": "outer"})
    assert rest.made("tapes", {"id": "inner", "parents": ["outer"]})["parents"] == ["outer"]
    cube = [op("square", "x", to="x2"), op("mul", "x2", "x", to="y")]
    rest.done("tapes/inner/ops", {"ops": cube})
    [first] = rest.done("tapes/inner/gradient", {"targets": ["y"], "sources": ["x"], "outputs": ["dy"]})["derivatives"]
    assert first["value"]["data"] == pytest.approx(3 * 2.5**2)
    [second] = rest.done("tapes/outer/gradient", {"targets": ["dy"], "sources": ["x"]})["derivatives"]
    assert second["value"]["data"] == pytest.approx(6 * 2.5)


def test_a_sparse_gradient_shows_rows_and_indices(rest: Rest) -> None:
    rest.made("variables", {"id": "table", "value": {"dtype": "float32", "shape": [4, 2], "data": [1] * 8}})
    rest.made("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("gather", "table", [3, 1], to="rows")]})
    question = {"targets": ["rows"], "sources": ["table"], "outputs": ["d"]}
    [found] = rest.done("tapes/t/gradient", question)["derivatives"]
    assert found["kind"] == "slices"
    assert found["value"]["indices"]["data"] == [3, 1]
    assert found["value"]["values"]["data"] == [[1, 1], [1, 1]]
    assert ok(rest.get("tensors/d")).json()["kind"] == "slices"
    assert "sparse" in problem(rest.get("tensors/d", Accept=RAW), 422, "invalid_argument")["detail"]


def test_an_op_without_a_gradient_is_named(rest: Rest) -> None:
    rest.made("variables", {"id": "image", "value": {"dtype": "float32", "shape": [2, 2, 3], "data": [0.5] * 12}})
    rest.made("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("adjust_contrast", "image", 2.5, to="y")]})
    response = rest.post("tapes/t/gradient", {"targets": ["y"], "sources": ["image"]})
    assert "AdjustContrast" in problem(response, 422, "no_gradient_registered")["detail"]


def test_a_tape_that_a_program_records_on_is_left_alone(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": 1.5})
    rest.made("tapes", {"id": "mine", "parents": []})
    ok(rest.post("batch", {"commands": [{"do": "tape.open", "id": "theirs"}]}))
    for place, body in (
        ("ops", {"ops": [op("neg", "w")]}),
        ("gradient", {"targets": ["w"], "sources": ["w"]}),
        ("reset", None),
    ):
        problem(rest.post(f"tapes/theirs/{place}", body), 409, "tape_state")
    assert ok(rest.get("tapes/theirs")).json()["recording"] is True
    rest.made("tapes", {"id": "child", "parents": ["theirs"]})
    problem(rest.post("tapes/child/ops", {"ops": [op("neg", "w", to="n")]}), 409, "tape_state")
    assert ok(rest.get("tapes/theirs")).json()["recording"] is True
    assert ok(rest.get("tapes/theirs")).json()["ops"] == 0


# ------------------------------------------------------------------------------------------------------------ failing
def test_what_stands_before_a_failure_stands_and_the_other_ids_stay_free(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.made("tapes", {"id": "t", "persistent": True})
    ops = [
        op("neg", "w", to="a"),
        {**op("mul", "w", [1.5, 2.5], to="b"), "where": "train.py:7"},
        op("neg", "b", to="c"),
    ]
    told = problem(rest.post("tapes/t/ops", {"ops": ops}), 422, "invalid_argument")
    assert told["details"] == {"command": 1, "op": "mul", "where": "train.py:7"}
    assert "[3] vs. [2]" in told["detail"]
    assert rest.data("tensors/a") == [-1, -2, -3]
    problem(rest.get("tensors/b"), 404, "unknown_id")
    assert ok(rest.get("tapes/t")).json()["recording"] is False
    rest.done("tapes/t/ops", {"ops": [op("mul", "w", "w", to="b"), op("neg", "b", to="c")]})
    [dw] = rest.done("tapes/t/gradient", {"targets": ["c"], "sources": ["w"]})["derivatives"]
    assert dw["value"]["data"] == [-2, -4, -6]


@pytest.mark.parametrize(
    ("call", "status", "code", "told"),
    [
        (op("sigmoyd", "w"), 422, "unknown_op", "sigmoid"),
        (op("reduce_sum", "w", axes=0), 422, "bad_attribute", "axis"),
        (op("reduce_sum", "w", axis="first"), 422, "bad_attribute", "axis"),
        (op("add", "w"), 422, "invalid_argument", "2 inputs"),
        (op("matmul", "w", "w"), 422, "invalid_argument", ""),
        (op("add", "w", {"dtype": "float64", "data": [1, 2, 3]}), 422, "invalid_argument", "float"),
        (op("add", "w", "nobody"), 404, "unknown_id", "nobody"),
        (op("add", "w", "gone"), 410, "released_id", "gone"),
        (op("add", "w", "tape"), 422, "invalid_argument", "a tape"),
        (op("add", "w", {"data": [[1], [2, 3]]}), 400, "malformed_json", "same length"),
        (op("add", "w", {"data": ["one"]}), 400, "malformed_json", "one"),
        (op("fill", 1.5, shape=[10**6, 10**6]), 507, "resource_exhausted", "bytes"),
    ],
)
def test_ops_that_cannot_be(rest: Rest, call: dict[str, Any], status: int, code: str, told: str) -> None:
    rest.made("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.made("tensors", {"id": "gone", "value": 1.5})
    rest.made("tapes", {"id": "tape"})
    rest.delete("tensors/gone")
    found = problem(rest.post("ops", {"ops": [call | {"outputs": ["y"]}]}), status, code)
    assert told in found["detail"]
    rest.done("ops", {"ops": [op("neg", "w", to="y")]})


@pytest.mark.parametrize(
    ("place", "body", "where"),
    [
        ("variables", {}, "value"),
        ("variables", {"value": 1.5, "trainable": "yes"}, "trainable"),
        ("variables", {"value": 1.5, "colour": "red"}, "colour"),
        ("tensors", [], "body"),
        ("tapes", {"persistent": 1}, "persistent"),
        ("ops", {"ops": [{"inputs": []}]}, "ops.0.op"),
        ("ops", {"ops": "neg"}, "ops"),
        ("tapes/t/gradient", {"targets": [], "sources": []}, "targets"),
        ("tapes/t/gradient", {"targets": ["w"], "sources": ["w"], "unconnected": "one"}, "unconnected"),
        ("tapes/t/gradient", {"targets": ["w"], "sources": ["w"], "outputs": []}, None),
        ("functions", {"inputs": ["a"], "steps": [], "outputs": []}, "outputs"),
    ],
)
def test_bodies_that_are_wrong(rest: Rest, place: str, body: Any, where: str | None) -> None:
    rest.made("variables", {"id": "w", "value": 1.5})
    rest.made("tapes", {"id": "t"})
    found = problem(rest.post(place, body), 422, "invalid_request")
    assert where is None or found["details"]["fields"][0]["field"] == where
    assert ok(rest.get("tapes/t")).json()["consumed"] is False


def test_malformed_json_tells_where(rest: Rest) -> None:
    response = rest.http.post(f"{rest.path}/ops", content=b'{"ops": [', headers={"Content-Type": "application/json"})
    assert "column" in problem(response, 400, "malformed_json")["detail"]


def test_a_tensor_is_no_variable_and_no_tape(rest: Rest) -> None:
    rest.made("tensors", {"id": "x", "value": 1.5})
    rest.made("variables", {"id": "w", "value": 1.5})
    for response in (
        rest.get("variables/x"),
        rest.get("tapes/x"),
        rest.delete("functions/x"),
        rest.put("variables/x", {"value": 1}),
    ):
        assert "tensors/x" in problem(response, 404, "unknown_id")["detail"]
    assert "variables/w" in problem(rest.get("tensors/w"), 404, "unknown_id")["detail"]
    assert rest.data("tensors/x") == 1.5


def test_content_types_that_are_not_known(rest: Rest) -> None:
    response = rest.http.post(f"{rest.path}/tensors", content=b"x", headers={"Content-Type": "text/csv"})
    assert problem(response, 415, "unsupported_media_type")["details"]["known"] == [RAW, "application/json"]
    response = rest.http.post(f"{rest.path}/tapes", content=b"x", headers={"Content-Type": RAW})
    assert problem(response, 415, "unsupported_media_type")["details"]["known"] == ["application/json"]
    rest.made("tensors", {"id": "x", "value": 1.5})
    known = problem(rest.get("tensors/x", Accept="image/png"), 406, "not_acceptable")["details"]["known"]
    assert known == ["application/json", RAW]
    problem(rest.get("tensors", Accept=RAW), 406, "not_acceptable")


# ---------------------------------------------------------------------------------------------- functions, ops, others
def test_a_function_is_called_and_recorded(rest: Rest) -> None:
    calls = [op("square", "a", to="s"), op("add", "s", "b", to="sum")]
    made = rest.made("functions", {"id": "f", "inputs": ["a", "b"], "steps": calls, "outputs": ["sum", "s"]})
    assert [one["op"] for one in made["steps"]] == ["square", "add"]
    rest.made("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.made("tapes", {"id": "t"})
    answer = rest.done("functions/f/call", {"inputs": ["w", 1], "outputs": ["y", "z"], "tape": "t"})
    assert answer["values"]["y"]["data"] == [2, 5, 10]
    [dw] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"]
    assert dw["value"]["data"] == [2, 4, 6]
    assert len(rest.done("functions/f/call", {"inputs": ["w", 1], "fetch": []})["outputs"]) == 2
    problem(rest.post("functions/f/call", {"inputs": ["w"]}), 422, "invalid_argument")
    problem(rest.post("functions/f/call", {"inputs": ["w", 1], "outputs": ["one"]}), 422, "invalid_request")
    problem(
        rest.post("functions", {"inputs": ["a"], "steps": [op("neg", "b", to="c")], "outputs": ["c"]}),
        422,
        "invalid_argument",
    )
    assert rest.delete("functions/f").status_code == 204


def test_only_what_is_asked_for_is_fetched(rest: Rest) -> None:
    rest.made("tensors", {"id": "x", "value": ONE_TO_THREE})
    both = {"ops": [op("neg", "x", to="a"), op("square", "x", to="b")], "fetch": ["x", "a"]}
    assert {name: one["data"] for name, one in rest.done("ops", both)["values"].items()} == {
        "x": [1, 2, 3],
        "a": [-1, -2, -3],
    }
    assert rest.done("ops", {"ops": [op("neg", "x")], "fetch": []})["values"] == {}
    problem(rest.post("ops", {"ops": [op("neg", "x", to="c")], "fetch": ["nobody"]}), 404, "unknown_id")
    problem(rest.get("tensors/c"), 404, "unknown_id")  # nothing was done


def test_an_integer_id_of_a_program_is_reached_by_its_digits(rest: Rest) -> None:
    ok(
        rest.post(
            "batch",
            {
                "commands": [
                    {"do": "variable", "id": {"id": 77}, "value": 1.5},
                    {"do": "tape.open", "id": {"id": 78}},
                    {"do": "tape.pause", "tape": {"id": 78}},
                ]
            },
        )
    )
    assert rest.data("variables/77") == 1.5
    ok(rest.put("variables/77", {"value": 2.5}))
    rest.done("tapes/78/ops", {"ops": [op("square", {"id": 77}, to="y")]})
    [found] = rest.done("tapes/78/gradient", {"targets": ["y"], "sources": [{"id": 77}]})["derivatives"]
    assert (found["source"], found["value"]["data"]) == (77, 5)


def test_the_same_key_does_a_thing_once(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": 1.5})
    body = {"value": 1.0 + 0.5, "mode": "add"}
    first = ok(rest.put("variables/w", body, **{"Idempotency-Key": "k"}))
    assert ok(rest.put("variables/w", body, **{"Idempotency-Key": "k"})).content == first.content
    assert rest.data("variables/w") == 3.0
    problem(rest.put("variables/w", body | {"mode": "sub"}, **{"Idempotency-Key": "k"}), 422, "idempotency_conflict")
    made = ok(rest.post("tensors", {"value": 1.5}, **{"Idempotency-Key": "l"}))
    again = ok(rest.post("tensors", {"value": 1.5}, **{"Idempotency-Key": "l"}))
    assert (again.json()["id"], again.headers["location"]) == (made.json()["id"], made.headers["location"])


def test_requests_at_the_same_time_do_not_record_for_each_other(rest: Rest) -> None:
    rest.made("variables", {"id": "w", "value": 1.5})
    tapes = [f"t{i}" for i in range(4)]
    for tape in tapes:
        rest.made("tapes", {"id": tape})

    def record(tape: str) -> None:
        for i in range(5):
            rest.done(f"tapes/{tape}/ops", {"ops": [op("square", "w", to=f"{tape}-{i}")]})

    threads = [threading.Thread(target=record, args=(tape,)) for tape in tapes]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    counts = {one["id"]: one["ops"] for one in ok(rest.get("tapes")).json()["tapes"]}
    assert counts == dict.fromkeys(tapes, 10)  # a read and a square each time


def test_the_catalogue_is_told(http: httpx.Client) -> None:
    def names(**query: str) -> set[str]:
        return {one["name"] for one in ok(http.get("/v1/ops", params=query)).json()["ops"]}

    assert len(names()) > 100
    assert "matmul" in names(name="MAT")
    assert "mul" not in names(name="mat")
    assert {"equal", "argmax"} < names(differentiable="false")
    assert names(differentiable="false") | names(differentiable="true") == names()
    assert names(differentiable="false") & names(differentiable="true") == set()
    mul = ok(http.get("/v1/ops/mul")).json()
    first, second = mul["inputs"]
    assert mul["gradients"][first] == {"kind": "dense", "keeps": [second]}
    assert mul["tensorflow"][0].startswith("tf.")
    assert "softmax" in problem(http.get("/v1/ops/softmacks"), 422, "unknown_op")["detail"]


@pytest.mark.parametrize("name", ["add", "AddV2", "math.add", "tf.add", "tf.raw_ops.AddV2"])
def test_tensorflows_names_are_accepted_and_ours_are_answered(rest: Rest, name: str) -> None:
    assert ok(rest.http.get(f"/v1/ops/{name}")).json()["name"] == "add"
    listed = ok(rest.http.get("/v1/ops", params={"name": name.rpartition(".")[2]})).json()["ops"]
    assert "add" in [facts["name"] for facts in listed]
    rest.made("tensors", {"id": "x", "value": [1.0, 2.0]})
    rest.done("ops", {"ops": [op(name, "x", "x", to="y")]})
    assert rest.data("tensors/y") == [2.0, 4.0]
    rest.made("functions", {"id": "f", "inputs": ["a"], "steps": [op(name, "a", "a", to="b")], "outputs": ["b"]})
    assert [step["op"] for step in ok(rest.get("functions/f")).json()["steps"]] == ["add"]


def test_sessions_of_others_and_those_that_are_gone(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob, server.client(None) as nobody:
        ok(ann.post("/v1/sessions", json={"id": "hers"}))
        ok(ann.post("/v1/sessions/hers/tensors", json={"id": "x", "value": 1.5}))
        path = "/v1/sessions/hers/tensors/x"
        problem(bob.get(path), 404, "unknown_session")
        problem(nobody.get(path), 401, "unauthenticated")
        problem(ann.get("/v1/sessions/other/tensors"), 404, "unknown_session")
        ok(ann.delete("/v1/sessions/hers"))
        problem(ann.get(path), 410, "session_ended")
        large = json.dumps({"value": [0] * server.settings.max_body})
        ok(ann.post("/v1/sessions", json={"id": "hers"}))
        problem(
            ann.post("/v1/sessions/hers/tensors", content=large, headers={"Content-Type": "application/json"}),
            413,
            "body_too_large",
        )


def test_replace_ends_the_session_that_has_the_id(http: httpx.Client) -> None:
    for _ in range(2):
        response = http.post("/v1/sessions", json={"id": "again", "replace": True})
        assert response.status_code == 201
        ok(http.post("/v1/sessions/again/tensors", json={"id": "x", "value": 1.5}))
    assert http.post("/v1/sessions", json={"id": "again"}).status_code == 200
    ok(http.delete("/v1/sessions/again"))
