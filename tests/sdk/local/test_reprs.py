"""What objects with a state show of it in a debugger and in messages."""

import re
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import Batch, Constant
from teletape_engine.functions.compile import compile_function
from teletape_engine.session.session import Session


@pytest.fixture(params=["local", "remote"], autouse=True)
def here(request: pytest.FixtureRequest) -> Any:
    session = LocalSession() if request.param == "local" else session_on(Loopback())
    yield use(session)
    use(LocalSession())
    session.close()


def test_tapes() -> None:
    x, v = tf.constant([1.0, 2.0]), tf.Variable(3.0)
    tape = tf.GradientTape(persistent=True)
    assert repr(tape) == "<GradientTape persistent, not entered>"
    with tape:
        tape.watch(x)
        y = tf.tanh(x) * v
        assert repr(tape) == "<GradientTape persistent, recording, 3 ops, watching 2>"  # reading v is one
    tape.gradient(y, x)
    assert repr(tape) == "<GradientTape persistent, paused, 3 ops, watching 2>"
    assert repr(tape._tape) == "<Tape persistent, 3 ops, watching 2>"
    with tf.GradientTape() as once:
        once.watch(x)
        y = tf.tanh(x)
    assert repr(once) == "<GradientTape paused, 1 ops, watching 1>"
    once.gradient(y, x)
    assert repr(once) == "<GradientTape has answered, 1 ops, watching 1>"


def test_accumulators() -> None:
    x = tf.constant([1.0, 2.0])
    accumulator = tf.autodiff.ForwardAccumulator(x, tf.ones(2))
    assert repr(accumulator) == "<ForwardAccumulator not entered, 1 tangents>"
    with accumulator:
        y = x * x
        assert repr(accumulator) == "<ForwardAccumulator recording, 2 tangents>"
    assert repr(accumulator) == "<ForwardAccumulator paused, 2 tangents>"
    assert repr(accumulator._accumulator) == "<Accumulator, 2 tangents>"
    del y


class Model(tf.Module):
    @tf.function
    def step(self, x: Any, rate: float = 0.1) -> Any:
        return x * rate


def test_functions() -> None:
    @tf.function
    def double(x: Any) -> Any:
        return x * 2.0

    double(tf.constant(1.0))
    name = "test_functions.<locals>.double"
    assert repr(double) == f"<tf.function {name}(x), traced 1 times>"
    concrete = double.get_concrete_function(tf.constant([1.0]))
    spec = "TensorSpec(shape=(1,), dtype=tf.float32, name=None)"
    assert repr(concrete) == f"<ConcreteFunction (x: {spec}) -> {spec}>"
    step = repr(Model().step)
    assert step.startswith("<tf.function ")
    assert step.endswith(", traced 0 times, bound to a Model>")


def test_sessions(here: Any) -> None:
    float(tf.constant(1.0) + 1.0)
    if isinstance(here, LocalSession):
        assert repr(here) == "<LocalSession on cpu>"
    else:
        assert re.fullmatch(r"<RemoteSession \S+ at http://\S+, cpu, \d+ requests>", repr(here))
        here.close()
        assert ", ended: " in repr(here)
    traced: list[str] = []
    use(LocalSession())
    tf.function(lambda x: (x * 2.0, traced.append(repr(current())))[0])(tf.constant(1.0))
    assert traced == ["<TracingSession, 1 steps so far, for <LocalSession on cpu>>"]


def test_engine() -> None:
    session = Session()
    session.execute(Batch((Constant("x", np.ones(2)),)))
    assert repr(session) == "<Session on cpu, 1 ids>"
    assert repr(compile_function(("a", "b"), (), ("b",))) == "<Function (a, b) -> (b), 0 steps>"
