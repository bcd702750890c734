"""Loops over the wire: how many requests they take, and that a command gives the same results as its iterations."""

import dis
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.tf.control_flow import purity
from teletape.tf.control_flow.purity import pure
from teletape_engine import commands

SEEN: list[Any] = []


def both(program: Any) -> tuple[Any, Any, int, Loopback]:
    """What a program gives in this process and over a loopback, the batches that the latter took, and the loopback."""
    use(LocalSession())
    here = program()
    loopback = Loopback()
    session = session_on(loopback)
    use(session)
    try:
        there = program()
        return here, there, len(loopback.batches), loopback
    finally:
        use(LocalSession())
        session.close()


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    yield
    use(LocalSession())


def numbers(result: Any) -> Any:
    return tf.nest.map_structure(lambda item: None if item is None else np.asarray(item).tolist(), result)


def test_a_thousand_counted_steps_are_one_request() -> None:
    def program() -> Any:
        x, w = tf.constant([1.0, 2.0]), tf.Variable(0.999)
        with tf.GradientTape() as tape:
            _, y = tf.while_loop(lambda i, y: i < 1000, lambda i, y: (i + 1, y * w), (0, x))
        return tape.gradient(y, w).numpy()

    here, there, batches, _ = both(program)
    assert here == there
    assert batches == 1


def test_a_thousand_steps_that_values_decide_are_one_request() -> None:
    def program() -> Any:
        (y,) = tf.while_loop(lambda y: y < 1000.0, lambda y: (y * 1.00693,), (tf.constant(1.0),))
        return y.numpy()

    here, there, batches, loopback = both(program)
    assert here == there
    assert batches == 1
    (sent,) = loopback.commands(commands.While)
    assert not sent.report_decisions, "nobody records: nobody needs to know how many iterations there were"


def test_under_a_tape_the_iterations_are_asked_for_once() -> None:
    def program() -> Any:
        w = tf.Variable(1.00693)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                (y,) = tf.while_loop(lambda y: y < 1000.0, lambda y: (y * w,), (tf.constant(1.0),))
            g = tape.gradient(y, w)
        return [y.numpy(), g.numpy(), outer.gradient(g, w).numpy()]

    here, there, batches, loopback = both(program)
    assert here == there
    assert batches == 3, "the loop's iterations, y with the first gradient, and the second"
    assert [command.report_decisions for command in loopback.commands(commands.While)] == [True]


@pytest.mark.parametrize("start", [0.5, 2000.0])
def test_a_loop_that_makes_no_iteration_has_no_gradient(start: float) -> None:
    def program() -> Any:
        x, w = tf.Variable(start), tf.Variable(3.0)
        with tf.GradientTape() as tape:
            (y,) = tf.while_loop(lambda y: y < 1000.0, lambda y: (y * w,), (x,))
        return numbers(tape.gradient(y, [x, w]))

    here, there, _, _ = both(program)
    assert here == there
    assert (here[1] is None) == (start == 2000.0)


def test_what_python_does_in_a_body_is_done_in_every_iteration() -> None:
    def program() -> Any:
        seen = []

        def body(y: Any) -> Any:
            seen.append(len(seen))
            return (y * 2.0,)

        (y,) = tf.while_loop(lambda y: y < 100.0, body, (tf.constant(1.0),))
        return [y.numpy(), seen]

    here, there, _, loopback = both(program)
    assert here == there == [128.0, list(range(7))]
    assert not loopback.commands(commands.While)


def test_a_body_that_cannot_be_a_function_runs_iteration_by_iteration() -> None:
    def reads(y: Any) -> Any:
        return (y * 2.0 if float(y) < 50.0 else y + 1000.0,)

    def grows(y: Any) -> Any:
        return (tf.concat([y, y], 0),)

    def program() -> Any:
        item = tf.while_loop(lambda y: y < 100.0, reads, (tf.constant(1.0),))
        two = tf.while_loop(lambda y: tf.reduce_sum(y) < 10.0, grows, (tf.constant([1.0]),))
        return numbers([item, two])

    here, there, _, _ = both(program)
    assert here == there


