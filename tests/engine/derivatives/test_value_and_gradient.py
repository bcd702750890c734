"""The step `value_and_gradient`: a function's results and gradients, inside batches, functions, tapes, loops, plans."""

import re

import numpy as np
import pytest

from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    Constant,
    DefineFunction,
    Fetch,
    Gradient,
    MakeVariable,
    OnFailure,
    Scan,
    TapeOpen,
    TapePause,
    TapeWatch,
    ValueAndGradient,
)
from teletape_engine.plans.policy import POLICY
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

CUBE = DefineFunction(
    "cube", ("x", "w"), (Call("mul", ("x", "x"), ("xx",)), Call("mul", ("xx", "w"), ("y",))), ("y", "xx")
)
ROWS = DefineFunction(
    "rows",
    ("table", "at"),
    (Call("gather", ("table", "at"), ("taken",)), Call("reduce_sum", ("taken",), ("sum",))),
    ("sum",),
)


def run(session: Session, *commands):
    answer = session.execute(Batch(commands))
    assert answer.failure is None, answer.failure
    return [np.asarray(result.array).tolist() for result in answer.results if hasattr(result, "array")]


def refusal(session: Session, *commands):
    failure = session.execute(Batch(commands, on_failure=OnFailure.FREE)).failure
    assert failure is not None
    return failure


@pytest.fixture
def session():
    session = Session()
    run(session, CUBE, ROWS, Constant("a", np.array([1.0, 2.0], np.float32)))
    return session


def test_results_come_first_then_a_gradient_for_each_source(session):
    step = ValueAndGradient("cube", ("a", Literal(3.0)), ("y",), ("w", "x"), ("y", "xx", "dw", "dx"))
    assert run(session, step, *map(Fetch, step.outputs)) == [[3.0, 12.0], [1.0, 4.0], 5.0, [6.0, 12.0]]


def test_an_id_that_is_bound_twice_has_a_gradient_by_each_input(session):
    step = ValueAndGradient("cube", ("a", "a"), ("y",), ("x", "w"), ("y", "xx", "dx", "dw"))
    assert run(session, step, Fetch("dx"), Fetch("dw")) == [[2.0, 8.0], [1.0, 4.0]]


def test_a_sparse_gradient_is_an_array(session):
    table = Constant("t", np.ones((3, 2), np.float32))
    step = ValueAndGradient("rows", ("t", np.array([2, 2, 0])), ("sum",), ("table",), ("sum", "dt"))
    assert run(session, table, step, Fetch("dt")) == [[[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]]


def test_a_tape_outside_differentiates_the_gradient_again(session):
    step = ValueAndGradient("cube", ("a", Literal(3.0)), ("y",), ("x",), ("y", "xx", "dx"))
    commands = (TapeOpen("t"), TapeWatch("t", ("a",)), step, TapePause("t"), Gradient("t", ("dx",), ("a",), ("d2",)))
    assert run(session, *commands, Fetch("d2")) == [[6.0, 6.0]]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sources": ("z",)}, "the function has no input 'z': it has x, w"),
        ({"targets": ("z",)}, "the function has no output 'z': it has y, xx"),
        ({"targets": ("xx",), "sources": ("w",)}, "xx of the function has no gradient with respect to w"),
        ({"inputs": ("a",)}, r"the function takes 2 inputs \(x, w\), found 1"),
        ({"unconnected": "nothing"}, "nothing"),
        (
            {"outputs": ("y",)},
            "there are 3 results, found 1 ids for them: outputs has one for each, the values and then the gradients",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_no_tape_open(session, fields, words):
    good = {
        "function": "cube",
        "inputs": ("a", Literal(3.0)),
        "targets": ("y",),
        "sources": ("x",),
        "outputs": ("y", "xx", "d"),
    }
    failure = refusal(session, ValueAndGradient(**good | fields))
    assert failure.code == "invalid_argument"
    assert re.search(words, failure.message)
    assert run(session, ValueAndGradient(**good), Fetch("d")) == [[6.0, 12.0]]


def test_zeros_for_a_source_that_no_target_depends_on(session):
    step = ValueAndGradient("cube", ("a", Literal(3.0)), ("xx",), ("w",), ("y", "xx", "dw"), "zero")
    assert run(session, step, Fetch("dw")) == [0.0]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_loop_of_steps_descends_with_and_without_plans(monkeypatch, enabled):
    """The plan's steps read each variable anew: after 50 of them the numbers are those of the formula."""
    monkeypatch.setattr(POLICY, "enabled", enabled)
    session = Session()
    descend = DefineFunction(
        "descend",
        ("v", "w"),
        (
            ValueAndGradient("cube", ("v", "w"), ("y",), ("x",), ("y", "xx", "dv")),
            Call("mul", ("dv", Literal(0.125)), ("change",)),
            Assign("v", "change", "sub"),
        ),
        ("y",),
    )
    loop = Scan("descend", ("v", Literal(1.0)), ("losses",), captured=2, length=50)
    losses, v = run(session, CUBE, descend, MakeVariable("v", np.float64(8.0)), loop, Fetch("losses"), Fetch("v"))
    assert losses == pytest.approx([64.0 * 0.75 ** (2 * k) for k in range(50)])
    assert v == pytest.approx(8.0 * 0.75**50)
