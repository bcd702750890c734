"""Several named tensors in one body, both ways: the safetensors format, for each request that has tensors."""

import json
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rest_client import RAW, Rest, op
from tensor_bodies import Arrays, answered, packed, send, unpacked

import teletape_server.handlers  # noqa: F401  # it registers the methods
import teletape_wire as wire
from serving import ok, problem
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES
from teletape_server.handlers.methods import METHODS, Request, Result
from teletape_wire.safetensors.errors import MalformedSafetensorsError
from teletape_wire.safetensors.layout import DTYPE_OF, MAX_HEADER, MAX_TENSORS, SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import read_file
from teletape_wire.safetensors.writer import write_file

ERROR = {
    "id": "error",
    "inputs": ["w", "x"],
    "steps": [op("mul", "w", "x", to="guess"), op("reduce_sum", "guess", to="sum")],
    "outputs": ["sum"],
}
ROUNDED = {"id": "rounded", "inputs": ["x"], "steps": [op("round", "x", to="y")], "outputs": ["y"]}
W, X = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
INPUTS: Arrays = {"w": W, "x": X}
SAMPLES: Arrays = {
    "BOOL": np.array([True, False]),
    "BF16": np.array([1.5, -2.0], ml_dtypes.bfloat16),
    "F16": np.array([[0.5], [np.inf]], np.float16),
    "F32": np.float32(2.5) * np.ones((), np.float32),
    "F64": np.zeros((0, 3)),
    "C64": np.array([1 + 2j], np.complex64),
    **{name: np.array([0, 7], dtype) for name, dtype in DTYPE_OF.items() if name[0] in "IU"},
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "value_and_gradient": {},
    "jacobian": {},
    "hessian": {"unconnected": "zero"},
    "hvp": {"vectors": [[1.0, 2.0], [0.5, 0.25]]},
    "vjp": {"output_gradients": [2.0]},
    "jvp": {"tangents": [[1.0, 2.0], [0.5, 0.25]]},
    "call": {},
}


@pytest.fixture
def functions(rest: Rest) -> Rest:
    for function in (ERROR, ROUNDED):
        rest.create("functions", function)
    return rest