def test_a_python_float_stays_one_for_as_long_as_the_loop_runs() -> None:
    def program() -> Any:
        start = (0.1, tf.constant(0.0))
        return numbers(tf.while_loop(lambda s, y: y < 30.0, lambda s, y: (s * 1.1, y + s), start))

    here, there, _, _ = both(program)
    assert here == there


def test_a_choice_inside_stays_unconnected_where_it_is_not_taken() -> None:
    def program() -> Any:
        a, b = tf.Variable(1.5), tf.Variable(2.0)
        with tf.GradientTape() as tape:
            (y,) = tf.while_loop(
                lambda y: y < 20.0, lambda y: (tf.cond(y < 100.0, lambda: y * a, lambda: y * b),), (tf.constant(1.0),)
            )
        return numbers(tape.gradient(y, [a, b]))

    here, there, _, _ = both(program)
    assert here == there
    assert here[1] is None


def test_an_error_in_a_iteration_is_the_error_of_the_loop() -> None:
    def program() -> Any:
        x = tf.constant([1.0, 2.0, 3.0])
        i = tf.cast(tf.reduce_sum(x) - 6.0, tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.while_loop(lambda i: tf.gather(x, i) < 9.0, lambda i: (i + 1,), (i,))[0].numpy()
        return (x + 1.0).numpy().tolist()

    here, there, _, _ = both(program)
    assert here == there == [2.0, 3.0, 4.0]


def test_maps_and_scans_of_a_thousand_are_one_request() -> None:
    def program() -> Any:
        x, w = tf.Variable(np.linspace(0.0, 1.0, 1000).astype(np.float32)), tf.Variable(0.5)
        with tf.GradientTape() as tape:
            y = tf.scan(lambda a, e: a * w + e, x)
            z = tf.vectorized_map(lambda e: e * e * w, x)
            total = tf.reduce_sum(y) + tf.reduce_sum(z)
        return np.concatenate([item.numpy().reshape(-1) for item in tf.nest.flatten([tape.gradient(total, [x, w])])])

    here, there, batches, loopback = both(program)
    np.testing.assert_array_equal(here, there)
    assert batches == 1, "one read for both gradients"
    assert [command.vectorize for command in loopback.commands(commands.Scan)] == [False, True]


def test_a_body_of_many_ops_is_sent_once() -> None:
    def deep(e: Any) -> Any:
        for _ in range(30):
            e = tf.tanh(e * 1.5)
        return e

    def program() -> Any:
        x = tf.Variable(np.linspace(-1.0, 1.0, 500).astype(np.float32))
        with tf.GradientTape() as tape:
            y = tf.map_fn(deep, x)
            last = tf.foldl(lambda a, e: deep(a + e), x)
        return tape.gradient([y, last], x).numpy()

    here, there, batches, loopback = both(program)
    np.testing.assert_array_equal(here, there)
    assert batches == 1
    assert sum(len(batch.commands) for batch in loopback.batches) < 40


def test_what_python_does_with_an_element_is_done_with_each() -> None:
    def program() -> Any:
        seen = []

        def noted(e: Any) -> Any:
            seen.append(len(seen))
            return e * float(len(seen))

        return [tf.map_fn(noted, tf.range(20.0)).numpy().tolist(), seen]

    here, there, _, loopback = both(program)
    assert here == there
    assert not loopback.commands(commands.Scan)


def test_a_function_with_a_loop_is_one_command() -> None:
    def program() -> Any:
        @tf.function
        def grow(x: Any) -> Any:
            return tf.while_loop(lambda y: tf.reduce_sum(y) < 1e6, lambda y: (y * 1.01,), (x,))[0]

        x = tf.constant([1.0, 2.0])
        return [grow(x).numpy().tolist(), grow(x * 2.0).numpy().tolist()]

    here, there, batches, loopback = both(program)
    assert here == there
    assert batches == 2
    assert len(loopback.commands(commands.CallFunction)) == 2


def test_counting_is_known_on_this_side(remote: RemoteSession, loopback: Loopback) -> None:
    i, j = tf.constant(3), tf.constant([1, 2])
    assert int(i + 4) == 7
    assert bool(tf.reduce_all(tf.equal(j * 2, [2, 4])))
    assert (i // 2).numpy() == 1
    assert not loopback.batches
    assert float(tf.constant(2.0) * 2.0) == 4.0, "what a device may round its own way is asked for"
    assert len(loopback.batches) == 1


def _helper(y: Any) -> Any:
    return tf.tanh(y) * 2.0


def _acting(y: Any) -> Any:
    SEEN.append(y)
    return y


V = tf.Variable(1.0)
LAYERS = [(V, 2.0), {"w": V}]


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (lambda y: y * 2.0, True),
        (lambda i, y: (i + 1, tf.linalg.matmul(y, y)), True),
        (lambda y: _helper(y) + V, True),
        (lambda y: y * LAYERS[0][0] + LAYERS[1]["w"], True),
        (lambda y: y * [SEEN, LAYERS][1][0][1], True),
        (lambda y: y * tf.constant(np.pi), True),
        (lambda y: y * np.ones(2), False),
        (lambda y: tf.stack([z * 2.0 for z in (y, y)]), True),
        (lambda y: {"a": y.shape[0], "b": max(1, 2)}, True),
        (lambda y: _acting(y), False),
        (lambda y: SEEN.append(y), False),
        (lambda y: print(y), False),  # noqa: T201  # it is never called
        (lambda y: V.assign(y), False),
        (lambda y: y.numpy(), False),
        (lambda y: tf.Variable(y), False),
        (lambda y: unheard_of(y), False),  # type: ignore[name-defined]  # noqa: F821
        (np.tanh, False),
    ],
)
def test_what_is_seen_to_have_no_effect(function: Any, seen: bool) -> None:
    assert pure(function) is seen


