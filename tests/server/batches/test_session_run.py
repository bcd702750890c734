"""POST /sessions/{session}/run: a step of a loop in one request; and training loops over REST, which leave nothing."""

from typing import Any

import numpy as np
import pytest
from rest_client import Rest, op

from serving import ok, problem

STEPS, FEW = 50, 8
RATE = 0.5
GENERATOR = np.random.default_rng(7)
FEATURES = GENERATOR.normal(size=(32, 3)).astype(np.float32)
LABELS = (FEATURES @ np.array([1.0, -2.0, 0.5], np.float32) > 0).astype(np.float32)[:, None]
LOSS = [
    op("matmul", "features", "w", to="logits"),
    op("sigmoid_cross_entropy", "labels", "logits", to="losses"),
    op("reduce_mean", "losses", to="loss"),
]
DATA = {"features": FEATURES.tolist(), "labels": LABELS.tolist()}


def commands(ops: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"do": "op", **call} for call in ops]


def trained(steps: int) -> np.ndarray[Any, Any]:
    """The weights after some steps, by NumPy."""
    w = np.zeros((3, 1), np.float32)
    for _ in range(steps):
        w -= RATE * FEATURES.T @ (1 / (1 + np.exp(-FEATURES @ w)) - LABELS) / len(LABELS)
    return w


class Counted(Rest):
    """A session whose requests are counted, and its tensors and bytes after each step."""

    def __init__(self, rest: Rest) -> None:
        super().__init__(rest.http, rest.session)
        self.requests = 1  # the session's creation
        self.contents: list[tuple[int, int, int]] = []

    def post(self, place: str, body: Any, **headers: str) -> Any:
        self.requests += 1
        return super().post(place, body, **headers)

    def put(self, place: str, body: Any, **headers: str) -> Any:
        self.requests += 1
        return super().put(place, body, **headers)

    def look(self) -> None:
        """Notes what the session holds; these requests are not the loop's."""
        tensors, tapes = (len(ok(self.get(name)).json()[name]) for name in ("tensors", "tapes"))
        exact = self.http.post(f"{self.path}/run", json={"commands": []}).json()["bytes_in_use"]
        self.contents.append((tensors, tapes, exact))

    def check(self, requests: int, losses: list[float]) -> None:
        """Checks the number of requests, that nothing grows from the second step on, and what was learnt.

        The bytes are compared from the sixth step on: before that the session may plan a step that comes again.
        """
        assert self.requests == requests
        assert len({(tensors, tapes) for tensors, tapes, _ in self.contents[1:]}) == 1, self.contents
        assert len({exact for *_, exact in self.contents[5:]}) == 1, self.contents
        assert losses == sorted(losses, reverse=True)
        assert np.allclose(self.data("variables/w"), trained(len(losses)), atol=1e-4)


# ------------------------------------------------------------------------------------------------------- training loops
def test_logistic_regression_takes_a_request_for_each_step(rest: Rest) -> None:
    session, losses = Counted(rest), []
    values = [{"do": "constant", "id": name, "value": value} for name, value in DATA.items()]
    session.done("run", {"commands": [*values, {"do": "variable", "id": "w", "value": [[0.0], [0.0], [0.0]]}]})
    step = [
        {"do": "tape.open", "id": "tape"},
        *commands(LOSS),
        {"do": "gradient", "tape": "tape", "targets": ["loss"], "sources": ["w"], "outputs": ["dw"]},
        *commands([op("mul", "dw", RATE, to="change")]),
        {"do": "assign", "variable": "w", "value": "change", "mode": "sub"},
    ]
    for _ in range(STEPS):
        answer = session.done("run", {"commands": step, "fetch": ["loss"], "scratch": True})
        losses.append(answer["values"]["loss"]["data"])
        session.look()
    session.check(2 + STEPS, losses)
    assert losses[-1] < 0.5 * losses[0]
    assert session.contents[0][:2] == (2, 0)


def test_logistic_regression_with_resources(rest: Rest) -> None:
    """A tape, ops, a gradient that is kept, and ops for the update: ids are written again in each step."""
    session, losses = Counted(rest), []
    for name, value in DATA.items():
        session.create("tensors", {"id": name, "value": value})
    session.create("variables", {"id": "w", "value": [[0.0], [0.0], [0.0]]})
    session.create("tapes", {"id": "tape", "persistent": True})
    question = {"targets": ["loss"], "sources": ["w"], "outputs": ["dw"], "replace": True}
    for _ in range(FEW):
        answer = session.done("tapes/tape/ops", {"ops": LOSS, "keep": ["loss"], "replace": True})
        losses.append(answer["values"]["loss"]["data"])
        session.done("tapes/tape/gradient", question)
        session.done("ops", {"ops": [op("mul", "dw", RATE, to="change")], "replace": True})
        session.put("variables/w", {"value": "change", "mode": "sub"})
        session.done("tapes/tape/reset")
        session.look()
    session.check(5 + 5 * FEW, losses)
    assert session.contents[0][:2] == (5, 1)


