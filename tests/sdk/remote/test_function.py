"""tf.function in the process and on a server: one command a call, what is bound anew, and what cannot be traced."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.functions import function as function_module
from teletape.core.functions.trace import NotTraceable, trace
from teletape.core.program import logs
from teletape.core.sessions import functions
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine import commands
from teletape_engine.functions.function import Function
from teletape_engine.spec import Spec


@pytest.fixture(params=["inside", "on a server"])
def here(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The program's session, of both kinds; the loopback of the second."""
    if request.param == "inside":
        yield use(LocalSession())
        return
    session = session_on(Loopback())
    use(session)
    yield session
    use(LocalSession())
    session.close()


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged as a warning."""
    results: list[str] = []
    monkeypatch.setattr(logs.get_logger(), "warning", lambda text, *args: results.append(text % args if args else text))
    return results


def step_of(w: tf.Variable, b: tf.Variable) -> Any:
    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(x, w) + b - y) ** 2)
        for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    return step


X, Y = [[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]]


def test_a_training_step_is_one_command(loopback: Loopback, remote: Any) -> None:
    step = step_of(tf.Variable([[1.0], [2.0]]), tf.Variable([0.0]))
    x, y = tf.constant(X), tf.constant(Y)
    losses = [step(x, y) for _ in range(20)]
    requests = remote.requests
    assert float(losses[-1]) < float(losses[0])
    assert remote.requests == requests + 1  # the first loss comes with the last one
    assert len(loopback.commands(commands.DefineFunction)) == 1
    assert len(loopback.commands(commands.CallFunction)) == 20
    assert not loopback.commands(commands.Call)
    assert not loopback.commands(commands.Gradient)
    (result,) = loopback.commands(commands.DefineFunction)
    assert all(getattr(step, "where", None) is None for step in result.steps)  # lines never leave the program


def test_it_trains_as_the_ops_one_by_one_do(here: Any) -> None:
    results = []
    for eagerly in (False, True):
        tf.config.run_functions_eagerly(eagerly)
        w, b = tf.Variable([[1.0], [2.0]]), tf.Variable([0.0])
        step = step_of(w, b)
        results.append([[float(step(tf.constant(X), tf.constant(Y))) for _ in range(5)], w.numpy(), b.numpy()])
    tf.config.run_functions_eagerly(False)
    for item, other in zip(*results, strict=True):
        np.testing.assert_allclose(item, other, rtol=1e-6)


def test_a_function_is_released_with_its_function(loopback: Loopback, remote: Any) -> None:
    @tf.function
    def doubled(x: Any) -> Any:
        return x * 2.0

    assert float(doubled(tf.constant(1.0))) == 2.0
    (result,) = loopback.commands(commands.DefineFunction)
    del doubled
    tf.sync()
    assert any(result.id in batch.releases for batch in loopback.batches)
    assert [entry["kind"] for entry in loopback.session.listing("function")] == []


def test_what_is_taken_from_outside_is_bound_at_each_call(here: Any) -> None:
    v, k, settings = tf.Variable(1.0), tf.constant([10.0]), {"by": 2.0}

    @tf.function
    def f(x: Any) -> Any:
        return x * v + k * settings["by"]

    first = f(tf.constant(1.0)).numpy().tolist()
    v.assign(5.0)
    settings["by"] = 100.0  # a Python number is part of the trace
    assert (first, f(tf.constant(1.0)).numpy().tolist()) == ([21.0], [25.0])


def test_a_body_that_reads_runs_op_by_op_and_says_so_once(here: Any, warnings: list[str]) -> None:
    calls = []

    @tf.function
    def steps(x: Any) -> Any:
        calls.append(1)
        while x.numpy() < 10.0:
            x = x * 2.0
        return x

    assert [float(steps(tf.constant(item))) for item in (3.0, 4.0, 20.0)] == [12.0, 16.0, 20.0]
    (text,) = warnings
    assert "test_a_body_that_reads_runs_op_by_op_and_says_so_once.<locals>.steps" in text
    assert "it reads a value at tests/sdk/remote/test_function.py:" in text
    assert "tf.while_loop" in text
    assert len(calls) == 4  # once traced in vain


def test_a_body_that_reads_an_integer_argument_is_traced_for_each_value(here: Any, warnings: list[str]) -> None:
    calls = []

    @tf.function
    def parts(x: Any, n: Any) -> Any:
        calls.append(1)
        return [x * i for i in range(1, 1 + n.numpy())], x[:n], tf.one_hot([0], n)

    for n in (2, 3, 2, 3):
        multiples, first, marks = parts(tf.range(4), tf.constant(n))
        assert [multiple.numpy()[1] for multiple in multiples] == list(range(1, n + 1))
        assert first.numpy().tolist() == list(range(n))
        assert marks.numpy().tolist() == [[1.0] + [0.0] * (n - 1)]
    assert len(calls) == 3  # once traced in vain
    assert not warnings


def test_gradients_of_a_body_that_reads(here: Any, warnings: list[str]) -> None:
    @tf.function
    def f(x: Any) -> Any:
        return x * x if float(x.numpy()) > 0 else -x

    for value, expected in ((3.0, 6.0), (-3.0, -1.0)):
        x = tf.Variable(value)
        with tf.GradientTape() as tape:
            y = f(x)
        assert float(tape.gradient(y, x)) == expected


def test_other_things_that_cannot_be_traced(here: Any, warnings: list[str]) -> None:
    outer = tf.GradientTape(persistent=True)

    @tf.function
    def stops_a_tape_from_outside(x: Any) -> Any:
        with outer.stop_recording():  # while it is traced, which no call sees
            outer.watch(x)
            y = x * 2.0
        return x * y

    @tf.function
    def asks_a_tape_from_outside(x: Any) -> Any:
        return outer.gradient(x * x, x)

    @tf.function
    def with_a_shape_of_values(x: Any) -> Any:
        return tf.reduce_sum(tf.boolean_mask(x, x > 1.0))

    x = tf.constant([1.0, 2.0, 3.0])
    with outer:
        outer.watch(x)
        y = stops_a_tape_from_outside(x)
        assert asks_a_tape_from_outside(x).numpy().tolist() == [2.0, 4.0, 6.0]
    assert outer.gradient(y, x).numpy().tolist() == [4.0, 8.0, 12.0]
    assert float(with_a_shape_of_values(x)) == 5.0
    texts = [text for text in warnings if not text.startswith("Calling GradientTape.gradient")]
    assert len(texts) == 2
    assert "asks a tape that was opened outside the function" in texts[0]
    assert "whose result's shape depends on values" in texts[1]


def test_variables_made_of_arguments_are_made_by_a_first_call_op_by_op(here: Any, warnings: list[str]) -> None:
    results: list[tf.Variable] = []

    @tf.function
    def running_sum(x: Any) -> Any:
        if not results:
            results.append(tf.Variable(tf.zeros_like(x) + x * 0.0))
        return results[0].assign_add(x)

    assert [float(running_sum(tf.constant(item))) for item in (1.0, 2.0, 3.0)] == [1.0, 3.0, 6.0]
    assert warnings == []
    assert running_sum.experimental_get_tracing_count() == 2


def test_an_error_while_it_is_traced_leaves_nothing(here: Any) -> None:
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x: Any) -> Any:
        v.assign_add(x)
        return v + tf.constant([1.0, 2.0, 3.0])

    for _ in range(2):
        with pytest.raises(ValueError, match=r"Incompatible shapes: \[2\] vs. \[3\]") as caught:
            f(tf.constant([1.0, 1.0]))
        assert caught.type is ValueError  # as where TensorFlow builds a graph
    assert v.numpy().tolist() == [1.0, 2.0]
    assert tf.executing_eagerly()
    with pytest.raises(TypeError, match="was expected to be a float tensor but is a int32 tensor"):
        tf.function(lambda x, y: x + y)(tf.constant(1.0), tf.constant(1))


def test_an_error_when_it_runs_names_the_line_in_the_body(loopback: Loopback, remote: Any) -> None:
    @tf.function
    def f(x: Any, y: Any) -> Any:
        z = x + 1
        return z // (y - 1)

    result = f(tf.constant([1, 2]), tf.constant([2, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero") as caught:
        result.numpy()
    assert "test_function.py" in str(caught.value)


def test_values_that_are_known_are_refused_at_the_call(loopback: Loopback, remote: Any) -> None:
    @tf.function
    def divide(x: Any, y: Any) -> Any:
        return x // y

    x = tf.constant(np.arange(1000, dtype=np.int32))
    assert divide(x, tf.constant(2))[7].numpy() == 3
    requests = remote.requests
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        divide(x, tf.constant(0))
    assert remote.requests == requests
    numbers = tf.constant(np.arange(1000, dtype=np.float32))
    assert divide(numbers, tf.constant(0.0))[7].numpy() == np.inf


def test_an_assertion_is_raised_at_the_call(here: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        tf.debugging.assert_positive(x, message="x must be")
        return tf.debugging.check_numerics(tf.math.log(x), "log")

    assert float(f(tf.constant(1.0))) == 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[x must be\] \[Condition x > 0 did not hold"):
        f(tf.constant(-1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="log : Tensor had Inf values"):
        f(tf.constant(np.inf))


def _in_place(x: Any) -> Any:
    return tf.debugging.check_numerics(x / 0.0, "unused")


def _in_a_loop(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, _in_place(y)), (tf.constant(0), x))


ASSERTING = {
    "in place": _in_place,
    "in a function": tf.function(_in_place),
    "in a branch": lambda x: tf.cond(x > 0, lambda: _in_place(x), lambda: x),
    "in a loop": _in_a_loop,
    "in a map": lambda x: tf.map_fn(_in_place, tf.stack([x, x])),
}


@pytest.mark.parametrize("where", ASSERTING)
def test_an_assertion_is_raised_though_nothing_uses_its_result(here: Any, where: str) -> None:
    @tf.function
    def f(x: Any) -> Any:
        ASSERTING[where](x)
        return x + 1

    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="unused : Tensor had Inf values"):
            f(tf.constant(1.0))


def test_it_prints_at_each_call(here: Any, capsys: pytest.CaptureFixture[str]) -> None:
    v = tf.Variable(1.0)

    @tf.function
    def f(x: Any) -> Any:
        tf.print("before", v, {"x": x})
        v.assign_add(x)
        tf.print("after", v)
        return x

    f(tf.constant(2.0))
    f(tf.constant(3.0))
    assert capsys.readouterr().err == "before 1 {'x': 2}\nafter 3\nbefore 3 {'x': 3}\nafter 6\n"


def test_a_loop_in_a_function_is_asked_what_it_decided_only_under_a_tape(loopback: Loopback, remote: Any) -> None:
    @tf.function
    def f(x: Any, n: Any) -> Any:
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, x))[1]

    x = tf.Variable(2.0)
    batches = remote.batches
    values = [f(x, tf.constant(n)) for n in (1, 3)]
    assert remote.batches == batches
    with tf.GradientTape() as tape:
        y = f(x, tf.constant(2))
    assert remote.batches == batches + 1
    assert [float(value) for value in (*values, y, tape.gradient(y, x))] == [4.0, 16.0, 8.0, 12.0]


def test_functions_of_another_session_are_traced_anew(here: Any) -> None:
    v = tf.Variable(2.0)
    f = tf.function(lambda x: x * 2.0)
    g = tf.function(lambda x: x * v)
    assert (float(f(tf.constant(1.0))), float(g(tf.constant(1.0)))) == (2.0, 2.0)
    use(LocalSession())
    assert float(f(tf.constant(3.0))) == 6.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another session than the current one"):
        g(tf.constant(1.0))
    use(here)
    assert float(f(tf.constant(4.0))) == 8.0


def test_sessions_in_turn_keep_their_traces(here: Any) -> None:
    traces: list[int] = []
    weights = {}
    for session in (here, LocalSession()):
        use(session)
        weights[session] = tf.Variable(2.0)

    @tf.function
    def scaled(x: Any) -> Any:
        traces.append(1)
        return x * weights[tf.session().home]

    for step in range(5):
        for session in weights:
            use(session)
            assert float(scaled(tf.constant(float(step)))) == 2.0 * step
    assert len(traces) == 2
    assert scaled.experimental_get_tracing_count() == 1  # the second session's has a signature that is known


def test_a_session_that_nothing_uses_any_more_ends_with_its_traces() -> None:
    loopback = Loopback()
    session = use(session_on(loopback))
    factor = tf.constant(3.0)
    taken = {"": factor}
    scaled = tf.function(lambda x: x * taken[""])
    assert float(scaled(tf.constant(3.0))) == 9.0
    gone = weakref.ref(session)
    use(LocalSession())
    del session, factor
    taken.clear()
    gc.collect()
    assert gone() is None


def test_a_closed_session_says_so(loopback: Loopback) -> None:
    session = use(session_on(loopback))
    f = tf.function(lambda x: x * 2.0)
    x = tf.constant(1.0)
    f(x)
    session.close()
    try:
        with pytest.raises(tf.errors.SessionEndedError, match=r"this session has ended.*tf.connect"):
            f(x)
    finally:
        use(LocalSession())


def test_an_instance_is_not_kept_alive_by_what_it_traced(here: Any) -> None:
    import gc
    import weakref

    class Scale(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = tf.Variable(2.0)

        @tf.function
        def __call__(self, x: Any) -> Any:
            return x * self.by

    scale = Scale()
    assert float(scale(tf.constant(3.0))) == 6.0
    gone = weakref.ref(scale)
    del scale
    gc.collect()
    assert gone() is None


def test_threads_trace_on_their_own(here: Any) -> None:
    import threading

    f = tf.function(lambda x: tf.reduce_sum(x * x))
    results: list[float] = []

    def work(n: int) -> None:
        for _ in range(5):
            results.append(float(f(tf.ones([n]))))

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted([1.0, 2.0, 3.0] * 5)


def test_trace_gives_data(here: Any) -> None:
    w = tf.Variable(2.0)
    traced = trace(lambda x: {"y": x * w, "n": None}, [Spec.of((2,), np.dtype(np.float32))])
    assert [call.op for call in traced.function.commands] == ["mul"]  # type: ignore[attr-defined]  # calls of ops
    assert traced.specs == (Spec.of((2,), np.dtype(np.float32)),)
    result = traced.call([tf.constant([1.0, 2.0]).recorded])
    assert (result["y"].numpy().tolist(), result["n"]) == ([2.0, 4.0], None)


def test_not_traceable_is_no_exception_that_programs_catch() -> None:
    def body(x: Any) -> Any:
        try:
            return float(x)
        except Exception:
            return 0.0

    with pytest.raises(NotTraceable) as caught:
        trace(body, [Spec.of((), np.dtype(np.float32))])
    assert "test_function.py" in caught.value.where


def test_what_leads_nowhere_is_no_step() -> None:
    def body(x: Any) -> Any:
        tf.exp(x) * 2.0
        return tf.constant(2.0) * 3.0 + x

    traced = trace(body, [Spec.of((), np.dtype(np.float32))]).function
    assert [call.op for call in traced.commands] == ["add"]  # type: ignore[attr-defined]  # calls of ops


def test_too_many_steps_are_not_traced(here: Any, warnings: list[str]) -> None:
    @tf.function
    def f(x: Any) -> Any:
        for _ in range(17_000):
            x = x + 1.0
        return x

    assert float(f(tf.constant(0.0))) == 17_000.0
    assert "has more than 16,384 steps" in warnings[0]


def test_functions_used_long_ago_do_not_stay_on_the_server(
    loopback: Loopback, remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "_MOST", 4)

    @tf.function
    def double(x: Any) -> Any:
        return x + x

    for n in [*range(1, 11), 1, 10]:
        assert double(tf.ones(n)).numpy().tolist() == [2.0] * n
    tf.sync()
    definitions = len(loopback.commands(commands.DefineFunction))
    assert definitions == 11  # one for each shape, and the first shape's again
    assert sum(isinstance(entry, Function) for entry in loopback.entries.values()) <= 4


def test_a_function_stays_traced_for_a_bounded_number_of_signatures(monkeypatch: Any, here: Any, warnings: Any) -> None:
    monkeypatch.setattr(function_module, "MOST_TRACED", 3)
    traced: list[float] = []
    programs: weakref.WeakSet[Any] = weakref.WeakSet()

    @tf.function
    def scaled(x: Any, factor: float) -> Any:
        traced.append(factor)
        return x * factor

    x = tf.constant([1.0, 2.0])
    for factor in [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 1.0]:
        assert scaled(x, factor).numpy().tolist() == [factor, 2 * factor]
        programs.update(program for program in tf.session().traces[scaled].by_key.values() if program is not None)
    assert traced == [1.0, 2.0, 3.0, 4.0, 5.0, 1.0]
    gc.collect()
    assert len(programs) == len(tf.session().traces[scaled].by_key) == 3
