"""POST …/functions/{f}/train: steps on the server, as the formulas say; progress, cancel, refusals."""

import json
from typing import Any

import numpy as np
import pytest
from rest_client import Rest, op

from serving import ok, problem

ERROR = {
    "id": "error",
    "inputs": ["w", "x", "y"],
    "steps": [
        op("mul", "x", "w", to="guess"),
        op("squared_difference", "guess", "y", to="d"),
        op("reduce_mean", "d", to="loss"),
    ],
    "outputs": ["loss"],
}
X, Y = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0]
SGD = {"name": "sgd", "learning_rate": 0.01}
WHOLE: dict[str, Any] = {"inputs": {"w": "w", "x": X, "y": Y}, "optimizer": SGD, "steps": 3, "fetch": ["w"]}
ROWS: dict[str, Any] = {"inputs": {"w": "w"}, "data": {"x": X, "y": Y}, "optimizer": SGD}


@pytest.fixture
def error(rest: Rest) -> Rest:
    rest.create("functions", ERROR)
    rest.create("variables", {"id": "w", "value": 0.5})
    return rest


def descended(batches: list[list[int]], w: float = 0.5, rate: float = 0.01) -> tuple[list[float], float]:
    """The losses and the variable after gradient descent on these rows."""
    losses = []
    for rows in batches:
        x, y = np.array(X)[rows], np.array(Y)[rows]
        losses.append(float(np.mean((w * x - y) ** 2)))
        w -= rate * float(np.mean(2 * (w * x - y) * x))
    return losses, w


def ids_of(rest: Rest) -> tuple[list[str], list[str], list[str]]:
    tensors = [entry["id"] for entry in rest.get("tensors").json()["tensors"] if entry["kind"] == "tensor"]
    variables = [entry["id"] for entry in rest.get("variables").json()["variables"]]
    return tensors, variables, [entry["id"] for entry in rest.get("functions").json()["functions"]]


# ------------------------------------------------------------------------------------------------------------ the steps
def test_steps_on_everything_return_the_losses_and_leave_the_variables_changed(error: Rest) -> None:
    answer = error.done("functions/error/train", WHOLE)
    losses, w = descended([[0, 1, 2, 3, 4]] * 3)
    assert answer["steps"] == 3
    assert answer["losses"]["data"] == pytest.approx(losses)
    assert answer["loss"]["data"] == pytest.approx(losses[-1])
    assert answer["first_not_finite"] is None
    assert answer["values"]["w"]["data"] == error.data("variables/w") == pytest.approx(w)
    assert ids_of(error) == ([], ["w"], ["error"])


def test_rows_are_taken_in_batches_epoch_after_epoch(error: Rest) -> None:
    answer = error.done("functions/error/train", ROWS | {"batch_size": 2, "epochs": 2})
    losses, w = descended([[0, 1], [2, 3], [4]] * 2)
    assert answer["losses"]["data"] == pytest.approx(losses)
    assert error.data("variables/w") == pytest.approx(w)
    answer = error.done("functions/error/train", ROWS | {"batch_size": 2, "epochs": 2, "drop_remainder": True})
    losses, _ = descended([[0, 1], [2, 3]] * 2, w)
    assert answer["losses"]["data"] == pytest.approx(losses, rel=1e-5)
    assert error.done("functions/error/train", ROWS | {"batch_size": 2, "steps": 4})["steps"] == 4


def test_an_order_is_shuffled_by_its_seed(error: Rest) -> None:
    random = np.random.default_rng(7)
    batches = []
    for _ in range(2):
        order = random.permutation(5).tolist()
        batches += [order[:2], order[2:4], order[4:]]
    answer = error.done("functions/error/train", ROWS | {"batch_size": 2, "epochs": 2, "shuffle": 7})
    assert answer["losses"]["data"] == pytest.approx(descended(batches)[0])