def test_what_stores_outside_itself_is_seen() -> None:
    count, things = 0, {}

    def counts(y: Any) -> Any:
        nonlocal count
        count += 1
        return y

    def fills(y: Any) -> Any:
        things["y"] = y
        return y

    def own(y: Any) -> Any:
        z = y * 2.0
        return (lambda: z + y)()

    def grows(y: Any, results: list[Any] = []) -> Any:  # noqa: B006  # that is the point
        results += [y]
        return y

    def other_name(y: Any) -> Any:
        same = SEEN
        same += [y]
        return y

    steps = iter(range(3))

    def uses_up(y: Any) -> Any:
        for step in steps:
            y = y * step
        return y

    assert not pure(grows)
    assert not pure(other_name)
    assert not pure(uses_up)
    assert not pure(counts)
    assert not pure(fills)
    assert pure(own)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda y: tf.sin(y) + tf.reduce_sum(y), True),
        (lambda y: tf.cond(y > 0.0, lambda: y, lambda: -y), True),
        (lambda y: y + tf.random.normal([]), False),
        (lambda y: tf.nn.dropout(y, 0.5), False),
        (lambda y: tf.nn.moments(y, [0])[0], True),
        (lambda y: y + tf.debugging.check_numerics(y, "bad"), False),
        (lambda y: tf.print(y), False),
    ],
)
def test_functions_of_the_sdk_only_compute_if_the_list_says_so(function: Any, expected: bool) -> None:
    assert pure(function) is expected


def test_an_unknown_instruction_or_python_is_impure(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(y: Any) -> Any:
        return y * 2.0

    version = sys.version_info[:2]
    assert pure(doubled)
    monkeypatch.setitem(purity._ALLOWED, version, purity._ALLOWED[version] - {"BINARY_OP"})
    assert not pure(doubled)
    monkeypatch.delitem(purity._ALLOWED, version)
    assert not pure(doubled)


def test_what_is_listed_as_pure_exists() -> None:
    """A name that is not there would turn a loop of one request into one with a request for each iteration."""
    for name in purity._MODULES:
        importlib.import_module(name)
    for name in purity._FUNCTIONS:
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(module), function), name


def test_every_allowed_instruction_exists() -> None:
    assert purity._ALLOWED[sys.version_info[:2]] <= dis.opmap.keys() | {"LOAD_METHOD"}