def test_logistic_regression_with_resets(rest: Rest) -> None:
    """The same without `replace`: each step's reset ends what the step left."""
    session, losses = Counted(rest), []
    for name, value in DATA.items():
        session.create("tensors", {"id": name, "value": value})
    session.create("variables", {"id": "w", "value": [[0.0], [0.0], [0.0]]})
    session.create("tapes", {"id": "tape", "persistent": True})
    for _ in range(FEW):
        losses.append(session.done("tapes/tape/ops", {"ops": LOSS})["values"]["loss"]["data"])
        session.done("tapes/tape/gradient", {"targets": ["loss"], "sources": ["w"], "outputs": ["dw"]})
        session.done("tapes/tape/ops", {"ops": [op("mul", "dw", RATE, to="change")]})
        session.put("variables/w", {"value": "change", "mode": "sub"})
        session.done("tapes/tape/reset", {"release_outputs": True})
        session.look()
    session.check(5 + 5 * FEW, losses)
    assert session.contents[0][:2] == (2, 1)


# ------------------------------------------------------------------------------------------------------- one run
def test_a_run_answers_values_reasons_and_questions(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    body = {
        "commands": [
            {"do": "tape.open", "id": "t", "persistent": True},
            {"do": "op", "op": "round", "inputs": ["w"], "outputs": ["y"]},
            {"do": "fetch", "id": "w"},
            {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["w"], "outputs": ["dw"]},
            {"do": "explain", "tape": "t", "targets": ["y"], "sources": ["w"]},
        ],
        "fetch": ["y", "dw"],
        "keep": ["t"],
    }
    answer = rest.done("run", body)
    assert {id: value and value["data"] for id, value in answer["values"].items()} == {"w": 1.5, "y": 2, "dw": None}
    assert answer["why"]["dw"]["code"] == "non_differentiable_op"
    assert list(answer["results"]) == ["4"]
    assert ok(rest.get("tensors")).json()["tensors"] == []
    assert ok(rest.get("tapes/t")).json()["recording"] is False
    assert rest.done("run", {"commands": []}).keys() == {"values", "bytes_in_use"}


def test_tapes_and_accumulators_are_paused_after_a_run_that_fails_too(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    opening = [
        {"do": "tape.open", "id": "t"},
        {"do": "tape.open", "id": "consumed"},
        {"do": "op", "op": "square", "inputs": ["w"], "outputs": ["y"]},
        {"do": "gradient", "tape": "consumed", "targets": ["y"], "sources": ["w"], "outputs": ["dw"]},
        {"do": "accumulator.open", "id": "a", "primals": ["w"], "tangents": [1.5]},
    ]
    broken = {"do": "fetch", "id": "nobody"}
    refusal = problem(rest.post("run", {"commands": [*opening, broken]}), 404, "unknown_id")
    assert refusal["details"]["command"] == 5
    assert [ok(rest.get(f"tapes/{id}")).json()["recording"] for id in ("t", "consumed")] == [False, False]
    resuming = [
        {"do": "tape.resume", "tape": "t"},
        {"do": "accumulator.resume", "accumulator": "a", "primals": [], "tangents": []},
        {"do": "op", "op": "mul", "inputs": ["y", "w"], "outputs": ["z"]},
    ]
    rest.done("run", {"commands": resuming})
    recorded = ok(rest.get("tapes/t")).json()["ops"]
    rest.done("run", {"commands": [{"do": "op", "op": "neg", "inputs": ["z"], "outputs": ["untaped"]}]})
    tape = ok(rest.get("tapes/t")).json()
    assert (tape["recording"], tape["ops"]) == (False, recorded)


def test_a_run_takes_nothing_from_a_client_that_records(rest: Rest) -> None:
    rest.done("batch", {"commands": [{"do": "tape.open", "id": "theirs"}]})
    for command in ({"do": "tape.resume", "tape": "theirs"}, {"do": "tape.open", "id": "theirs"}):
        for replace in (False, True):
            refusal = problem(rest.post("run", {"commands": [command], "replace": replace}), 409, "tape_state")
            assert "records for another client" in refusal["detail"]
    assert ok(rest.get("tapes/theirs")).json()["recording"] is True


def test_a_retry_of_a_run_executes_nothing_twice(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    step = {"commands": [{"do": "assign", "variable": "w", "value": 1.0, "mode": "add"}], "fetch": ["w"]}
    answers = [rest.post("run", step, **{"Idempotency-Key": "step-1"}).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert rest.data("variables/w") == 2.5


@pytest.fixture
def constant(rest: Rest) -> Rest:
    rest.create("tensors", {"id": "x", "value": 1.5})
    return rest


def test_runs_that_cannot_be(constant: Rest) -> None:
    neg = {"do": "op", "op": "neg", "inputs": ["x"], "outputs": ["y"]}
    wrong: list[tuple[dict[str, Any], int, str, str]] = [
        ({"commands": [neg], "fetch": ["z"]}, 404, "unknown_id", "'z'"),
        ({"commands": [neg], "keep": ["z"]}, 422, "invalid_request", "results (y); found z"),
        ({"commands": [neg], "scratch": 1}, 422, "invalid_request", "scratch: must be true or false; found 1"),
        ({"commands": [neg], "replace": "y"}, 422, "invalid_request", 'replace: must be true or false; found "y"'),
        ({"commands": neg}, 422, "invalid_request", "commands"),
        ({"commands": [neg], "release": ["x"]}, 422, "invalid_request", "release"),
        ({"commands": [neg | {"do": "opp"}]}, 422, "bad_command", "opp"),
        ({"commands": [neg | {"outputs": ["x"]}]}, 409, "id_in_use", "'x'"),
    ]
    for body, status, code, text in wrong:
        assert text in problem(constant.post("run", body), status, code)["detail"]
    assert [each["id"] for each in ok(constant.get("tensors")).json()["tensors"]] == ["x"]