def test_batches_are_given_one_by_one_as_numbers_and_ids(error: Rest) -> None:
    error.create("tensors", {"id": "x1", "value": [3.0, 4.0]})
    batches = [{"x": [1.0, 2.0], "y": [2.0, 4.0]}, {"x": "x1", "y": [6.0, 8.0]}]
    body = {"inputs": {"w": "w"}, "batches": batches, "optimizer": SGD, "epochs": 2}
    losses, w = descended([[0, 1], [2, 3]] * 2)
    assert error.done("functions/error/train", body)["losses"]["data"] == pytest.approx(losses)
    assert error.data("variables/w") == pytest.approx(w)
    assert ids_of(error) == (["x1"], ["w"], ["error"])


def test_many_steps_run_in_blocks_of_a_plan(error: Rest) -> None:
    answer = error.done("functions/error/train", ROWS | {"batch_size": 2, "steps": 1500})
    losses, w = descended([[0, 1], [2, 3], [4]] * 500)
    assert answer["losses"]["shape"] == [1500]
    assert answer["losses"]["data"] == pytest.approx(losses[:1000], rel=1e-5, abs=1e-6)  # JSON shows the first 1000
    assert error.data("variables/w") == pytest.approx(w)


def test_training_goes_on_from_the_state_of_the_optimizer(error: Rest) -> None:
    """Two requests with a state do what one does."""
    adam = {"name": "adam", "learning_rate": 0.1}
    once = error.done("functions/error/train", WHOLE | {"optimizer": adam, "steps": 6})
    error.put("variables/w", {"value": 0.5})
    parts = [
        error.done("functions/error/train", WHOLE | {"optimizer": adam | {"state": "opt"}, "steps": steps})
        for steps in (2, 4)
    ]
    assert [loss for part in parts for loss in part["losses"]["data"]] == once["losses"]["data"]
    assert parts[-1]["values"] == once["values"]
    assert ids_of(error)[1] == ["w", "opt.count", "opt.w.m", "opt.w.v"]
    assert error.data("variables/opt.count") == 6


def test_chosen_variables_alone_are_trained_and_one_may_be_bound_twice(rest: Rest) -> None:
    product = {
        "id": "product",
        "inputs": ["a", "b", "c"],
        "steps": [op("mul", "a", "b", to="ab"), op("mul", "ab", "c", to="loss")],
        "outputs": ["loss"],
    }
    rest.create("functions", product)
    for name in ("u", "v"):
        rest.create("variables", {"id": name, "value": 3.0})
    body = {"inputs": {"a": "u", "b": "u", "c": "v"}, "optimizer": {"name": "sgd", "learning_rate": 0.125}, "steps": 1}
    rest.done("functions/product/train", body | {"variables": ["u"]})
    assert (rest.data("variables/u"), rest.data("variables/v")) == (3.0 - 0.125 * 18.0, 3.0)  # u² v by u
    rest.done("functions/product/train", body | {"variables": ["c"]})
    assert rest.data("variables/v") == 3.0 - 0.125 * 0.75**2


def test_a_function_that_assigns_assigns_in_each_step(error: Rest) -> None:
    steps = [*ERROR["steps"], {"do": "assign", "variable": "seen", "value": 1.0, "mode": "add"}]  # type: ignore[misc]
    counting = ERROR | {"id": "counting", "inputs": ["w", "x", "y", "seen"], "steps": steps}
    error.create("functions", counting)
    error.create("variables", {"id": "seen", "value": 0.0, "trainable": False})
    body = WHOLE | {"inputs": WHOLE["inputs"] | {"seen": "seen"}, "steps": 20, "fetch": ["seen"]}
    assert error.done("functions/counting/train", body)["values"]["seen"]["data"] == 20.0


def test_a_loss_that_is_not_finite_is_reported(error: Rest) -> None:
    answer = error.done("functions/error/train", WHOLE | {"optimizer": {"name": "sgd", "learning_rate": 1e20}})
    assert answer["first_not_finite"] == 1
    assert answer["loss"]["data"] in ("NaN", "Infinity")
    assert len(answer["losses"]["data"]) == 3