def in_json(value: Any, tensors: Arrays) -> Any:
    """An answer with its tensors as JSON has them."""
    if isinstance(value, list):
        return [in_json(member, tensors) for member in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        array = tensors[value["tensor"]]
        assert (value["dtype"], value["shape"]) == (array.dtype.name, list(array.shape))
        return wire.tensor_to_json(array)
    return {name: in_json(member, tensors) for name, member in value.items()}


# ------------------------------------------------------------------------------------------------------- each question
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_about_a_function_takes_and_answers_named_tensors(functions: Rest, question: str) -> None:
    place = f"functions/error/{question}"
    in_both = {"inputs": {"w": W.tolist(), "x": X.tolist()}} | QUESTIONS[question]
    expected = essence(functions.done(place, in_both))
    answer, tensors = answered(functions.post(place, in_both, Accept=SAFETENSORS_TYPE))
    assert essence(in_json(answer, tensors)) == expected
    assert {name.partition("/")[0] for name in tensors} <= {"values", "derivatives"}
    body = packed(INPUTS, QUESTIONS[question])
    assert essence(ok(send(functions, place, body)).json()) == expected
    assert essence(in_json(*answered(send(functions, place, body, accept=SAFETENSORS_TYPE)))) == expected


def essence(answer: Any) -> tuple[Any, list[Any]]:
    """Derivatives and values; ids that the server generated differ from answer to answer."""
    return answer.get("derivatives"), list(answer["values"].values())


def test_named_tensors_alone_are_enough(functions: Rest) -> None:
    answer = ok(send(functions, "functions/error/gradient", packed(INPUTS))).json()
    assert [(entry["source"], entry["value"]["data"]) for entry in answer["derivatives"]] == [
        ("w", [3.0, 4.0]),
        ("x", [1.0, 2.0]),
    ]
    place = 'functions/error/gradient?request={"sources":["x"],"fetch":["sum"]}'
    _, tensors = answered(send(functions, place, packed(INPUTS, format="np"), accept=SAFETENSORS_TYPE))
    assert {name: array.tolist() for name, array in tensors.items()} == {
        "derivatives/x": [1.0, 2.0],
        "values/sum": 11.0,
    }


def test_a_tensor_has_its_place_as_its_name_or_is_referred_to(functions: Rest) -> None:
    functions.create("variables", {"id": "v", "value": X.tolist()})
    by_place = packed({"inputs/w": W, "vectors/0": X}, {"inputs": {"x": "v"}, "sources": ["w"]})
    by_reference = packed(
        {"a": W, "b": X}, {"inputs": [{"tensor": "a"}, "v"], "sources": ["w"], "vectors": [{"tensor": "b"}]}
    )
    answers = [ok(send(functions, "functions/error/hvp", body)).json() for body in (by_place, by_reference)]
    assert answers[0] == answers[1]
    assert functions.get("tensors").json()["tensors"] == []


def test_a_null_says_why_and_is_no_tensor(functions: Rest) -> None:
    answer, tensors = answered(
        send(functions, "functions/rounded/value_and_gradient", packed({"x": X}), accept=SAFETENSORS_TYPE)
    )
    [derivative] = answer["derivatives"]
    assert (derivative["value"], derivative["why"]["op"]) == (None, "round")
    assert list(tensors) == ["values/y"]


def test_the_questions_of_a_tape(rest: Rest) -> None:
    rest.create("tapes", {"id": "t", "persistent": True})
    ok(send(rest, "variables", packed({"w": W, "table": np.ones((3, 2), np.float32)}), method="PUT"))
    rest.done("tapes/t/ops", {"ops": [op("square", "w", to="y"), op("gather", "table", [0, 2], to="rows")]})
    weights = packed({"output_gradients/0": X}, {"targets": ["y"], "sources": ["w"]})
    assert ok(send(rest, "tapes/t/gradient", weights)).json()["derivatives"][0]["value"]["data"] == [6.0, 16.0]
    _, tensors = answered(rest.post("tapes/t/hessian", {"targets": ["y"], "sources": ["w"]}, Accept=SAFETENSORS_TYPE))
    assert tensors["derivatives/w/w"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    body = {
        "questions": [
            {"targets": ["rows"], "sources": ["table", "w"]},
            {"do": "jacobian", "targets": ["y"], "sources": ["w"]},
        ]
    }
    answer, tensors = answered(rest.post("tapes/t/questions", body, Accept=SAFETENSORS_TYPE))
    assert {name: array.shape for name, array in tensors.items()} == {
        "results/0/derivatives/table/values": (2, 2),
        "results/0/derivatives/table/indices": (2,),
        "results/1/derivatives/w": (2, 2),
    }
    assert answer["results"][0]["derivatives"][1]["kind"] == "none"
    vjps = packed(
        {"k": np.eye(2, dtype=np.float32)},
        {"questions": [{"do": "vjps", "targets": ["y"], "sources": ["w"], "output_gradients": [{"tensor": "k"}]}]},
    )
    _, tensors = answered(send(rest, "tapes/t/questions", vjps, accept=SAFETENSORS_TYPE))
    assert tensors["results/0/derivatives/w"].tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_run_creates_the_tensors_of_the_body(rest: Rest) -> None:
    request = {
        "commands": [
            {"do": "variable", "id": "w", "value": {"tensor": "start"}},
            {"do": "tape.open", "id": "t"},
            {"do": "op", "op": "mul", "inputs": ["w", "x"], "outputs": ["y"]},
            {"do": "op", "op": "round", "inputs": ["y"], "outputs": ["z"]},
            {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["w"], "outputs": ["dw"], "retain_tape": True},
            {"do": "gradient", "tape": "t", "targets": ["z"], "sources": ["w"], "outputs": ["dz"]},
        ],
        "fetch": ["dw", "dz"],
    }
    headers = {"Content-Type": SAFETENSORS_TYPE, "Accept": f"{SAFETENSORS_TYPE}, application/json;q=0.5"}
    response = rest.http.post("/v1/run", content=packed({"start": W, "x": X}, request), headers=headers)
    answer, tensors = answered(response)
    assert {name: array.tolist() for name, array in tensors.items()} == {"values/dw": [3.0, 4.0]}
    assert (answer["values"]["dz"], answer["why"]["dz"]["op"]) == (None, "round")
    body = {"tensors": {"x": [1.5, 2.5]}, "commands": [], "fetch": ["x"]}
    assert ok(rest.http.post("/v1/run", json=body)).json()["values"]["x"]["data"] == [1.5, 2.5]
    refusal = problem(
        rest.http.post("/v1/run", json=body | {"commands": [{"do": "fetch", "id": "y"}]}), 404, "unknown_id"
    )
    assert refusal["details"]["command"] == 0


# ---------------------------------------------------------------------------------------------------- many at a time
def test_variables_are_saved_and_restored_as_a_file(rest: Rest) -> None:
    created = ok(send(rest, "variables", packed(SAMPLES), method="PUT")).json()["variables"]
    assert {facts["id"] for facts in created} == SAMPLES.keys()
    rest.create("variables", {"id": "other", "value": 1.5})
    response = rest.get("variables", Accept=SAFETENSORS_TYPE)
    answer, tensors = answered(response)
    assert [facts["id"] for facts in answer["variables"]] == list(tensors.keys() - SAMPLES.keys() - {"other"}) + [
        facts["id"] for facts in rest.get("variables").json()["variables"]
    ]
    for name, array in SAMPLES.items():
        assert (tensors[name].dtype, tensors[name].shape) == (array.dtype, array.shape), name
        assert tensors[name].tobytes() == array.tobytes(), name
    written = ok(send(rest, "variables", response.content, method="PUT")).json()["variables"]
    assert {facts["version"] for facts in written} == {1}
    ok(rest.put("variables", {"variables": {"other": 2.5, "new": [0.5]}, "trainable": False}))
    assert (rest.data("variables/other"), rest.get("variables/new").json()["trainable"]) == (2.5, False)


def test_variables_are_written_all_or_none(rest: Rest) -> None:
    ok(send(rest, "variables", packed({"w": W, "x": X}), method="PUT"))
    body = packed({"w": X, "x": np.ones(3, np.float32), "new": W})
    refusal = problem(send(rest, "variables", body, method="PUT"), 422, "invalid_argument")
    assert "variable 'x' is float32[2], its new value float32[3]: nothing was assigned" in refusal["detail"]
    assert (rest.data("variables/w"), rest.get("variables/new").status_code) == (W.tolist(), 404)


def test_tensors_are_created_together_and_read_one_by_one(rest: Rest) -> None:
    ok(send(rest, "tensors", packed({"a": W, "b": X}), method="PUT"))
    problem(send(rest, "tensors", packed({"c": W, "a": X}), method="PUT"), 409, "id_in_use")
    answer, tensors = answered(rest.get("tensors", Accept=SAFETENSORS_TYPE))
    assert ([facts["id"] for facts in answer["tensors"]], sorted(tensors)) == (["a", "b"], ["a", "b"])
    _, tensors = answered(rest.get("tensors/a", Accept=SAFETENSORS_TYPE))
    assert {name: array.tolist() for name, array in tensors.items()} == {"a": W.tolist()}
    created = send(rest, "tensors?id=d", packed({"anything": W}))
    assert (created.status_code, created.json()["id"]) == (201, "d")
    rest.create("variables", {"id": "v", "value": W.tolist()})
    ok(send(rest, "variables/v?mode=add", packed({"v": X}), method="PUT"))
    assert rest.data("variables/v") == [4.0, 6.0]
    ok(
        send(
            rest,
            "variables/v",
            packed({"value": W, "indices": np.array([1, 0])}, {"mode": "scatter_update"}),
            method="PUT",
        )
    )
    assert rest.data("variables/v") == [2.0, 1.0]


def test_an_id_that_ends_as_a_place_does_not_hide_another(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 3.0})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("square", "w", to="y")]})
    answer, tensors = answered(
        rest.post("tapes/t/gradient", {"targets": ["y"], "sources": ["w", "w"]}, Accept=SAFETENSORS_TYPE)
    )
    assert sorted(tensors) == ["derivatives/w", "derivatives/w#2"]
    assert [entry["value"]["tensor"] for entry in answer["derivatives"]] == ["derivatives/w", "derivatives/w#2"]


