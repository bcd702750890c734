"""Bodies and content types that are refused, each with the field that is wrong."""

from typing import Any

import pytest
from rest_client import RAW, Rest

from serving import ok, problem


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
    rest.create("variables", {"id": "w", "value": 1.5})
    rest.create("tapes", {"id": "t"})
    refusal = problem(rest.post(place, body), 422, "invalid_request")
    assert where is None or refusal["details"]["fields"][0]["field"] == where
    assert ok(rest.get("tapes/t")).json()["consumed"] is False


def test_malformed_json_names_the_place(rest: Rest) -> None:
    response = rest.http.post(f"{rest.path}/ops", content=b'{"ops": [', headers={"Content-Type": "application/json"})
    assert "column" in problem(response, 400, "malformed_json")["detail"]


def test_a_tensor_is_no_variable_and_no_tape(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": 1.5})
    rest.create("variables", {"id": "w", "value": 1.5})
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
    rest.create("tensors", {"id": "x", "value": 1.5})
    known = problem(rest.get("tensors/x", Accept="image/png"), 406, "not_acceptable")["details"]["known"]
    assert known == ["application/json", RAW]
    problem(rest.get("tensors", Accept=RAW), 406, "not_acceptable")
