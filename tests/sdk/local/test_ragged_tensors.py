"""Ragged tensors: what takes none says so by name, forms agree with ops, and what TensorFlow does not have."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pytest

import teletape as tf
from programs import load_script
from teletape.core.calls.dispatch import call
from teletape.core.tensors.composite import NotDense
from teletape.extras.ragged_tensors.forms.elementwise import acts_on_elements
from teletape.extras.ragged_tensors.forms.of_functions import FORMS
from teletape.extras.ragged_tensors.forms.of_ops import OPS
from teletape_engine.catalogue.op import CATALOGUE

#: Functions that refuse floating matrices of any kind with a message of their own.
_OTHER_REASONS = (
    "bitwise.invert",
    "cond",
    "compat.v1.cond",
    "image.hsv_to_rgb",
    "image.rgb_to_hsv",
    "image.total_variation",
    "logical_not",
    "math.logical_not",
    "parallel_stack",
    "sparse.map_values",
)
#: Functions of a list of tensors, which take the rows of a ragged tensor for one.
_OF_ROWS = ("add_n", "math.add_n", "math.accumulate_n")


def functions_of_one() -> list[str]:
    """The public functions with one argument that must be given."""
    names = []
    for name, function in load_script("public_surface").surface().items():
        if inspect.isclass(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        required = [
            parameter
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        if len(required) == 1:
            names.append(name)
    return names


def public(name: str) -> Any:
    return functools.reduce(getattr, name.split("."), tf)


@pytest.mark.parametrize("name", sorted({*functions_of_one()} - {*_OTHER_REASONS, *_OF_ROWS}))
def test_a_function_takes_a_ragged_tensor_or_says_that_it_does_not(name: str) -> None:
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    try:
        public(name)(x)
    except Exception as error:
        text = str(error)
    else:
        return
    assert "ragged" in text.lower()


def test_what_takes_no_ragged_tensor_says_what_to_do() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with pytest.raises(NotDense, match=r"tf\.linalg\.det takes no RaggedTensor\. .* x\.to_tensor\(\)"):
        tf.linalg.det(x)
    for refused in (TypeError, ValueError):
        with pytest.raises(refused, match=r"a RaggedTensor of shape \(2, None\) is none\. .* x\.to_tensor\(\)"):
            tf.convert_to_tensor(x)
    with pytest.raises(TypeError, match=r"x\.bounding_shape\(\)"):
        tf.shape(x)[:1]


@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if acts_on_elements(op)))
def test_an_elementwise_op_acts_on_the_flat_values(name: str) -> None:
    op = CATALOGUE[name]
    sample = next((sample for sample in op.samples() if all(np.ndim(x) == 1 for x in sample.inputs)), None)
    if sample is None:
        return
    lengths = [np.shape(x)[0] for x in sample.inputs]
    if len(set(lengths)) != 1 or op.variadic:
        return
    flat = [tf.constant(np.asarray(x)) for x in sample.inputs]
    ragged = [tf.RaggedTensor.from_row_splits(x, [0, 1, 1, lengths[0]]) for x in flat]
    form = tf.RaggedTensor.form_of(op)
    np.testing.assert_array_equal(
        form(op, ragged, sample.attrs).flat_values.numpy(), _called(op, flat, sample.attrs), strict=True
    )


def _called(op: Any, flat: list[Any], attrs: Any) -> Any:
    return call(op, flat, **attrs).numpy()


def test_no_op_has_a_form_and_is_elementwise() -> None:
    assert not [op.name for op in OPS if acts_on_elements(op)]


def test_a_function_that_reports_its_own_errors_has_no_second_wrapper() -> None:
    assert not [function.__name__ for function in FORMS if "report" in function.__code__.co_names]


def test_python_calls_and_numpy_functions_refuse_rows() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    for refused in (lambda: tf.numpy_function(np.sum, [x], tf.float32), lambda: tf.experimental.numpy.sum(x)):
        with pytest.raises(NotDense, match=r"x\.to_tensor\(\)"):
            refused()


def test_a_tensor_on_the_left_leaves_the_operator_to_the_rows() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert (tf.constant([[1.0], [2.0]]) - x).to_list() == [[0.0, -1.0], [-1.0]]
    assert (tf.Variable(2.0) * x).to_list() == [[2.0, 4.0], [6.0]]
    assert (np.float32(2.0) * x).to_list() == [[2.0, 4.0], [6.0]]


def test_rows_of_a_function_are_known_when_it_is_traced_only_if_they_are_captured() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    traces = []

    @tf.function
    def means(rows: Any) -> Any:
        traces.append(rows)
        return tf.reduce_mean(rows, axis=1), rows - tf.reduce_mean(rows, axis=1, keepdims=True)

    for splits in ([0, 2, 3], [0, 1, 3], [0, 0, 3]):
        rows = tf.RaggedTensor.from_row_splits([1.0, 2.0, 3.0], splits)
        mean, centred = means(rows)
        np.testing.assert_array_equal(mean.numpy(), tf.reduce_mean(rows, axis=1).numpy())
        np.testing.assert_array_equal(centred.row_splits.numpy(), splits)
    assert len(traces) == 1
    assert tf.function(lambda: x.to_tensor())().numpy().tolist() == [[1.0, 2.0], [3.0, 0.0]]


def test_a_function_is_traced_for_each_number_of_rows_and_values() -> None:
    doubled = tf.function(lambda rows: rows * 2.0)
    spec = doubled.get_concrete_function(tf.ragged.constant([[1.0, 2.0], [3.0]])).structured_outputs
    assert spec == tf.RaggedTensorSpec([2, None], tf.float32)
    assert doubled(tf.ragged.constant([["a"]]).with_values([1.0])).to_list() == [[2.0]]


def test_strings_in_rows_go_through_functions() -> None:
    words = tf.ragged.constant([["a", "b"], ["c"]])
    texts, lengths = tf.function(lambda rows: (rows, rows.row_lengths()))(words)
    assert texts.to_list() == [[b"a", b"b"], [b"c"]]
    assert lengths.numpy().tolist() == [2, 1]


def test_forward_mode_and_jacobians_are_those_of_the_flat_values() -> None:
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(values, tf.ones(3)) as accumulator:
        y = tf.RaggedTensor.from_row_splits(values, [0, 2, 3]) ** 2.0
    assert accumulator.jvp(y).to_list() == [[2.0, 4.0], [6.0]]
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = x * x
    np.testing.assert_array_equal(tape.jacobian(z, x).numpy(), np.diag([2.0, 4.0, 6.0]))


def test_log_of_a_none_gradient_is_explained() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, tf.int32), tf.float32)
    assert tape.gradient(y, x) is None
    assert tape.explain(y, x).code == "integer_or_bool"


def test_the_gradient_of_broadcast_and_padded_rows_is_dense() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        x = tf.RaggedTensor.from_row_splits(v, [0, 2, 3])
        y, z = x * [[2.0], [3.0]], x.to_tensor()
    assert tape.gradient(y, v).numpy().tolist() == [2.0, 2.0, 3.0]
    assert tape.gradient(z, v).numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("start", [None, 0, 1, 3, -1, -2, -9])
@pytest.mark.parametrize("stop", [None, 0, 2, 9, -1, -3])
@pytest.mark.parametrize("step", [None, 1, 2, -1, -2])
def test_a_slice_of_each_row_is_that_of_a_list(start: int | None, stop: int | None, step: int | None) -> None:
    rows = [[1, 2, 3, 4], [], [5], [6, 7]]
    assert tf.ragged.constant(rows)[:, start:stop:step].to_list() == [row[start:stop:step] for row in rows]


def test_a_ragged_tensor_of_ten_thousand_rows_takes_few_ops() -> None:
    lengths = np.arange(10_000) % 7
    x = tf.RaggedTensor.from_row_lengths(tf.ones(int(lengths.sum())), lengths)
    np.testing.assert_array_equal(tf.reduce_sum(x, axis=1).numpy(), lengths.astype(np.float32))
    assert x.to_tensor().shape == (10_000, 6)
    assert x[:, 1:3].row_lengths().numpy().max() == 2