# ---------------------------------------------------------------------------------------------------------- negotiation
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        (f"application/json, {SAFETENSORS_TYPE}", "application/json"),
        (f"application/json;q=0.9, {SAFETENSORS_TYPE}", SAFETENSORS_TYPE),
        (f"{SAFETENSORS_TYPE};q=0.2, application/json;q=0.1", SAFETENSORS_TYPE),
        (f"{SAFETENSORS_TYPE};q=0, */*", "application/json"),
    ],
)
def test_accept_alone_chooses_the_form_of_the_answer(functions: Rest, accept: str, kind: str) -> None:
    body = {"inputs": [W.tolist(), X.tolist()]}
    assert ok(functions.post("functions/error/gradient", body, Accept=accept)).headers["content-type"] == kind


def test_types_that_a_request_does_not_have(functions: Rest) -> None:
    refusal = problem(functions.post("functions/error/gradient", {}, Accept=RAW), 406, "not_acceptable")
    assert refusal["details"]["known"] == ["application/json", SAFETENSORS_TYPE]
    headers = {"Content-Type": RAW}
    place = f"{functions.path}/functions/error/gradient"
    refusal = problem(functions.http.post(place, content=b"1", headers=headers), 415, "unsupported_media_type")
    assert SAFETENSORS_TYPE in refusal["details"]["known"]
    problem(send(functions, "tapes", packed({})), 415, "unsupported_media_type")  # nothing in it is a tensor
    problem(functions.get("tapes", Accept=SAFETENSORS_TYPE), 406, "not_acceptable")


