"""Whole numbers without a fraction, as JavaScript, Go, C# and PHP write them, give what 2.0 gives."""

import json
import re
from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from programs import json_objects, load_script, run
from serving import ok, problem

pages = load_script("pages")

#: 2.0 and 10.00, but no part of 2.05, 1.0.3, 127.0.0.1 or 2.0e-5.
WHOLE = re.compile(r"(?<![\w.])(-?\d+)\.0+(?![\w.])")
BODIES = [
    pytest.param(block, id=f"{block.page}:{block.line}")
    for page in pages.pages()
    for block in pages.blocks(page, "sh")
    if WHOLE.search("\n".join(line for line in block.source.splitlines() if not line.startswith("#")))
]


def as_javascript(source: str) -> str:
    """A shell program whose bodies have 2 for 2.0; comments, which show answers, stay."""
    lines = source.splitlines(keepends=True)
    return "".join([line if line.startswith("#") else WHOLE.sub(r"\1", line) for line in lines])


def tensors(value: Any) -> list[Any]:
    """Every tensor and null derivative in an answer, or a problem's code, in order; not those of progress events."""
    if isinstance(value, list):
        return [each for member in value for each in tensors(member)]
    if not isinstance(value, dict) or value.get("status") == "running":
        return []
    if "type" in value and "code" in value:
        return [value["code"]]
    if "dtype" in value and "data" in value:
        return [(value["dtype"], value["shape"], value["data"])]
    nulls = [name for name, member in value.items() if member is None]
    return [*nulls, *[each for member in value.values() for each in tensors(member)]]


def test_most_pages_with_requests_have_whole_numbers() -> None:
    assert len({block.values[0].page for block in BODIES}) >= 6


@pytest.mark.parametrize("block", BODIES)
def test_a_page_sent_as_javascript_writes_numbers_gets_the_same_answers(block: Any, server_url: str) -> None:
    source = block.source.replace(pages.ADDRESS, server_url).replace("100000", "1000")  # iterations
    assert as_javascript(source) != source
    expected = tensors(json_objects(run(["bash", "-eu"], text=source)))
    assert expected
    assert tensors(json_objects(run(["bash", "-eu"], text=as_javascript(source)))) == expected


# ------------------------------------------------------------------------------------- what callers in JSON would write
def gradient_by_run(http: httpx.Client, text: str) -> Any:
    """The gradient of x² at a number that is written like this."""
    commands = [
        {"do": "variable", "id": "x", "value": "NUMBER"},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "square", "inputs": ["x"], "outputs": ["y"]},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
    ]
    body = json.dumps({"commands": commands, "fetch": ["dx"]}).replace('"NUMBER"', text)
    return ok(http.post("/v1/run", content=body, headers={"Content-Type": "application/json"})).json()["values"]["dx"]


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("3", 6.0),
        ("1e2", 200.0),
        ("-0", 0.0),
        ("100000000000000000000", 2e20),
        ("[1, 2.5]", [2.0, 5.0]),
        ("[[1, 2], [3, 4]]", [[2.0, 4.0], [6.0, 8.0]]),
        ('{"data": [1, 2]}', [2.0, 4.0]),
        ('{"shape": [2, 1], "data": [1, 2]}', [[2.0], [4.0]]),
    ],
)
def test_a_variable_of_whole_numbers_has_a_gradient(http: httpx.Client, text: str, gradient: Any) -> None:
    dx = gradient_by_run(http, text)
    assert dx["dtype"] == "float32"
    assert dx["data"] == pytest.approx(gradient) if isinstance(gradient, float) else dx["data"] == gradient


def test_integers_are_said(http: httpx.Client) -> None:
    assert gradient_by_run(http, '{"dtype": "int32", "data": 3}') is None


def test_answers_say_the_dtype(rest: Rest) -> None:
    assert rest.create("variables", {"id": "v", "value": [1, 2]})["dtype"] == "float32"
    assert rest.create("tensors", {"id": "t", "value": [1, 2]})["dtype"] == "float32"
    assert rest.create("tensors", {"id": "i", "value": {"dtype": "int32", "data": [1, 2]}})["dtype"] == "int32"


def test_numbers_take_the_dtype_of_the_variable_that_they_are_assigned_to(rest: Rest) -> None:
    for dtype in ("float32", "float64", "int32", "complex64"):
        zeros = [[0, 0], [0, 0]] if dtype == "complex64" else [0, 0]
        rest.create("variables", {"id": dtype, "value": {"dtype": dtype, "data": zeros}})
        answer = ok(rest.put(f"variables/{dtype}", {"value": [1, 2]})).json()
        assert (answer["dtype"], answer["version"]) == (dtype, 1)
    rest.put("variables/float64", {"value": [1, 0.1]})
    assert rest.data("variables/float64") == [1.0, 0.1]
    refused = problem(rest.put("variables/int32", {"value": [1, 0.1]}), 422, "invalid_argument")
    assert "a floating-point number cannot take the dtype int32" in refused["detail"]
    changed = rest.put("variables/float32", {"value": [9], "mode": "scatter_update", "indices": [1]})
    assert ok(changed).status_code == 200
    assert rest.data("variables/float32") == [1.0, 9.0]


