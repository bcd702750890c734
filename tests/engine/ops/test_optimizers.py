"""Optimizers change variables as Keras' do: compared with recorded results, with plans and step by step."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optimizers.cases import CASES, DTYPES, GRADIENTS, VARIABLES

from teletape_engine.commands import Batch, Call, Constant, DefineFunction, Fetch, MakeVariable, Scan
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.optimizers import COMMON, OPTIMIZERS
from teletape_engine.functions.training import COUNT, TrainedVariable, training_step
from teletape_engine.plans.policy import POLICY
from teletape_engine.session.session import Session

RESULTS = json.loads(Path(__file__).parents[1].joinpath("optimizers").joinpath("results.json").read_text())["results"]
#: Its gradients by v and w are g and h.
PRODUCTS = DefineFunction(
    "products",
    ("v", "w", "g", "h"),
    (
        *(Call("mul", ("v", "g"), ("vg",)), Call("mul", ("w", "h"), ("wh",))),
        *(Call("reduce_sum", ("vg",), ("a",)), Call("reduce_sum", ("wh",), ("b",)), Call("add", ("a", "b"), ("loss",))),
    ),
    ("loss",),
)


def run(session: Session, *commands: Any) -> list[Any]:
    answer = session.execute(Batch(commands))
    assert answer.failure is None, answer.failure
    return [result.array for result in answer.results if hasattr(result, "array")]


def trained(name: str, settings: dict[str, Any], dtype: str, steps: int) -> list[Any]:
    """The variables after some steps."""
    optimizer = OPTIMIZERS[name]
    complete = optimizer.complete(settings)
    variables = [TrainedVariable("v", ("v",), dtype), TrainedVariable("w", ("w",), dtype)]
    inputs = {"v": "v", "w": "w", "g": "g", "h": "h"}
    step = training_step("step", "products", ("loss",), "loss", inputs, ("g", "h"), variables, optimizer, complete)
    slots = {
        variable.slot(slot): np.full(value.shape, number, dtype)
        for variable, value in zip(variables, VARIABLES, strict=True)
        for slot, number in optimizer.slots(complete).items()
    }
    values = {COUNT: np.zeros((), np.int64), **slots} | {
        variable.name: value.astype(dtype) for variable, value in zip(variables, VARIABLES, strict=True)
    }
    batches = [np.stack([pair[at] for pair in (GRADIENTS * 4)[:steps]]).astype(dtype) for at in (0, 1)]
    captured = step.inputs[2:]
    session = Session()
    run(session, PRODUCTS, step, *[MakeVariable(name, values[name], trainable=False) for name in captured])
    elements = [Constant(name, batch) for name, batch in zip(("g", "h"), batches, strict=True)]
    loop = Scan("step", (*step.inputs[:2], *captured), ("losses",), captured=len(captured))
    return run(session, *elements, loop, Fetch("v"), Fetch("w"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_it_does_what_keras_does(case: str, dtype: str) -> None:
    rtol = 2e-6 if dtype == "float32" else 1e-12
    for steps in (1, 2, 5):
        for value, expected in zip(trained(*CASES[case], dtype, steps), RESULTS[case][dtype][steps - 1], strict=True):
            np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("case", CASES)
def test_plans_and_steps_agree_to_the_last_bit(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.setattr(POLICY, "enabled", False)
    expected = trained(*CASES[case], "float32", 20)
    monkeypatch.setattr(POLICY, "enabled", True)
    monkeypatch.setattr(POLICY, "first", 1)
    monkeypatch.setattr(POLICY, "compared", True)
    for value, other in zip(trained(*CASES[case], "float32", 20), expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_every_optimizer_is_compared() -> None:
    assert {name for name, _ in CASES.values()} == OPTIMIZERS.keys()
    assert {name for _, settings in CASES.values() for name in settings} >= COMMON.keys()


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="optimizer 'sgd' has no setting 'beta'; it has learning_rate"):
        OPTIMIZERS["sgd"].complete({"beta": 1})