def test_a_retry_with_a_key_gets_the_same_bytes(functions: Rest) -> None:
    headers = {"Idempotency-Key": "k1"}
    place, body = "functions/error/call", packed(INPUTS, {"outputs": ["kept"]})
    first, again = (send(functions, place, body, accept=SAFETENSORS_TYPE, **headers) for _ in range(2))
    assert answered(first)[1]["values/kept"] == 11.0
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    problem(send(functions, place, packed(INPUTS), accept=SAFETENSORS_TYPE, **headers), 422, "idempotency_conflict")


def test_a_run_with_a_key_is_stored_with_its_type(rest: Rest) -> None:
    body = packed({"x": X}, {"commands": [], "fetch": ["x"]})
    headers = {"Content-Type": SAFETENSORS_TYPE, "Accept": SAFETENSORS_TYPE, "Idempotency-Key": f"run {rest.session}"}
    first, again = (rest.http.post("/v1/run", content=body, headers=headers) for _ in range(2))
    assert answered(first)[1]["values/x"].tolist() == X.tolist()
    assert (again.content, again.headers["content-type"]) == (first.content, SAFETENSORS_TYPE)
    assert again.headers["idempotent-replayed"] == "true"


def test_events_report_a_binary_request_in_json(functions: Rest) -> None:
    accept = f"text/event-stream, {SAFETENSORS_TYPE}"
    response = ok(send(functions, "functions/error/gradient", packed(INPUTS), accept=accept))
    assert response.headers["content-type"].startswith("text/event-stream")
    assert '"value":{"dtype":"float32","shape":[2],"data":[3.0,4.0]}' in response.text


def test_an_answer_that_the_format_has_no_dtype_for(rest: Rest) -> None:
    value = {"dtype": "complex128", "shape": [1], "data": [[1.0, 2.0]]}
    rest.create("tensors", {"id": "z", "value": value})
    refusal = problem(rest.get("tensors/z", Accept=SAFETENSORS_TYPE), 406, "not_acceptable")
    assert "'z' is complex128, which safetensors has no name for: ask for JSON" in refusal["detail"]
    assert set(DTYPES) - {dtype.name for dtype in DTYPE_OF.values()} == {"complex128"}


