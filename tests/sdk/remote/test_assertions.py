"""Assertions in traced functions: each runs at every call, wherever it is, also if nothing uses its result."""

from collections.abc import Callable
from typing import Any

import pytest

import teletape as tf


@pytest.fixture(params=["local", "remote"])
def here(request: pytest.FixtureRequest) -> Any:
    """In this process, and on a server."""
    return request.getfixturevalue("remote") if request.param == "remote" else None


GOOD, BAD = [1.0, 2.0], [1.0, -2.0]


def positive(x: Any) -> Any:
    tf.debugging.assert_positive(x)
    return x


@tf.custom_gradient
def checked_backwards(x: Any) -> Any:
    return tf.identity(x), lambda upstream: positive(x) * upstream


@tf.custom_gradient
def checked_forwards(x: Any) -> Any:
    return tf.identity(positive(x)), lambda upstream: upstream


def its_gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = checked_backwards(x)
    return tape.gradient(y, x)


def after_an_assignment(x: Any) -> None:
    VARIABLES[0].assign(x)
    positive(VARIABLES[0])


def inside_a_tape(x: Any) -> None:
    with tf.GradientTape() as tape:
        tape.watch(x)
        tf.function(positive)(x)


PLACES: dict[str, Callable[[Any], Any]] = {
    "itself": positive,
    "a function": tf.function(positive),
    "a function in a function": tf.function(tf.function(positive)),
    "a branch": lambda x: tf.cond(tf.reduce_sum(x) < 9.0, lambda: positive(x), lambda: x),
    "a switch": lambda x: tf.switch_case(tf.cast(x[0] * 0.0, tf.int32), [lambda: positive(x), lambda: x]),
    "a case": lambda x: tf.case([(x[0] > 0.0, lambda: positive(x))], default=lambda: x),
    "a loop's body": lambda x: tf.while_loop(lambda i: i < 3, lambda i: (i + int(positive(x).shape[0]),), [0]),
    "a loop's condition": lambda x: tf.while_loop(lambda i: i < len(positive(x)), lambda i: (i + 1,), [0]),
    "a map": lambda x: tf.map_fn(positive, x),
    "a map of all elements": lambda x: tf.vectorized_map(positive, x),
    "a fold": lambda x: tf.foldl(lambda total, each: total + 0.0 * positive(each), x),
    "a scan": lambda x: tf.scan(lambda total, each: total + 0.0 * positive(each), x, 0.0),
    "a custom gradient's call": checked_forwards,
    "a custom gradient": its_gradient,
    "a recomputed function": lambda x: tf.recompute_grad(positive)(x),
    "an assignment's function": after_an_assignment,
    "a tape's block": inside_a_tape,
    "an op's check": lambda x: tf.debugging.check_numerics(tf.math.log(x), "bad"),
    "a condition of its own": lambda x: tf.debugging.Assert(tf.reduce_all(x > 0), [x]),
}
VARIABLES: list[Any] = []

AROUND: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "alone": lambda f, x: f(x),
    "a tape": lambda f, x: under_tape(f, x),
    "an accumulator": lambda f, x: under_accumulator(f, x),
}


def under_tape(f: Callable[[Any], Any], x: Any) -> None:
    with tf.GradientTape() as tape:
        tape.watch(x)
        f(x)


def under_accumulator(f: Callable[[Any], Any], x: Any) -> None:
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)):
        f(x)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("place", PLACES)
def test_every_call_asserts(here: Any, place: str, around: str) -> None:
    VARIABLES[:] = [tf.Variable(GOOD)]

    @tf.function
    def nothing(x: Any) -> None:
        PLACES[place](x)

    @tf.function
    def something_else(x: Any) -> Any:
        PLACES[place](x)
        return x + 1.0

    for function in (nothing, something_else):
        for numbers in (GOOD, BAD, GOOD, BAD):
            x = tf.constant(numbers)
            if numbers is GOOD:
                AROUND[around](function, x)
                continue
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"x > 0 did not hold|bad : Tensor|assertion"):
                AROUND[around](function, x)


@pytest.mark.parametrize("question", ["gradient", "jacobian"])
def test_a_traced_gradient_asserts_when_a_tape_outside_asks(here: Any, question: str) -> None:
    function = tf.function(lambda x: checked_backwards(x) * 2.0)
    for numbers in (GOOD, BAD, GOOD):
        x = tf.constant(numbers)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        derivative = getattr(tape, question)
        if numbers is GOOD:
            assert derivative(y, x) is not None
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="x > 0 did not hold"):
                derivative(y, x).numpy()


def test_branches_and_elements_that_do_not_run_do_not_assert(here: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        tf.cond(tf.reduce_sum(x) > 9.0, lambda: positive(x), lambda: x)
        tf.while_loop(lambda i: i < 0, lambda i: (i + int(positive(x).shape[0]),), [0])
        return tf.map_fn(positive, tf.gather(x, tf.constant([], tf.int32)))

    assert f(tf.constant(BAD)).shape == (0,)
