"""Where a batch looks whether its caller has cancelled it, or its time is over: inside every long command."""

from typing import Any

import numpy as np
import pytest
from driving import run, value

from teletape_engine import commands
from teletape_engine.commands import Batch, Call, Command, Constant, DefineFunction, Gradient, TapeOpen, TapeWatch
from teletape_engine.errors import DeadlineExceededError
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

NODES = 3000
X = np.array([0.5, 1.0])


@pytest.fixture
def session() -> Session:
    """A session with a persistent tape of 3,000 nodes, from x to y; y2 is nearer, u is a function of 1,000 steps."""
    session = Session()
    chain = [
        Call("sin" if i % 2 else "mul", (f"v{i}", Literal(1.1))[: 2 - i % 2], (f"v{i + 1}",)) for i in range(NODES)
    ]
    steps = tuple(Call("sin", (f"s{i}",), (f"s{i + 1}",)) for i in range(1000))
    run(
        session,
        Constant("v0", X),
        Constant("rows", np.ones((3, 2))),
        Constant("ones", np.ones((1, 2))),
        DefineFunction("long", ("s0",), steps, ("s1000",)),
        TapeOpen("t", persistent=True, replayable=True),
        TapeWatch("t", ("v0",)),
        *chain,
        commands.TapePause("t"),
    )
    return session


def looks(session: Session, command: Command, *, at_most: int | None = None) -> tuple[int, Any]:
    """How often one command looks for a cancel, and its failure; it is cancelled after `at_most` looks."""
    count = 0

    def cancelled() -> bool:
        nonlocal count
        count += 1
        return at_most is not None and count > at_most

    answer = session.execute(Batch((command,)), cancelled=cancelled)
    return count, answer.failure


Y, X0 = (f"v{NODES}",), ("v0",)
LONG = {
    "gradient": (Gradient("t", Y, X0, ("g",)), NODES),
    "jacobian": (commands.Jacobian("t", Y, X0, ("g",)), NODES),
    "vjps": (commands.Vjps("t", Y, X0, ("g",), output_gradients=("ones",)), NODES),
    "hessian": (commands.Hessian("t", Y, X0, ("g",)), 3 * NODES),
    "hvp": (commands.Hvp("t", Y, X0, ("v0",), ("g",)), 3 * NODES),
    "explanation": (commands.Explain("t", Y, X0), NODES),
    "check of a tape": (commands.TapeCheckGradients("t", Y, X0), 7 * NODES),
    "check of a function": (commands.CheckGradients("long", X0), 7 * 1000),
    "function over rows": (commands.Scan("long", ("rows",), ("g",), vectorize=True), 1000),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_command_looks_for_a_cancel_every_few_hundred_steps(session: Session, name: str) -> None:
    command, steps = LONG[name]
    count, failure = looks(session, command)
    assert failure is None
    assert count > steps // CANCEL_STEPS


@pytest.mark.parametrize("name", LONG)
def test_a_long_command_stops_at_the_look_that_finds_a_cancel(session: Session, name: str) -> None:
    command, _ = LONG[name]
    count, failure = looks(session, command, at_most=3)
    assert (failure.code, failure.index) == ("cancelled", 0)
    assert count <= 6  # a check of gradients tries float64, and then what it is given
    assert looks(session, Gradient("t", Y, X0, ("again",)))[1] is None  # the tape is as it was
    assert np.isfinite(value(session, "again")).all()


@pytest.mark.parametrize("name", LONG)
def test_the_time_limit_is_seen_where_a_cancel_is(session: Session, name: str) -> None:
    command, _ = LONG[name]
    question = iter(range(3))

    def cancelled() -> bool:
        if next(question, None) is None:
            raise DeadlineExceededError("too late")
        return False

    failure = session.execute(Batch((command,)), cancelled=cancelled).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("deadline_exceeded", "too late")


def test_a_tape_whose_gradient_was_cancelled_is_used_up() -> None:
    session = Session()
    chain = [Call("neg", (f"v{i}",), (f"v{i + 1}",)) for i in range(NODES)]
    run(session, Constant("v0", X), TapeOpen("t"), TapeWatch("t", ("v0",)), *chain)
    bytes_before = session.bytes_in_use()
    assert looks(session, Gradient("t", Y, X0, ("g",)), at_most=4)[1].code == "cancelled"
    assert session.bytes_in_use() <= bytes_before
    assert looks(session, Gradient("t", Y, X0, ("g",)))[1].code == "tape_consumed"
