"""A variable of Keras wherever TensorFlow takes one: as the `tf.Variable` that it holds."""

from typing import Any

import numpy as np
import pytest

import teletape as tf


@pytest.fixture
def variable(connected: Any) -> Any:
    return tf.keras.Variable([1.0, 2.0], name="v")


def values(structure: Any) -> Any:
    return tf.nest.map_structure(lambda leaf: np.asarray(leaf).tolist(), structure)


def test_it_is_a_tensor_and_no_variable_of_tensorflow(variable: Any) -> None:
    assert (tf.is_tensor(variable), isinstance(variable, tf.Variable), isinstance(variable, tf.Tensor)) == (
        True,
        False,
        False,
    )
    assert isinstance(variable.value, tf.Variable)
    assert (variable.shape, variable.dtype, variable.value.name) == ([2], "float32", "v:0")
    with pytest.raises(TypeError, match="unhashable"):
        hash(variable)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda v: tf.convert_to_tensor(v), [1.0, 2.0]),
        (lambda v: tf.constant(v), [1.0, 2.0]),
        (lambda v: tf.Variable(v), [1.0, 2.0]),
        (lambda v: tf.identity(v), [1.0, 2.0]),
        (lambda v: v + 1, [2.0, 3.0]),
        (lambda v: tf.ones(2) + v, [2.0, 3.0]),
        (lambda v: 1 - v, [0.0, -1.0]),
        (lambda v: v[1], 2.0),
        (lambda v: tf.tensordot(v, v, 1), 5.0),
        (lambda v: tf.where(v > 1.5, v, 0.0), [0.0, 2.0]),
        (lambda v: tf.cast(v, tf.float16), [1.0, 2.0]),
        (lambda v: tf.shape(v), [2]),
        (lambda v: tf.map_fn(lambda x: x * 2, v), [2.0, 4.0]),
        (lambda v: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, v))[1], [8.0, 16.0]),
        (lambda v: tf.recompute_grad(lambda x: x * x)(v), [1.0, 4.0]),
        (lambda v: tf.Variable([0.0, 0.0]).assign(v), [1.0, 2.0]),
        (lambda v: tf.numpy_function(lambda x: x * 2, [v], tf.float32), [2.0, 4.0]),
        (lambda v: tf.function(lambda x: x * 2.0)(v), [2.0, 4.0]),
        (lambda v: tf.divide(v, 2), [0.5, 1.0]),
    ],
)
def test_ops_take_it(variable: Any, operation: Any, expected: Any) -> None:
    assert values(operation(variable)) == expected


def test_another_dtype_is_refused_as_for_a_variable(variable: Any) -> None:
    with pytest.raises(ValueError, match="Incompatible type conversion requested to type float64"):
        tf.convert_to_tensor(variable, tf.float64)


def test_a_tape_takes_it_as_a_source(variable: Any) -> None:
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(variable * variable * variable)
    assert values(tape.gradient(y, variable)) == [3.0, 12.0]
    assert values(tape.gradient(y, {"a": [variable]})) == {"a": [[3.0, 12.0]]}
    assert values(tape.jacobian(y, variable)) == [3.0, 12.0]
    assert tape.watched_variables() == (variable.value,) or tape.watched_variables()[0].name == "v:0"
    assert tape.gradient(tf.constant(1.0), variable) is None


def test_a_tape_watches_it(variable: Any) -> None:
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(variable)
        y = variable * variable
    assert values(tape.gradient(y, variable)) == [2.0, 4.0]


def test_forward_mode_follows_it(variable: Any) -> None:
    with tf.autodiff.ForwardAccumulator(variable, tf.constant([1.0, 10.0])) as accumulator:
        y = variable * variable
    assert values(accumulator.jvp(y)) == [2.0, 40.0]


def test_a_function_assigns_to_it_at_each_call(variable: Any) -> None:
    @tf.function
    def step(x: Any) -> Any:
        variable.assign_add(x)
        return variable * 2.0

    assert values([step(tf.ones(2)), step(tf.ones(2)), variable]) == [[4.0, 6.0], [6.0, 8.0], [3.0, 4.0]]
    assert step.experimental_get_tracing_count() == 1


def test_a_function_gets_the_very_variable_as_an_argument(variable: Any) -> None:
    @tf.function
    def step(target: Any) -> Any:
        target.assign(target + 1.0)
        return tf.reduce_sum(target)

    other = tf.keras.Variable([5.0, 5.0])
    assert values([step(variable), step(other), step(variable)]) == [5.0, 12.0, 7.0]


def test_modules_do_not_look_into_it(variable: Any) -> None:
    class Owner(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.variable, self.own = variable, tf.Variable(1.0)

    assert [each.name for each in Owner().variables] == ["Variable:0"]


def test_programs_set_attributes_on_tensors(connected: Any) -> None:
    x = tf.constant([1.0])
    x.note = 3
    assert x.note == 3
