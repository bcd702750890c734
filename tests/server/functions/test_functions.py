"""Functions over REST: steps that assign, call, loop and choose."""

from typing import Any

from rest_client import Rest, op

from serving import ok, problem

ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}


def test_steps_assign_to_the_variables_they_are_given(rest: Rest) -> None:
    steps = [{"do": "assign", "variable": "v", "value": "by", "mode": "add"}, op("mul", "v", 2, to="twice")]
    created = rest.create("functions", {"id": "bump", "inputs": ["v", "by"], "steps": steps, "outputs": ["twice"]})
    assert created["assigns"] == ["v"]
    rest.create("variables", {"id": "count", "value": 1.0})
    [twice] = rest.done("functions/bump/call", {"inputs": ["count", 2.0]})["values"].values()
    assert twice["data"] == 6.0
    assert rest.get("variables/count").json()["value"]["data"] == 3.0
    refusal = problem(rest.post("functions/bump/call", {"inputs": [1.0, 2.0]}), 422, "invalid_argument")
    assert "assigns to its input 'v': give it a variable" in refusal["detail"]


def test_functions_call_functions_and_choose_among_them(rest: Rest) -> None:
    for name, by in (("double", 2), ("triple", 3)):
        rest.create("functions", {"id": name, "inputs": ["a"], "steps": [op("mul", "a", by, to="b")], "outputs": ["b"]})
    steps = [
        {"do": "call", "function": "double", "inputs": ["x"], "outputs": ["twice"]},
        {"do": "cond", "branches": ["double", "triple"], "inputs": ["which", "twice"], "outputs": ["chosen"]},
    ]
    rest.create("functions", {"id": "both", "inputs": ["which", "x"], "steps": steps, "outputs": ["chosen"]})
    assert rest.delete("functions/double").status_code == 204  # those that use it keep it
    for which, expected in ((True, 20.0), (False, 30.0)):
        [value] = rest.done("functions/both/call", {"inputs": [which, 5.0]})["values"].values()
        assert value["data"] == expected
    problem(
        rest.post("functions", {"inputs": ["x"], "steps": [steps[0] | {"function": "gone"}], "outputs": ["twice"]}),
        404,
        "unknown_id",
    )


def test_a_function_is_called_and_recorded(rest: Rest) -> None:
    calls = [op("square", "a", to="s"), op("add", "s", "b", to="sum")]
    created = rest.create("functions", {"id": "f", "inputs": ["a", "b"], "steps": calls, "outputs": ["sum", "s"]})
    assert [step["op"] for step in created["steps"]] == ["square", "add"]
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    rest.create("tapes", {"id": "t"})
    answer = rest.done("functions/f/call", {"inputs": ["w", 1], "outputs": ["y", "z"], "tape": "t"})
    assert answer["values"]["y"]["data"] == [2, 5, 10]
    [dw] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"]
    assert dw["value"]["data"] == [2, 4, 6]
    assert len(rest.done("functions/f/call", {"inputs": ["w", 1], "fetch": []})["outputs"]) == 2
    problem(rest.post("functions/f/call", {"inputs": ["w"]}), 422, "invalid_request")
    by_name = rest.done("functions/f/call", {"inputs": {"b": 1, "a": "w"}, "outputs": ["y2", "z2"], "fetch": ["y2"]})
    assert by_name["values"]["y2"]["data"] == [2, 5, 10]
    problem(rest.post("functions/f/call", {"inputs": ["w", 1], "outputs": ["one"]}), 422, "invalid_request")
    problem(
        rest.post("functions", {"inputs": ["a"], "steps": [op("neg", "b", to="c")], "outputs": ["c"]}),
        422,
        "invalid_argument",
    )
    assert rest.delete("functions/f").status_code == 204


def test_an_integer_id_of_a_function_is_reached_by_its_digits(rest: Rest) -> None:
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
    [derivative] = rest.done("tapes/78/gradient", {"targets": ["y"], "sources": [{"id": 77}]})["derivatives"]
    assert (derivative["source"], derivative["value"]["data"]) == (77, 5)