# -------------------------------------------------------------------------------------------------- progress and cancel
def test_steps_and_loss_are_reported_and_a_cancel_leaves_whole_steps(rest: Rest) -> None:
    """Each step adds 1 to `seen` and to `w`: after a cancel both have the same number."""
    slow = {
        "id": "slow",
        "inputs": ["w", "x", "seen"],
        "steps": [
            op("mul", "x", "w", to="xw"),
            op("reduce_mean", "xw", to="loss"),
            {"do": "assign", "variable": "seen", "value": 1.0, "mode": "add"},
        ],
        "outputs": ["loss"],
    }
    rest.create("functions", slow)
    rest.done("ops", {"ops": [op("fill", 1.0, to="x", shape=[1 << 17])], "fetch": []})
    for name in ("w", "seen"):
        rest.create("variables", {"id": name, "value": 0.0, "trainable": name == "w"})
    body = {
        "inputs": {"w": "w", "x": "x", "seen": "seen"},
        "optimizer": {"name": "sgd", "learning_rate": 1.0, "state": "opt"},
        "steps": 1_000_000,
    }
    cancelled = False
    with rest.http.stream(
        "POST", f"{rest.path}/functions/slow/train", json=body, headers={"Accept": "text/event-stream"}
    ) as response:
        for line in response.iter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line.removeprefix("data: "))
            if event.get("loss") is not None and not cancelled:
                cancelled = True
                assert event["iterations"] == 1_000_000
                assert 0 < event["iteration"] < 1_000_000
                assert event["loss"] == pytest.approx(1 - event["iteration"], rel=0.9)
                ok(rest.http.post(f"{rest.path}/cancel"))
    assert (event["code"], event["status"]) == ("cancelled", 409)
    seen = rest.data("variables/seen")
    assert seen == -rest.data("variables/w") == rest.data("variables/opt.count") == event["details"]["steps"]
    assert seen > 16
    tensors, _, functions = ids_of(rest)
    assert (tensors, functions) == (["x"], ["slow"])