# ------------------------------------------------------------------------------------------------------- wrong requests
@pytest.mark.parametrize(
    ("tensors", "request_", "code", "text"),
    [
        (INPUTS | {"extra": W}, None, "invalid_request", "has w, x; found 'extra'"),
        ({"w": W}, None, "invalid_request", "x is missing"),
        (
            {"w": W},
            {"inputs": {"w": {"tensor": "w"}, "x": {"tensor": "v"}}},
            "invalid_request",
            "refers to the tensor 'v'; the body has 'w'",
        ),
        (
            INPUTS,
            {"inputs": [{"tensor": "w"}, 1.5]},
            "invalid_request",
            "inputs: it is in request, and the body has tensors for it too (x)",
        ),
        (INPUTS, {"inputs": {"x": 1.5}}, "invalid_request", "inputs: it is in request"),
        (INPUTS, {"colour": 1}, "invalid_request", "colour: is no field of this request"),
        (INPUTS, {"targets": [{"tensor": "w"}]}, "invalid_request", "targets.0: must be a string; found a tensor"),
        (INPUTS, {"sources": {"tensor": "x"}}, "invalid_request", "sources: must be a list; found a tensor"),
        (INPUTS | {"sources/0": W}, None, "invalid_request", "sources.0: must be a string; found a tensor"),
        (INPUTS | {"inputs": W}, None, "invalid_request", "part of another tensor's"),
        (INPUTS | {"inputs/x/y": W}, None, "invalid_request", "part of another tensor's"),
        ({"inputs" + "/a" * 12: W}, None, "invalid_request", "at most 9 parts"),
        (INPUTS, "[]", "invalid_request", "__metadata__.request is a JSON object"),
        (INPUTS, "{", "malformed_json", "__metadata__.request: no valid JSON"),
        (INPUTS, '{"sources": ' + "[" * 600 + "]" * 600 + "}", "malformed_json", "nested too deep"),
    ],
)
def test_requests_that_are_wrong(functions: Rest, tensors: Arrays, request_: Any, code: str, text: str) -> None:
    status = 400 if code == "malformed_json" else 422
    response = send(functions, "functions/error/gradient", packed(tensors, request_))
    assert text in problem(response, status, code)["detail"]


def test_tensors_that_have_no_place(rest: Rest) -> None:
    refusal = problem(send(rest, "ops", packed({"x": X}, {"ops": []})), 422, "invalid_request")
    assert """tensor 'x': nothing refers to it; write {"tensor": 'x'} where it is meant""" in refusal["detail"]
    refusal = problem(send(rest, "tensors", packed(INPUTS)), 422, "invalid_request")
    assert "value: it is one tensor, and the body has more" in refusal["detail"]
    refusal = problem(send(rest, "variables", packed({"a/b": X}), method="PUT"), 422, "invalid_request")
    assert "variables" in refusal["detail"]
    refusal = problem(send(rest, "tensors?id=a", packed({"x": X}, {"id": "b"})), 422, "invalid_request")
    assert "id: in the query and in request" in refusal["detail"]
    both = send(rest, 'tensors?request={"id":"a"}', packed({"x": X}, {"id": "b"}))
    assert "request: it is in __metadata__ and in the query" in problem(both, 422, "invalid_request")["detail"]
    in_json = rest.post('tensors?request={"id":"a"}', {"value": 1.5})
    assert "this query parameter belongs to a body of the type" in problem(in_json, 422, "invalid_request")["detail"]
    without_file = problem(rest.post("tensors", {"value": {"tensor": "x"}}), 422, "invalid_argument")
    assert "refers to a tensor of a safetensors body" in without_file["detail"]


