"""/tensors: JSON and bytes both ways, previews of large ones."""

import httpx
import numpy as np
import pytest
from rest_client import RAW, Rest

from serving import ok, problem


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool", "complex64"])
def test_raw_bytes_go_in_and_come_out(rest: Rest, dtype: str) -> None:
    size = {"bfloat16": 2, "bool": 1}.get(dtype) or np.dtype(dtype).itemsize
    body = bytes([1, 0] * (3 * size))
    headers = {"Content-Type": RAW, "Tensor-Dtype": dtype, "Tensor-Shape": "2,3"}
    response = rest.http.post(f"{rest.path}/tensors?id=x", content=body, headers=headers)
    assert response.status_code == 201, response.text
    response = ok(rest.get("tensors/x", Accept=RAW))
    assert response.content == body
    assert (response.headers["tensor-dtype"], response.headers["tensor-shape"]) == (dtype, "2,3")
    assert response.headers["content-type"] == RAW


def test_a_scalar_and_an_empty_tensor_go_raw(rest: Rest) -> None:
    for shape, body in (("", b"\0\0\x80?"), ("0,3", b"")):
        headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": shape}
        created = ok(rest.http.post(f"{rest.path}/tensors", content=body, headers=headers)).json()
        response = ok(rest.get(f"tensors/{created['id']}", Accept=RAW))
        assert (response.content, response.headers["tensor-shape"]) == (body, shape)


def test_a_raw_variable_takes_its_fields_from_the_query(rest: Rest) -> None:
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": "2"}
    path = f"{rest.path}/variables"
    ok(rest.http.post(f"{path}?id=w&trainable=false&name=label", content=b"\0\0\x80?" * 2, headers=headers))
    ok(rest.http.put(f"{path}/w?mode=add", content=b"\0\0\x80?" * 2, headers=headers))
    response = ok(rest.get("variables/w")).json()
    assert (response["trainable"], response["name"], response["value"]["data"]) == (False, "label", [2, 2])
    refusal = problem(rest.http.post(f"{path}?id=v", json={"value": 1.5}), 422, "invalid_request")
    assert "query parameters id belong" in refusal["detail"]