def test_a_function_is_made_of_a_text(rest: Rest) -> None:
    text = "b = 0.5\np = sigmoid(x @ w + b)\nloss = -mean(y * log(p) + (1 - y) * log(1 - p))"
    created = rest.create("functions", {"id": "logistic", "text": text})
    parsed = ok(rest.http.post("/v1/expressions", json={"text": text})).json()
    assert created["inputs"] == parsed["inputs"] == ["b", "x", "w", "y"]
    assert (created["outputs"], created["values"]) == (["loss"], parsed["values"])
    inputs = {"x": [[1.0, 2.0], [3.0, -1.0]], "w": [0.5, 0.25], "y": [0.0, 1.0], **created["values"]}
    answer = rest.done("functions/logistic/value_and_gradient", {"inputs": inputs, "sources": ["w"]})
    assert answer["derivatives"][0]["value"]["shape"] == [2]
    predict = rest.create("functions", {"id": "predict", "text": text, "outputs": ["p"]})
    assert predict["inputs"] == ["b", "x", "w"]  # what is not needed is left out
    inputs.pop("y")
    [p] = rest.done("functions/predict/call", {"inputs": inputs, "scratch": True})["values"].values()
    assert p["shape"] == [2]


def test_a_call_fetches_its_results_by_their_names_or_by_ids(rest: Rest) -> None:
    rest.create("functions", {"id": "p", "text": "p = x * 2\ny = p * 3", "outputs": ["p", "y"]})

    def fetched(**fields: Any) -> dict[str, float]:
        values = rest.done("functions/p/call", {"inputs": [1.0], **fields})["values"]
        return {name: value["data"] for name, value in values.items()}

    assert fetched(scratch=True) == {"p": 2.0, "y": 6.0}
    assert fetched(scratch=True, fetch=["y"]) == fetched(fetch=["y"]) == {"y": 6.0}
    assert fetched(outputs=["a", "b"], scratch=True) == {"a": 2.0, "b": 6.0}
    assert fetched(outputs=["a", "b"], scratch=True, fetch=["b", "p"]) == {"b": 6.0, "p": 2.0}
    assert fetched(outputs=["y", "q"], scratch=True, fetch=["y"]) == {"y": 2.0}  # an id of the caller's own comes first
    rest.create("tensors", {"id": "k", "value": 5.0})
    assert fetched(fetch=["k", "p"], scratch=True) == {"k": 5.0, "p": 2.0}


def test_a_value_inside_a_function_is_said_to_be_no_output(rest: Rest) -> None:
    rest.create("functions", {"id": "mlp", "text": "o = tanh(x)\nloss = sum(o)"})
    for field in ("fetch", "targets"):
        fault = problem(rest.post("functions/mlp/gradient", {"inputs": [1.0], field: ["o"]}), 422, "invalid_request")
        assert "has loss; found 'o'. For a value inside it, create a function" in fault["detail"]
    fault = problem(rest.post("functions/mlp/call", {"inputs": [1.0], "fetch": ["o"]}), 422, "invalid_request")
    assert "'o' is neither an id in `outputs` nor in this session, and no output of function 'mlp'" in fault["detail"]
    assert "it has loss. For a value inside it, create a function with that name in its `outputs`" in fault["detail"]


def test_a_text_that_is_none_says_where_and_steps_with_it_are_refused(rest: Rest) -> None:
    fault = problem(rest.post("functions", {"text": "y = sni(x)"}), 422, "invalid_expression")
    assert fault["detail"] == "text: line 1, columns 5-7: there is no function sni; did you mean 'sin'?"
    assert fault["details"]["suggestions"] == ["sin"]
    fault = problem(rest.post("functions", {"text": "y = x", "inputs": ["x"]}), 422, "invalid_request")
    assert "leave out inputs" in fault["detail"]
    fault = problem(rest.post("functions", {"inputs": ["x"]}), 422, "invalid_request")
    assert "needs inputs, steps and outputs, or text; steps, outputs: is missing" in fault["detail"]
    fault = problem(rest.post("functions", {"text": "y = x", "outputs": ["z"]}), 422, "invalid_argument")
    assert "output 'z' of the function is neither an input nor an output of a step" in fault["detail"]
