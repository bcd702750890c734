"""Plans under a tape: bit for bit the gradients of step by step, the same nodes, and how such a plan gives way."""

from dataclasses import asdict

import numpy as np
import pytest
from driving import executor

from teletape_engine.commands import Call
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery
from teletape_engine.errors import CancelledError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.recorded import RecordedPlan
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
W = np.linspace(-0.7, 0.9, 12, dtype=np.float32).reshape(3, 4)
NETWORK = (
    Call("matmul", ("x", "w"), ("z",)),
    Call("add", ("z", "b"), ("a",)),
    Call("tanh", ("a",), ("h",)),
    Call("stop_gradient", ("h",), ("s",)),
    Call("mul", ("s", Literal(0.5)), ("half",)),
    Call("mul", ("half", "h"), ("p",)),
    Call("reshape", ("p",), ("r",), {"shape": (8,)}),
    Call("exp", ("r",), ("e",)),
    Call("reduce_sum", ("e",), ("loss",)),
)


@pytest.fixture
def policy(monkeypatch):
    """Plans from the second call on."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


def network():
    return compile_function(("x", "w", "b"), NETWORK, ("loss", "h", "x"))


def call(recorder, function, x, w, b):
    """Calls the function under a tape; returns results and gradients as bytes, and the tape's nodes without uids."""
    tape = Tape()
    recorder.context.open(tape)
    recorder.context.watch(tape, [x])
    results = function.run(recorder, [x, w, b])
    recorder.context.pause(tape)
    numbers = {}
    nodes = [
        (
            plan.bound.name,
            tuple([numbers.setdefault(uid, len(numbers)) for uid in inputs]),
            numbers.setdefault(output, len(numbers)),
            tuple([value.array.tobytes() for value in residuals]),
            where,
        )
        for plan, inputs, output, residuals, where in tape.nodes
    ]
    watched = list(tape.variables)
    gradients = gradient(recorder, GradientQuery(tape, [results[0]], [x, w, b], declarations=Declarations()))
    arrays = [value.array.tobytes() for value in (*results, *gradients)]
    return arrays, sorted([(name, *rest[2:]) for name, *rest in nodes]), watched


def test_a_recorded_call_is_that_step_by_step(policy, monkeypatch):
    recorder, function = executor(), network()
    x = recorder.constant(X.copy())
    w, b = (
        Variable(recorder.constant(W.copy()), trainable=True),
        Variable(recorder.constant(W[0].copy()), trainable=True),
    )
    runs = []
    record = RecordedPlan.record
    monkeypatch.setattr(RecordedPlan, "record", lambda *args, **kwargs: runs.append(1) or record(*args, **kwargs))
    for _ in range(4):
        planned = call(recorder, function, x, w, b)
        monkeypatch.setattr(POLICY, "enabled", False)
        assert planned == call(recorder, function, x, w, b)
        monkeypatch.setattr(POLICY, "enabled", True)
        recorder.assign(w, recorder.constant(W * np.float32(1.5)))
    assert len(runs) == 3  # all but the first


def test_another_set_of_followed_arguments_has_a_plan_of_its_own(policy):
    recorder, function = executor(), network()
    x, w, b = [recorder.constant(array.copy()) for array in (X, W, W[0])]
    for sources in ([x], [w], [x, b], [w, x]) * 3:
        tape = Tape()
        recorder.context.open(tape)
        recorder.context.watch(tape, sources)
        loss = function.run(recorder, [x, w, b])[0]
        recorder.context.pause(tape)
        query = GradientQuery(tape, [loss], [x, w, b], declarations=Declarations())
        gradients = gradient(recorder, query)
        assert [derivative is not None for derivative in gradients] == [value in sources for value in (x, w, b)]


def test_a_cancelled_call_leaves_nothing_on_the_tape(policy, monkeypatch):
    recorder, function = executor(), network()
    x, w, b = [recorder.constant(array.copy()) for array in (X, W, W[0])]
    tape = Tape(persistent=True)
    recorder.context.open(tape)
    recorder.context.watch(tape, [x])
    for _ in range(2):
        function.run(recorder, [x, w, b])
    length = tape.length

    def cancelled():
        raise CancelledError("stop")

    monkeypatch.setattr(recorder, "check_cancelled", cancelled)
    with pytest.raises(CancelledError):
        function.run(recorder, [x, w, b])
    assert tape.length == length
