"""Estimates of derivatives over REST: counts before anything is computed, and the tape stays."""

from rest_client import Rest, op

from serving import problem


def test_an_estimate_counts_and_the_tape_stays(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": [[1.0, 2.0], [3.0, 4.0]]})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("matmul", "w", "w", to="y")]})
    question = {"targets": ["y"], "sources": ["w"]}
    estimate = rest.done("tapes/t/estimate", question)
    assert estimate.pop("seconds") > 0
    assert estimate == {
        "question": "gradient",
        "rows": 1,
        "passes": 1,
        "ops": 3,
        "multiply_adds": 16,
        "elements": 4,
        "answer_bytes": 16,
        "peak_bytes": 64,
        "functions": 0,
    }
    for other, rows in (("jacobian", 4), ("hessian", 5), ("hvp", 2)):
        assert rest.done("tapes/t/estimate", question | {"question": other})["rows"] == rows
    rest.done("tapes/t/gradient", question)
    problem(rest.post("tapes/t/estimate", question), 409, "tape_consumed")


def test_questions_that_do_not_fit_are_refused(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": [1.0, 2.0]})
    rest.create("tapes", {"id": "t"})
    rest.done("tapes/t/ops", {"ops": [op("square", "w", to="y")]})
    problem(
        rest.post("tapes/t/estimate", {"targets": ["y"], "sources": ["w"], "question": "vjps"}),
        422,
        "invalid_request",
    )
    body = {"targets": ["y"], "sources": ["w"], "question": "batch_jacobian"}
    assert "rank at least 2" in problem(rest.post("tapes/t/estimate", body), 422, "invalid_argument")["detail"]
    problem(rest.post("tapes/t/estimate", {"targets": ["no"], "sources": ["w"]}), 404, "unknown_id")