# ------------------------------------------------------------------------------------------------------- the bytes
def body_of(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(begin: int, end: int, dtype: Any = "U8", shape: Any = None) -> Any:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "begins with 8 bytes, its header's length; this body has 0"),
        (b"\x05\0\0", "this body has 3"),
        (body_of(b"{}", length=MAX_HEADER + 1), "declare a header of 16,777,217 bytes, the limit is 16,777,216"),
        (body_of(b"{}", length=100), "the header ends at byte 108, the body at byte 10"),
        (body_of(b""), "begins with {; it is empty"),
        (body_of(b" {}"), "begins with {; found the byte 0x20"),
        (body_of(b"{"), "the header: no valid JSON"),
        (body_of(b'{"a": 1, "a": 2}'), "the name 'a' occurs twice"),
        (body_of(b'{"\xff": 1}'), "not UTF-8"),
        (body_of({"__metadata__": {"request": {}}}), "__metadata__ is an object of strings"),
        (body_of({"__metadata__": []}), "__metadata__ is an object of strings"),
        (body_of({"a": 1}), "gives each tensor dtype, shape and data_offsets; found 1"),
        (body_of({"a": {"dtype": "U8", "shape": [0]}}), "found dtype, shape"),
        (body_of({"a": entry(0, 1, "F8_E4M3")}, b"1"), "the dtype 'F8_E4M3' is not one of BOOL, I8"),
        (body_of({"a": entry(0, 1, ["U8"])}, b"1"), "the dtype ['U8'] is not one of"),
        (body_of({"a": entry(0, 1, shape=[-1])}, b"1"), "the shape is a list of lengths, none negative; found [-1]"),
        (body_of({"a": entry(0, 1, shape=[True])}, b"1"), "the shape is a list of lengths"),
        (body_of({"a": entry(0, 1, shape=[1] * 33)}, b"1"), "it has 33 axes, the limit is 32"),
        (body_of({"a": entry(0, 0, shape=[0, 1 << 62])}), "no array of uint8 can have the shape"),
        (body_of({"a": entry(0, 1) | {"data_offsets": [0]}}, b"1"), "data_offsets are [begin, end]"),
        (body_of({"a": entry(0, 1) | {"data_offsets": [0, 1.0]}}, b"1"), "data_offsets are [begin, end]"),
        (body_of({"a": entry(0, 1) | {"data_offsets": [1, 0]}}, b"1"), "begin at 1 and end at 0: the end comes second"),
        (body_of({"a": entry(0, 3, "F32", [1])}, b"123"), "float32[1] takes 4 bytes, data_offsets [0, 3] have 3"),
        (
            body_of({"a": entry(0, 4), "b": entry(2, 6)}, b"123456"),
            "'b': it begins at byte 2 after the header, and overlaps tensor 'a'",
        ),
        (body_of({"a": entry(0, 2), "b": entry(3, 4)}, b"1234"), "bytes from 2 to there belong to no tensor"),
        (
            body_of({"a": entry(0, 9)}, b"1234"),
            "it ends at byte 9 after the header, where the body has 4 bytes: the body is cut",
        ),
        (body_of({"a": entry(0, 2)}, b"1234"), "the tensors end at byte 2 after the header, the body at 4"),
        (body_of({"a": entry(0, 2, "BOOL")}, b"\0\2"), "dtype BOOL has only the bytes 0 and 1, found 2"),
        (
            body_of({f"t{i}": entry(0, 0) for i in range(MAX_TENSORS + 1)}),
            "declares 16,385 tensors, the limit is 16,384",
        ),
    ],
)
def test_bytes_that_are_not_in_the_format(body: bytes, text: str) -> None:
    with pytest.raises(MalformedSafetensorsError) as caught:
        read_file(memoryview(body), copy_below=0)
    assert text in caught.value.message


def test_such_bytes_change_nothing(rest: Rest) -> None:
    whole = packed({"a": W, "b": X})
    for cut in (b"", whole[:5], whole[:40], whole[:-1]):
        problem(send(rest, "tensors", cut, method="PUT"), 400, "malformed_safetensors")
    assert rest.get("tensors").json()["tensors"] == []
    ok(send(rest, "tensors", whole, method="PUT"))


def test_the_order_in_the_header_is_free() -> None:
    body = body_of({"b": entry(2, 3), "a": entry(0, 2), "empty": entry(2, 2)}, b"\1\2\3")
    tensors = read_file(memoryview(body), copy_below=0).tensors
    assert {name: array.tolist() for name, array in tensors.items()} == {"b": [3], "a": [1, 2], "empty": []}


