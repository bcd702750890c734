"""`tf.Variable`: assignments, names, initial values, copies, and what a tape keeps of it."""

from __future__ import annotations

import copy
import gc
from typing import Any

import numpy as np
import pytest

import teletape as tf


def test_an_assignment_gives_another_object_that_follows_the_variable() -> None:
    v = tf.Variable([1.0, 2.0], name="w")
    result = v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    assert result is not v
    assert isinstance(result, tf.Variable)
    assert result.numpy().tolist() == [4.0, 5.0]
    assert (result.name, v.name) == ("UnreadVariable", "w:0")
    assert result.assign_sub([4.0, 4.0]).numpy().tolist() == v.numpy().tolist() == [0.0, 1.0]
    assert v.assign([0.0, 0.0], read_value=False) is None


def test_the_result_of_an_assignment_is_differentiated_as_the_variable() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        result = v.assign_add(3.0)
        y = result * v
    assert tape.gradient(y, v).numpy() == tape.gradient(y, result).numpy() == 10.0


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda v: v.assign([1.0]), ValueError, "Cannot assign value to variable ' w:0': Shape mismatch.The variable"),
        (
            lambda v: v.assign_add([1.0]),
            tf.errors.InvalidArgumentError,
            r"Cannot update variable with shape \[2\] using",
        ),
        (lambda v: v.assign(tf.constant([1, 2])), ValueError, "requested dtype float32 for Tensor with dtype int32"),
        (lambda v: v.assign(None), ValueError, "Attempt to convert a value"),
        (lambda v: v.scatter_add(3.0), TypeError, "must be a `tf.IndexedSlices`"),
        (lambda v: v.set_shape([3]), ValueError, "not compatible"),
    ],
)
def test_assignments_that_do_not_fit_change_nothing(call: Any, error: type[Exception], says: str) -> None:
    v = tf.Variable([1.0, 2.0], name="w")
    with pytest.raises(error, match=says):
        call(v)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_scatter_adds_up_rows_named_twice() -> None:
    v = tf.Variable([[1.0], [2.0], [3.0]])
    v.scatter_add(tf.IndexedSlices(tf.constant([[5.0], [1.0]]), tf.constant([0, 0])))
    v.scatter_sub(tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2])))
    assert v.numpy().tolist() == [[7.0], [2.0], [2.0]]


def test_assign_copies() -> None:
    v, mine = tf.Variable([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
    v.assign(mine)
    mine[0] = 9.0
    v.numpy()[0] = 9.0
    assert v.numpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "**"])
def test_in_place_operators_say_what_to_use(sign: str) -> None:
    with pytest.raises(RuntimeError, match=r"with `tf.Variable`s is not supported. Use `var.*assign"):
        exec(f"v {sign}= 1.0", {"v": tf.Variable(1.0)})  # noqa: S102  # the operator is the parameter


def test_names_are_those_of_the_scope() -> None:
    with tf.name_scope("outer"):
        assert tf.Variable(1.0).name == "outer/Variable:0"
    assert tf.Variable(1.0, name="x0").name == "x0:0"
    with pytest.raises(ValueError, match="must be a string"):
        tf.Variable(1.0, name=3)


def test_what_a_variable_starts_from() -> None:
    assert tf.Variable(lambda: tf.ones([2])).numpy().tolist() == [1.0, 1.0]
    assert tf.Variable([1, 2], dtype=tf.float64).dtype == tf.float64
    with pytest.raises(ValueError, match=r"`initial_value` arg to `tf\.Variable` must be specified"):
        tf.Variable()
    with pytest.raises(ValueError, match="is not compatible with the explicitly supplied `shape`"):
        tf.Variable([1.0], shape=[2])


def test_a_variable_prints_and_formats_as_itself() -> None:
    v = tf.Variable(1.5, name="w")
    assert f"{v}" == str(v) == repr(v) == "<tf.Variable 'w:0' shape=() dtype=float32, numpy=1.5>"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{v:.2f}"


def test_a_variable_is_no_key_and_has_no_length() -> None:
    v = tf.Variable([1.0])
    with pytest.raises(TypeError, match=r"Variable is unhashable.*\(Variable: <tf.Variable 'Variable:0' shape=\(1,\)"):
        hash(v)
    with pytest.raises(TypeError, match="has no len"):
        len(v)
    assert {v.ref(): 1}[v.ref()] == 1
    assert [n.numpy() for n in v] == [1.0]


def test_a_deep_copy_is_a_variable_of_its_own() -> None:
    v = tf.Variable(1.0, trainable=False, name="w")
    twin = copy.deepcopy(v)
    v.assign(2.0)
    assert (twin.numpy(), twin.name, twin.trainable) == (1.0, "w:0", False)


def test_a_tape_keeps_a_deleted_variable_and_lists_it() -> None:
    with tf.GradientTape() as tape:
        v = tf.Variable(3.0, name="gone")
        y = v * v
    del v
    gc.collect()
    (retained,) = tape.watched_variables()
    assert (retained.name, retained.numpy(), tape.gradient(y, retained).numpy()) == ("gone:0", 3.0, 6.0)


def test_programs_may_set_attributes() -> None:
    v = tf.Variable(1.0)
    v.note = "mine"
    assert v.note == "mine"


def test_a_part_is_a_tensor_that_may_be_assigned_to() -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    row = v[0]
    result = row.assign([9.0, 8.0])
    assert (type(row).__name__, type(result).__name__) == ("EagerTensor", "_UnreadVariable")
    assert row.numpy().tolist() == [1.0, 2.0]
    v[:, 1].assign(0.0)
    assert v.numpy().tolist() == result.numpy().tolist() == [[9.0, 0.0], [3.0, 0.0]]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Cannot broadcast input shape \[3\] into final shape \[2\]"
    ):
        row.assign([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = v[0, 0] * v[1][0]
    assert tape.gradient(y, v).numpy().tolist() == [[3.0, 0.0], [9.0, 0.0]]