# ------------------------------------------------------------------------------------------------------------- refusals
def test_a_null_gradient_is_refused_with_its_reason_before_the_first_step(rest: Rest) -> None:
    rounded = {
        "id": "rounded",
        "inputs": ["w", "b"],
        "steps": [op("round", "w", to="r"), op("add", "r", "b", to="loss")],
        "outputs": ["loss"],
    }
    rest.create("functions", rounded)
    for name in ("w", "b"):
        rest.create("variables", {"id": name, "value": 1.5})
    body = {"inputs": {"w": "w", "b": "b"}, "optimizer": SGD, "steps": 5}
    refusal = problem(rest.post("functions/rounded/train", body), 422, "invalid_argument")
    assert "with respect to 'w' is null" in refusal["detail"]
    assert refusal["details"]["why"]["op"] == "round"
    assert rest.data("variables/b") == 1.5
    assert ids_of(rest) == ([], ["w", "b"], ["rounded"])


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"inputs": {"w": "w", "x": X}}, "invalid_request", "inputs: 'y' is missing; function 'error' takes w, x, y"),
        ({"inputs": {"w": "w", "v": 1.0}}, "invalid_request", "inputs: function 'error' has w, x, y; found 'v'"),
        ({"inputs": ["w"]}, "invalid_request", "inputs: must be an object; found a list"),
        ({"inputs": {"w": 1.0, "x": X, "y": Y}}, "invalid_request", "variables: no input is bound to a trainable"),
        ({"variables": ["x"]}, "invalid_request", "variables: 'x' is no input that is bound to a variable"),
        ({"variables": []}, "invalid_request", "variables: must have at least 1 members"),
        ({"variables": ["whole"], "inputs": {"w": "whole", "x": X, "y": Y}}, "invalid_request", "has dtype int32"),
        ({"loss": "d"}, "invalid_request", "loss: function 'error' has loss; found 'd'"),
        ({"optimizer": {"name": "sgdm"}}, "invalid_request", "optimizer.name: must be 'sgd', 'adam'"),
        ({"optimizer": {}}, "invalid_request", "optimizer.name: is missing"),
        ({"optimizer": SGD | {"beta_1": 0.5}}, "invalid_request", "optimizer 'sgd' has no setting 'beta_1'; it has"),
        ({"optimizer": SGD | {"momentum": 1.5}}, "invalid_request", "optimizer.momentum: must be less than 1"),
        ({"optimizer": SGD | {"learning_rate": "a"}}, "invalid_request", "optimizer.learning_rate: must be a number"),
        ({"optimizer": SGD | {"clipnorm": 0}}, "invalid_request", "optimizer.clipnorm: must be greater than 0"),
        ({"optimizer": SGD | {"state": "1x"}}, "invalid_request", "optimizer.state: must match"),
        ({"optimizer": SGD | {"state": "taken"}}, "invalid_request", "optimizer.state: 'taken.count' is not from"),
        ({"steps": 0}, "invalid_request", "steps: must be at least 1; found 0"),
        ({"steps": 1_000_001}, "invalid_request", "steps: must be at most 1000000"),
        ({"steps": None}, "invalid_request", "steps: is missing, and is needed without batches and data"),
        ({"epochs": 2}, "invalid_request", "steps: give either steps or epochs"),
        ({"shuffle": 1}, "invalid_request", "shuffle: is for batches and data alone"),
        ({"batch_size": 1}, "invalid_request", "batch_size: is for data alone"),
        ({"data": {"x": X}}, "invalid_request", "inputs and data: 'x' is in both"),
        ({"data": {"x": X}, "batches": [{"x": X}]}, "invalid_request", "batches: give either batches, or data"),
        ({"data": {}}, "invalid_request", "data: must have at least 1 members"),
        ({"batches": []}, "invalid_request", "batches: must have at least 1 members"),
        ({"fetch": ["nobody"]}, "unknown_id", "nobody"),
        ({"inputs": {"w": "nobody", "x": X, "y": Y}}, "unknown_id", "nobody"),
        ({"inputs": {"w": "w", "x": [1.0, 2.0], "y": Y}}, "invalid_argument", ""),
        ({"rate": 1.0}, "invalid_request", "rate: is no field of this request"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_everything(error: Rest, change: Any, code: str, text: str) -> None:
    error.create("variables", {"id": "whole", "value": {"dtype": "int32", "data": 3}})
    error.create("variables", {"id": "taken.count", "value": [1.0]})
    body = {name: value for name, value in (WHOLE | change).items() if value is not None}
    refusal = problem(error.post("functions/error/train", body), 404 if code == "unknown_id" else 422, code)
    assert text in refusal["detail"]
    assert error.data("variables/w") == 0.5
    assert ids_of(error) == ([], ["w", "whole", "taken.count"], ["error"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"data": {"x": X, "y": [1.0]}},
            "data: all tensors have the same number of rows along axis 0, 1 or more; found",
        ),
        ({"data": {"x": 1.0, "y": 1.0}}, "found x float32[], y float32[]"),
        ({"batch_size": 9, "drop_remainder": True}, "batch_size: 9 is more than the 5 rows"),
        ({"epochs": 1_000_001}, "epochs: 1,000,001 epochs are 1,000,001 steps, and a request takes at most 1,000,000"),
        ({"data": None, "batches": [{"x": X, "y": Y}, {"x": X}]}, "batches.1: has x, and the first batch x, y"),
        ({"data": None, "batches": [{"x": X, "y": Y}, {"x": X, "y": [1.0]}]}, "batches.1.y: found float32[1], and the"),
    ],
)
def test_batches_that_do_not_fit_are_refused(error: Rest, change: Any, text: str) -> None:
    body = {name: value for name, value in (ROWS | change).items() if value is not None}
    assert text in problem(error.post("functions/error/train", body), 422, "invalid_request")["detail"]


def test_a_loss_is_one_number(error: Rest) -> None:
    steps = ERROR["steps"][:2]  # type: ignore[index]
    error.create("functions", ERROR | {"id": "each", "steps": steps, "outputs": ["d", "guess"]})
    refusal = problem(error.post("functions/each/train", WHOLE), 422, "invalid_request")
    assert "loss: function 'each' has the outputs d, guess" in refusal["detail"]
    refusal = problem(error.post("functions/each/train", WHOLE | {"loss": "d"}), 422, "invalid_argument")
    assert "loss: output 'd' is float32[5]; a loss is one number" in refusal["detail"]
