"""POST …/functions/{f}/check_gradients and …/tapes/{t}/check_gradients."""

import httpx
import pytest

F = {
    "id": "f",
    "inputs": ["a", "b"],
    "steps": [
        {"op": "mul", "inputs": ["a", "b"], "outputs": ["d"]},
        {"op": "sin", "inputs": ["d"], "outputs": ["m"]},
    ],
    "outputs": ["m"],
}


@pytest.fixture
def post(server_url):
    with httpx.Client(base_url=server_url + "/v1") as client:
        base = f"/sessions/{client.post('/sessions', json={}).json()['id']}"
        yield lambda path, body: client.post(f"{base}/{path}", json=body).json()
        client.delete(base)


def test_a_function_is_checked_where_it_is_asked(post):
    post("functions", F)
    answer = post("functions/f/check_gradients", {"inputs": [[0.5, 1.5], [2.0, 3.0]], "settings": {"entries": 1}})
    assert answer["agrees"] is True
    assert (answer["dtype"], answer["checked"], answer["entries"]) == ("float64", 2, 4)
    assert answer["worst"]["error"] < 1e-7
    body = {"inputs": {"b": [2.0, 3.0], "a": [0.5, 1.5]}, "settings": {"entries": 1}}
    assert post("functions/f/check", body) == answer  # the short name of the path
    assert answer["message"].startswith("2 of 4 entries compared in float64 (seed 0): all agree")


def test_a_wrong_gradient_is_an_answer_and_no_problem(post):
    calls = [{"op": "round", "inputs": ["a"], "outputs": ["r"]}, {"op": "mul", "inputs": ["r", "r"], "outputs": ["m"]}]
    post("functions", {"id": "g", "inputs": ["a"], "steps": calls, "outputs": ["m"]})
    answer = post("functions/g/check_gradients", {"inputs": [[0.5000001, 0.7]]})
    assert answer["agrees"] is False
    assert answer["worst"]["automatic"] is None
    assert answer["worst"]["index"] == [0]
    assert len(answer["worst"]["sides"]) == 2


def test_a_variable_among_the_inputs_stays_as_it_is(post):
    post("variables", {"id": "w", "value": [1.0, 2.0]})
    post("functions", F)
    assert post("functions/f/check_gradients", {"inputs": ["w", 3.0]})["agrees"] is True


def test_a_tape_is_checked_and_still_answers(post):
    post("variables", {"id": "w", "value": [1.0, 2.0]})
    assert post("tapes", {"id": "t", "replayable": True})["ops"] == 0
    post("tapes/t/ops", {"ops": [{"op": "exp", "inputs": ["w"], "outputs": ["y"]}]})
    answer = post("tapes/t/check_gradients", {"targets": ["y"], "sources": ["w"]})
    assert answer["agrees"] is True
    assert post("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"][0]["kind"] == "dense"
    assert post("tapes/t/check_gradients", {"targets": ["y"], "sources": ["w"]})["code"] == "tape_state"


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"inputs": [[0.5]]}, "invalid_request", "function 'f' takes 2 (a, b), found 1"),
        (
            {"inputs": [{"dtype": "int32", "data": 1}] * 2},
            "invalid_argument",
            "no argument has a gradient: ['int32', 'int32']",
        ),
        ({"inputs": [[0.5], [1.0, 2.0, 3.0]], "settings": {"entries": 0}}, "invalid_request", "settings.entries"),
        ({"inputs": ["nope", 1.0]}, "unknown_id", "unknown id 'nope'"),
        ({"inputs": [[0.5, 1.0], [1.0, 2.0, 3.0]]}, "invalid_argument", "Incompatible shapes: [2] vs. [3]"),
    ],
)
def test_what_cannot_be_checked_is_refused(post, body, code, text):
    post("functions", F)
    answer = post("functions/f/check_gradients", body)
    assert answer["code"] == code
    assert text in answer["detail"]


def test_an_unknown_setting_of_a_batch_is_reported(post):
    post("functions", F)
    todo = [{"do": "check_gradients", "function": "f", "inputs": [0.5, 0.5], "settings": {"stepp": 1}}]
    failure = post("batch", {"commands": todo})["failure"]
    assert failure["message"] == "check_gradients: no setting 'stepp'; there are entries, seed, step, rtol, atol"
    todo[0]["settings"] = {"entries": True}
    assert "entries must be a whole number, found True" in post("batch", {"commands": todo})["failure"]["message"]


def test_a_tape_that_keeps_no_inputs_says_so(post):
    post("variables", {"id": "w", "value": [1.0, 2.0]})
    post("tapes", {"id": "t"})
    post("tapes/t/ops", {"ops": [{"op": "exp", "inputs": ["w"], "outputs": ["y"]}]})
    answer = post("tapes/t/check_gradients", {"targets": ["y"], "sources": ["w"]})
    assert answer["code"] == "tape_state"
    assert 'create it with "replayable": true' in answer["detail"]
