"""TensorFlow's public functions in the SDK: signatures, conversions of arguments, refusals and checks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import teletape as tf


def test_signatures_are_tensorflows() -> None:
    assert list(inspect.signature(tf.reduce_sum).parameters) == ["input_tensor", "axis", "keepdims", "name"]
    assert tf.reduce_sum(input_tensor=[[1.0, 2.0]], axis=1, keepdims=True, name="x").numpy().tolist() == [[3.0]]
    assert tf.math.tanh.__name__ == "tanh"


@pytest.mark.parametrize("call", [lambda: tf.exp(), lambda: tf.exp(1.0, nope=2), lambda: tf.exp(1.0, "name", 3)])
def test_wrong_arguments_are_type_errors_of_the_function(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^exp\(\) (missing|got|takes) "):
        call()


@pytest.mark.parametrize("axis", [1, [1], (1,), np.int64(1), np.array([1])])
def test_axes_of_every_kind(axis: Any) -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert tf.reduce_sum(x, axis).numpy().tolist() == [3.0, 7.0]
    assert tf.reduce_sum(x, tf.constant(1)).numpy().tolist() == [3.0, 7.0]
    with pytest.raises(TypeError, match=r"Cannot convert 1.0 to EagerTensor of dtype int32"):
        tf.reduce_sum(x, 1.0)


def test_stack_agrees_on_one_dtype() -> None:
    assert tf.stack([1, 2.5]).numpy().tolist() == [1.0, 2.5]
    assert tf.stack([[1], [2.5]], axis=1).numpy().tolist() == [[1.0, 2.5]]
    assert tf.stack([2, tf.constant(1.0)]).dtype == tf.float32


def test_add_n() -> None:
    assert tf.add_n([1.0, tf.Variable(2.0), tf.constant(3.0)]).numpy() == 6.0
    with pytest.raises(ValueError, match="at least one Tensor/IndexedSlices"):
        tf.add_n([])
    with pytest.raises(tf.errors.InvalidArgumentError, match="same size and shape"):
        tf.add_n([tf.ones([1]), tf.ones([2])])


def test_complex_parts_of_real_numbers() -> None:
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape(persistent=True) as tape:
        parts = [tf.math.real(x), tf.math.imag(x), tf.math.conj(x), tf.math.angle(x)]
    gradients = [tape.gradient(part, x) for part in parts]
    assert [part.numpy().tolist() for part in parts[:3]] == [[1.0, -2.0], [0.0, 0.0], [1.0, -2.0]]
    np.testing.assert_allclose(parts[3].numpy(), [0.0, np.pi], rtol=1e-6)
    assert [g if g is None else g.numpy().tolist() for g in gradients] == [[1.0, 1.0], None, [1.0, 1.0], None]
    for wrong in (tf.constant([True]), tf.constant("a")):
        with pytest.raises(TypeError):
            tf.math.real(wrong)
    with pytest.raises(TypeError, match="must be consistent, and one of"):
        tf.complex(1, 2)


def test_logic_and_division() -> None:
    assert tf.math.logical_xor([True, False], [True, True]).numpy().tolist() == [False, True]
    assert tf.divide(1, 2).dtype == tf.float64
    assert tf.divide(1, tf.constant(2.0)).numpy() == 0.5
    with pytest.raises(TypeError, match="must have the same dtype"):
        tf.truediv(tf.constant(1), 2.0)


def test_casts() -> None:
    assert tf.saturate_cast(tf.constant([300.0, -5.0]), tf.uint8).numpy().tolist() == [255, 0]
    assert tf.dtypes.saturate_cast(tf.constant([300]), tf.int8).numpy().tolist() == [127]
    x = tf.constant([1.5])
    assert tf.cast(x, tf.float32) is x
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float is not supported"):
        tf.cast("1", tf.float32)


def test_grids_and_shapes() -> None:
    x, y = tf.meshgrid([1, 2], [3, 4, 5])
    assert x.numpy().tolist() == [[1, 2]] * 3
    assert y.numpy().tolist() == [[3, 3], [4, 4], [5, 5]]
    for got, expected in zip(
        tf.meshgrid([1, 2], [3], [5, 6, 7], indexing="ij"),
        np.meshgrid([1, 2], [3], [5, 6, 7], indexing="ij"),
        strict=True,
    ):
        assert got.numpy().tolist() == expected.tolist()
    with pytest.raises(ValueError, match="must be either 'xy' or 'ij'"):
        tf.meshgrid([1], indexing="yx")
    assert tf.ensure_shape(tf.zeros([2]), [None]).shape == [2]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\] is not compatible with expected shape \[3\]"):
        tf.ensure_shape(tf.zeros([2]), [3])


def test_leaky_relu_of_integers() -> None:
    np.testing.assert_allclose(tf.nn.leaky_relu([-1, 1]).numpy(), [-0.2, 1.0], rtol=1e-6)


def test_a_function_calls_through_and_gives_tensors() -> None:
    @tf.function(reduce_retracing=True)
    def call(x: Any) -> Any:
        return {"y": x * 2, "n": [1, None]}

    result = call(tf.constant(2.0))
    assert (result["y"].numpy(), result["n"][0].dtype, result["n"][1]) == (4.0, tf.int32, None)
    assert call.python_function(3)["y"] == 6


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (
            lambda: tf.debugging.assert_equal([1, 2], [1, 3], message="hm"),
            r"hm\nCondition x == y did not hold.\nIndices",
        ),
        (lambda: tf.debugging.assert_less(2.0, 1.0), "Condition x < y did not hold"),
        (lambda: tf.debugging.assert_near(1.0, 1.1), "not equal to tolerance"),
        (lambda: tf.debugging.assert_positive([1.0, -1.0]), "Condition x > 0 did not hold element-wise"),
        (lambda: tf.debugging.Assert(False, ["why"]), "Summarized data: b'why'"),
        (lambda: tf.debugging.check_numerics([1.0, np.nan], "loss"), "loss : Tensor had NaN values"),
        (lambda: tf.debugging.assert_all_finite([np.inf, np.nan], "loss"), "loss : Tensor had Inf and NaN values"),
        (lambda: tf.debugging.check_numerics([1], "loss"), "of int32 is not in the list of allowed values"),
    ],
)
def test_checks_that_fail_raise_on_their_line(check: Any, says: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=says):
        check()


def test_checks_that_hold() -> None:
    tf.debugging.assert_equal([1, 2], [1, 2])
    tf.debugging.assert_none_equal([1, 2], [2, 1])
    tf.debugging.assert_greater_equal(tf.constant([2.0]), 2.0)
    tf.debugging.assert_near(1.0, 1.0 + 1e-7)
    tf.debugging.assert_non_negative([0.0])
    tf.debugging.assert_rank([1], 1)
    tf.debugging.assert_type(1, tf.int32)
    with pytest.raises(ValueError, match="must have rank 2"):
        tf.debugging.assert_rank([1], 2)
    with pytest.raises(ValueError, match="rank at least 2"):
        tf.debugging.assert_rank_at_least([1], 2)
    with pytest.raises(TypeError, match="must be of type"):
        tf.debugging.assert_type(1, tf.float32)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.debugging.check_numerics(x * x, "y")
    assert tape.gradient(y, x).numpy() == 4.0


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (tf.SparseTensorSpec(), "the rank must be known"),
        (tf.IndexedSlicesSpec([None, 3]), "every size of the dense shape must be known"),
        (tf.TensorArraySpec([2]), "Call it with the value itself"),
    ],
)
def test_a_spec_that_nothing_is_traced_for_is_refused(spec, text):
    with pytest.raises((TypeError, ValueError), match=text):
        tf.function(lambda x: x).get_concrete_function(spec)


def test_a_function_that_no_sizes_fit_says_why() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.reshape(x, [7])

    concrete = f.get_concrete_function(tf.TensorSpec([None, 4]))
    with pytest.raises(ValueError, match="8 values, but the requested shape has 7"):
        concrete.output_shapes  # noqa: B018  # a property