def test_numbers_take_the_dtype_of_the_other_inputs_of_an_op(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": {"dtype": "float64", "data": [1, 2]}})
    ops = [
        op("mul", "x", [1, 2], to="a"),
        op("matmul", [[1, 2]], {"dtype": "float64", "data": [[3], [4]]}, to="b"),
        op("gather", "x", [1, 0], to="c"),
        op("one_hot", [0, 2], to="d", depth=3),
        op("add", [1, 2], 1, to="e"),
    ]
    outputs = rest.done("ops", {"ops": ops})["outputs"]
    assert [output["dtype"] for output in outputs] == ["float64", "float64", "float64", "float32", "float32"]
    assert [rest.data(f"tensors/{id}") for id in "abc"] == [[1.0, 4.0], [[11.0]], [2.0, 1.0]]


def test_vectors_and_weights_take_the_dtype_of_what_they_are_for(rest: Rest) -> None:
    rest.create("variables", {"id": "x", "value": [1, 2, 3]})
    rest.create("tapes", {"id": "t", "persistent": True})
    rest.done("tapes/t/ops", {"ops": [op("square", "x", to="y")]})
    [product] = rest.done("tapes/t/hvp", {"targets": ["y"], "sources": ["x"], "vectors": [[1, 0, 0]]})["derivatives"]
    assert product["value"]["data"] == [2.0, 0.0, 0.0]
    body = {"targets": ["y"], "sources": ["x"], "output_gradients": [[1, 0, 10]]}
    [gradient] = rest.done("tapes/t/gradient", body)["derivatives"]
    assert gradient["value"]["data"] == [2.0, 0.0, 60.0]
    body = {"targets": ["y"], "sources": ["x"], "output_gradients": [[[1, 0, 0], [0, 1, 0]]]}
    [rows] = rest.done("tapes/t/vjps", body)["derivatives"]
    assert rows["value"]["data"] == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]]


def test_a_function_is_differentiated_by_whole_numbers(rest: Rest) -> None:
    steps = [op("square", "x", to="s"), op("mul", "s", "w", to="y")]
    rest.create("functions", {"id": "f", "inputs": ["x", "w"], "steps": steps, "outputs": ["y"]})
    for inputs, dtype in (([3, 2], "float32"), ([3, {"dtype": "float64", "data": 2}], "float64")):
        x, w = rest.done("functions/f/gradient", {"inputs": inputs})["derivatives"]
        assert [each["value"] for each in (x, w)] == [
            {"dtype": dtype, "shape": [], "data": 12.0},
            {"dtype": dtype, "shape": [], "data": 9.0},
        ]
    [x] = rest.done("functions/f/gradient", {"inputs": {"x": [1, 2], "w": 5}, "sources": ["x"]})["derivatives"]
    assert x["value"]["data"] == [10.0, 20.0]
    [hvp] = rest.done("functions/f/hvp", {"inputs": [3, 2], "sources": ["x"], "vectors": [1]})["derivatives"]
    assert hvp["value"]["data"] == 4.0
    report = rest.done("functions/f/check_gradients", {"inputs": [[1, 2], [3, 4]]})
    assert report["agrees"] is True


def test_indices_of_a_function_are_integers_and_no_sources(rest: Rest) -> None:
    steps = [op("gather", "x", "rows", to="y")]
    rest.create("functions", {"id": "g", "inputs": ["x", "rows"], "steps": steps, "outputs": ["y"]})
    [x] = rest.done("functions/g/gradient", {"inputs": [[1, 2, 3], [2, 2]]})["derivatives"]
    assert (x["source"], x["value"]["indices"]["data"]) == ("x", [2, 2])


def test_loops_of_whole_numbers(rest: Rest) -> None:
    steps = [op("div", "a", "x", to="q"), op("add", "x", "q", to="s"), op("mul", "s", 0.5, to="next")]
    rest.create("functions", {"id": "newton", "inputs": ["x", "a"], "steps": steps, "outputs": ["next"]})
    cond = {
        "inputs": ["x", "a"],
        "outputs": ["more"],
        "steps": [
            op("square", "x", to="xx"),
            op("sub", "xx", "a", to="d"),
            op("abs", "d", to="e"),
            op("greater", "e", 1e-5, to="more"),
        ],
    }
    for a, dtype in ((2, "float32"), ({"dtype": "float64", "data": 2}, "float64")):
        root = rest.done("functions/newton/while", {"inputs": [1, a], "captured": 1, "cond": cond})["outputs"][0]
        assert root["dtype"] == dtype


@pytest.mark.parametrize(
    ("place", "body", "name"),
    [
        ("ops", {"ops": [op("gather", "x", "i", to="y")]}, "indices"),
        ("ops", {"ops": [op("tf.gather", "x", "i", to="y")]}, "indices"),
        ("ops", {"ops": [op("one_hot", "i", to="y", depth=3)]}, "indices"),
        ("ops", {"ops": [op("unsorted_segment_sum", "x", "i", to="y", num_segments=2)]}, "segment_ids"),
        ("ops", {"ops": [op("sparse_softmax_cross_entropy", "i", [[1, 2], [3, 4]], to="y")]}, "labels"),
        ("variables/x", {"value": [5, 6], "mode": "scatter_add", "indices": "i"}, "indices"),
    ],
)
def test_integers_under_an_id_are_asked_for(rest: Rest, place: str, body: Any, name: str) -> None:
    rest.create("variables", {"id": "x", "value": [1, 2]})
    rest.create("tensors", {"id": "i", "value": [0, 1]})
    response = rest.put(place, body) if place.startswith("variables") else rest.post(place, body)
    refused = problem(response, 422, "invalid_argument")
    assert f"{name} is 'i' of dtype float32: send the numbers in its place, or create it with" in refused["detail"]
