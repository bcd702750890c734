"""Statistics of gradients over REST: numbers in place of elements, reasons of nulls, the tape stays."""

import pytest
from rest_client import Rest, op

from serving import problem


def prepared(rest: Rest) -> None:
    """Variables w and unused, and a tape `t` that is not persistent: y = w³, with a gradient of 3, 12 and 27."""
    rest.create("variables", {"id": "w", "value": [1.0, 2.0, 3.0]})
    rest.create("variables", {"id": "unused", "value": 1.5})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("pow", "w", 3.0, to="y")]})


def test_numbers_come_in_place_of_elements_and_a_null_with_its_reason(rest: Rest) -> None:
    prepared(rest)
    question = {"targets": ["y"], "sources": ["w", "unused"]}
    numbers, null = rest.done("tapes/t/gradient_statistics", question)["statistics"]
    assert numbers.pop("norm") == pytest.approx(882**0.5)
    assert numbers == {
        "source": "w",
        "kind": "dense",
        "dtype": "float32",
        "shape": [3],
        "max_abs": 27.0,
        "mean": 14.0,
        "non_finite": 0.0,
        "zeros": 0.0,
    }
    assert (null["source"], null["kind"], null["why"]["code"]) == ("unused", "none", "unconnected")
    [gradient] = rest.done("tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})["derivatives"]
    assert gradient["value"]["data"] == [3.0, 12.0, 27.0]
    problem(rest.post("tapes/t/gradient_statistics", question), 409, "tape_consumed")


def test_weights_and_numbers_that_are_not_finite(rest: Rest) -> None:
    prepared(rest)
    question = {"targets": ["y"], "sources": ["w"], "output_gradients": [[0.0, 1.0, 3e38]]}
    [numbers] = rest.done("tapes/t/gradient_statistics", question)["statistics"]
    assert (numbers["norm"], numbers["max_abs"], numbers["mean"]) == ("Infinity", "Infinity", "Infinity")
    assert numbers["non_finite"] == numbers["zeros"] == pytest.approx(1 / 3)


def test_the_same_question_is_a_command(rest: Rest) -> None:
    prepared(rest)
    command = {"do": "gradient_statistics", "tape": "t", "targets": ["y"], "sources": ["w"]}
    [answer] = rest.done("batch", {"commands": [command]})["results"]
    assert answer["facts"]["statistics"][0]["max_abs"] == 27.0


def test_what_is_asked_of_no_tensor_or_with_too_few_weights_is_refused(rest: Rest) -> None:
    prepared(rest)
    problem(rest.post("tapes/t/gradient_statistics", {"targets": ["no"], "sources": ["w"]}), 404, "unknown_id")
    body = {"targets": ["y"], "sources": ["w"], "output_gradients": []}
    assert "1 targets" in problem(rest.post("tapes/t/gradient_statistics", body), 422, "invalid_argument")["detail"]