def test_the_package_reads_what_is_written() -> None:
    answer, tensors = unpacked(b"".join(write_file(SAMPLES, {"answer": "{}", "é": "ü"})))
    assert answer == {}
    for name, array in SAMPLES.items():
        assert (tensors[name].dtype, tensors[name].shape) == (array.dtype, array.shape), name
        assert tensors[name].tobytes() == array.tobytes(), name


# ------------------------------------------------------------------------------------------------------- copies
MIB = 1 << 20
BIG = np.zeros(10 * MIB, np.float32)  # 40 MiB
PARAMS = {
    "id": None,
    "full": False,
    "collection": "",
    "idempotency_key": None,
    "accept": wire.JSON_TYPE,
    "query": {},
    "selection": {},
}


def requested(session: Session, method: str, content_type: str, body: bytes | memoryview, **params: Any) -> Result:
    request = Request(
        PARAMS | params, content_type, memoryview(body), 64 << 10, lambda: False, lambda *numbers: None, 0.0
    )
    return METHODS[method](session, request)


def peak(
    session: Session, method: str, content_type: str, body: bytes | memoryview, **params: Any
) -> tuple[int, Result]:
    """Bytes that a request needs at most in addition to its body, and its result."""
    tracemalloc.start()
    try:
        result = requested(session, method, content_type, body, **params)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_a_large_tensor_is_copied_no_more_often_than_raw_bytes() -> None:
    session = Session()
    query = {"id": "raw"}
    raw, _ = peak(session, "tensors-create", RAW, BIG.tobytes(), dtype="float32", shape=str(BIG.size), query=query)
    named, _ = peak(session, "tensors-create_all", SAFETENSORS_TYPE, packed({"x": BIG}))
    assert max(raw, named) < MIB
    requested(session, "tensors-delete", "", b"", id="raw")
    raw, whole = peak(session, "tensors-get", "", b"", id="x", accept=RAW)
    named, result = peak(session, "tensors-list", "", b"", accept=SAFETENSORS_TYPE)
    assert max(raw, named) < MIB
    buffer = np.frombuffer(result.buffers[1], np.uint8)
    assert np.shares_memory(buffer, np.frombuffer(whole.buffers[0], np.uint8)), "it is the tensor's own memory"
    assert result.length == sum(map(len, result.buffers))


def test_a_gradient_of_40_mib_takes_no_copy_of_input_or_answer() -> None:
    session = Session()
    doubled = {"id": "doubled", "inputs": ["x"], "steps": [op("mul", "x", 2.0, to="y")], "outputs": ["y"]}
    requested(session, "functions-create", wire.JSON_TYPE, json.dumps(doubled).encode())
    by_id = json.dumps({"inputs": ["x"]}).encode()
    requested(session, "tensors-create_all", SAFETENSORS_TYPE, packed({"x": BIG}))
    params = {"id": "doubled", "accept": SAFETENSORS_TYPE}
    by_id_alone, _ = peak(session, "functions-gradient", wire.JSON_TYPE, by_id, id="doubled")
    sent, result = peak(session, "functions-gradient", SAFETENSORS_TYPE, packed({"x": BIG}), **params)
    assert sent - by_id_alone < MIB, "a tensor of the body costs no more than one of the session"
    assert len(result.buffers) == 2
    assert result.buffers[1].nbytes == BIG.nbytes


def test_small_tensors_do_not_keep_a_large_body() -> None:
    body = memoryview(packed({"small": W, "large": BIG}))
    tensors = read_file(body, copy_below=64 << 10).tensors
    memory = np.frombuffer(body, np.uint8)
    assert [np.shares_memory(tensors[name], memory) for name in ("small", "large")] == [False, True]


def test_a_tensor_that_is_not_aligned_is_copied() -> None:
    for shift in range(8):
        header = json.dumps({"a": entry(0, 4, "F32", [1])}).encode() + b" " * shift
        body = body_of(header, W[1:].tobytes())
        tensor = read_file(memoryview(body), copy_below=0).tensors["a"]
        assert (tensor.flags.aligned, tensor.tolist()) == (True, [2.0])
        start = np.frombuffer(body, np.uint8).ctypes.data
        is_view = np.shares_memory(tensor, np.frombuffer(body, np.uint8))
        assert is_view == ((start + len(body) - 4) % 4 == 0)