def test_json_that_would_take_seconds_is_refused_with_the_remedy(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.http.bodies._MAX_JSON", 1 << 16)
    body = {"id": "x", "value": [1.5] * (1 << 14)}
    for path in ("tensors", "batch", "run"):
        refusal = problem(rest.post(path, body), 413, "body_too_large")
        assert refusal["details"]["limit"] == 1 << 16
        assert "send large tensors as safetensors" in refusal["detail"]
    problem(rest.http.post("/v1/run", json=body), 413, "body_too_large")
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": str(1 << 14)}
    ok(rest.http.post(f"{rest.path}/tensors?id=x", content=bytes(1 << 16), headers=headers))


@pytest.mark.parametrize("value", ["1", "[1]", '"NaN"'])
def test_json_of_few_bytes_and_many_numbers_is_refused_too(rest: Rest, value: str) -> None:
    count = 2_500_000 if "[" in value else 5_000_000
    content = f'{{"id": "x", "value": [{",".join([value] * count)}]}}'.encode()
    for path in ("tensors", "batch", "run"):
        refusal = problem(rest.http.post(f"{rest.path}/{path}", content=content), 413, "body_too_large")
        assert refusal["details"] == {"found": 5_000_001 + 24 + 2 * 8, "limit": 5_000_000}
        assert "send large tensors as safetensors" in refusal["detail"]


@pytest.mark.parametrize(
    ("path", "before", "member", "weight"),
    [
        ("batch", '{"commands": [', '{"do": "fetch", "id": "x"}', 24 + 2 * 8 + 2),
        ("ops", '{"ops": [{"op": "add_n", "inputs": [', '{"dtype": "int8", "data": 1}', 24 + 2 * 8 + 2),
    ],
    ids=["commands", "tensors"],
)
def test_json_of_few_numbers_and_many_objects_is_refused_too(
    rest: Rest, path: str, before: str, member: str, weight: int
) -> None:
    count = 5_000_000 // weight + 1
    content = (before + ", ".join([member] * count)).encode()  # it is not read, nor looked at for its end
    refusal = problem(rest.http.post(f"{rest.path}/{path}", content=content), 413, "body_too_large")
    assert refusal["details"]["found"] >= count * weight
    assert "an object counts as 24, each of its members as 8" in refusal["detail"]
    assert "many commands as a frame" in refusal["detail"]


def test_an_answer_of_many_small_tensors_is_refused_with_the_remedy(rest: Rest) -> None:
    ok(rest.post("tensors", {"id": "x", "value": 1.5}))
    fetches = {"commands": [{"do": "fetch", "id": "x"}] * 30_001}
    refusal = problem(rest.post("batch", fetches), 406, "not_acceptable")
    assert "30,001 tensors together have 6,000,200 numbers" in refusal["detail"]
    assert "a small tensor as 200" in refusal["detail"]


def test_a_tensor_whose_json_takes_seconds_is_refused_with_the_remedy(rest: Rest) -> None:
    many = {"op": "broadcast_to", "inputs": [{"dtype": "int8", "data": 1}], "attrs": {"shape": [6_000_001]}}
    ok(rest.post("ops", {"ops": [many | {"outputs": ["many"]}]}))
    refusal = problem(rest.get("tensors/many?full=true"), 406, "not_acceptable")
    assert "6,000,001 numbers" in refusal["detail"]
    assert ok(rest.get("tensors/many")).json()["value"]["complete"] is False
    assert len(ok(rest.get("tensors/many", Accept=RAW)).content) == 6_000_001
    half = many | {"do": "op", "attrs": {"shape": [3_000_001]}}
    halves = {"commands": [half | {"outputs": [id]} for id in ("a", "b")], "fetch": ["a", "b"]}
    for refusal in (
        rest.http.post("/v1/run?full=true", json=halves),
        rest.post("run?full=true", halves | {"scratch": True}),
        rest.post("ops?full=true", {"ops": [many | {"outputs": ["more"]}], "fetch": ["more"], "scratch": True}),
    ):
        assert "ask for safetensors" in problem(refusal, 406, "not_acceptable")["detail"]
    beginnings = {"commands": [{"do": "fetch", "id": "many", "elements": 1000}] * 6001}
    refusal = problem(rest.post("batch", beginnings), 406, "not_acceptable")
    assert "the answer's 6,001 tensors together have 6,001,000 numbers" in refusal["detail"]


def test_every_element_of_a_large_tensor_comes_as_json(rest: Rest) -> None:
    array = np.random.default_rng(5).normal(size=(40, 50)).astype(np.float32)
    array[0, :3] = [np.nan, np.inf, -np.inf]
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": "40,50"}
    ok(rest.http.post(f"{rest.path}/tensors?id=x", content=array.tobytes(), headers=headers))
    value = ok(rest.get("tensors/x?full=true")).json()["value"]
    assert value["data"][0][:3] == ["NaN", "Infinity", "-Infinity"]
    assert np.array_equal(np.array(value["data"], np.float64).astype(np.float32), array, equal_nan=True)
    ok(rest.post("tensors", {"id": "y", "value": value}))
    assert ok(rest.get("tensors/y", Accept=RAW)).content == array.tobytes()


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
    rest.create("tensors", {"id": "x", "value": words})
    assert rest.data("tensors/x") == words
    assert ok(rest.get("tensors/x")).json()["value"]["dtype"] == "float32"
    bare = '{"value": [NaN]}'
    response = rest.http.post(f"{rest.path}/tensors", content=bare, headers={"Content-Type": "application/json"})
    assert '"NaN"' in problem(response, 400, "malformed_json")["detail"]


def test_lying_raw_tensors_are_refused(rest: Rest) -> None:
    def send(body: bytes, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return rest.http.post(f"{rest.path}/tensors?id=x", content=body, headers={"Content-Type": RAW, **named})

    refusal = problem(send(b"1234", Tensor_Dtype="float32", Tensor_Shape="2"), 422, "invalid_request")
    assert "takes 8 bytes, the body has 4" in refusal["detail"]
    for headers in ({}, {"Tensor_Dtype": "float32"}, {"Tensor_Shape": "1"}):
        assert "Tensor-Shape" in problem(send(b"1234", **headers), 422, "invalid_request")["detail"]
    for shape in ("a", "-1", "1,,1", "1.5", ",".join("1" * 33)):
        problem(send(b"1234", Tensor_Dtype="float32", Tensor_Shape=shape), 422, "invalid_request")
    assert "float99" in problem(send(b"1", Tensor_Dtype="float99", Tensor_Shape="1"), 422, "invalid_argument")["detail"]
    problem(send(b"\2", Tensor_Dtype="bool", Tensor_Shape="1"), 422, "invalid_request")
    problem(send(b"", Tensor_Dtype="float32", Tensor_Shape=f"0,{10**30}"), 422, "invalid_request")
    assert ok(rest.get("tensors")).json()["tensors"] == []
