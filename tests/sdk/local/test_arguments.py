"""Arguments of questions to tapes: what is a target or source, how many rows go at once, and TensorFlow's errors."""

import re
from typing import Any

import pytest

import teletape as tf
from teletape.core.derivatives.arguments import Vectorization, as_source, as_target, operands_like, wants_zeros
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(autouse=True)
def session() -> Any:
    yield use(LocalSession())
    use(LocalSession())


def test_slices_are_differentiated_through_their_values() -> None:
    values = tf.constant([[1.0]])
    slices = tf.IndexedSlices(values, tf.constant([0]))
    assert as_target(slices) is values
    assert as_source(slices) is slices


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Cannot convert the argument `type_value`: None"),
        ("float32", "Cannot convert the argument `type_value`: 'float32'"),
        (2.0, "a source must be a Tensor, a Variable or IndexedSlices, found 2.0 of type float"),
    ],
)
def test_what_is_no_tensor_is_refused(value: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        as_source(value)


@pytest.mark.parametrize(
    ("unconnected", "zeros"), [("none", False), ("zero", True), (tf.UnconnectedGradients.ZERO, True)]
)
def test_unconnected_gradients_by_name_or_value(unconnected: Any, zeros: bool) -> None:
    assert wants_zeros(unconnected) is zeros


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda: wants_zeros("zeros"), "Unknown value for unconnected_gradients: 'zeros': did you mean 'zero'?"),
        (lambda: wants_zeros("NONE"), "Unknown value for unconnected_gradients: 'NONE': did you mean 'none'?"),
        (lambda: wants_zeros(0), "Unknown value for unconnected_gradients: 0"),
        (
            lambda: tf.pad([[1.0]], [[1, 1], [1, 1]], mode="REFLECTT"),
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            "Received `mode` = REFLECTT: did you mean 'REFLECT'?",
        ),
    ],
)
def test_a_word_that_is_almost_allowed_is_asked_about(mistake: Any, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        mistake()


def chunk(arguments: dict[str, Any], *, persistent: bool = True) -> Any:
    defaults: dict[str, Any] = {
        "method": "jacobian",
        "unconnected_gradients": "none",
        "parallel_iterations": None,
        "experimental_use_pfor": True,
        "max_bytes": None,
    }
    return Vectorization(**defaults | arguments).fields(4, persistent=persistent)["chunk_size"]


@pytest.mark.parametrize(
    ("arguments", "persistent", "error", "text"),
    [
        ({"parallel_iterations": 1}, True, ValueError, "while vectorizing the jacobian computation"),
        ({"parallel_iterations": 0}, True, ValueError, "while vectorizing the jacobian computation"),
        ({"unconnected_gradients": "x"}, True, ValueError, "while vectorizing the jacobian computation"),
        ({"parallel_iterations": 2}, False, ValueError, "while vectorizing the jacobian computation"),
        ({"parallel_iterations": 2, "method": "batch_jacobian"}, False, RuntimeError, "with parallel_iterations"),
        ({"experimental_use_pfor": False}, False, RuntimeError, "persistent=True to compute the jacobian"),
        ({"experimental_use_pfor": False, "parallel_iterations": 0}, True, TypeError, "positive integer"),
    ],
)
def test_a_vectorization_that_cannot_be(
    arguments: dict[str, Any], persistent: bool, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        chunk(arguments, persistent=persistent)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, None),
        ({"parallel_iterations": 3}, 3),
        ({"parallel_iterations": 9}, None),
        ({"experimental_use_pfor": False}, 1),
        ({"experimental_use_pfor": False, "parallel_iterations": 4}, 4),
    ],
)
def test_rows_at_once(arguments: dict[str, Any], expected: int | None) -> None:
    assert chunk(arguments) == expected


def test_a_list_of_numbers_is_one_operand_for_one_target() -> None:
    target = tf.constant([1.0, 2.0])
    [operand] = operands_like([3, 4], [target], target, "vectors")
    assert operand.spec.shape == (2,)
    assert operand.spec.dtype == "float32"
    with pytest.raises(ValueError, match="vectors: found 2, and 1 are needed"):
        operands_like([3.0, 4.0], [target], [target], "vectors")


def test_a_float_tensor_in_a_list_of_lengths_loses_its_fraction_as_in_tensorflow() -> None:
    assert tf.reshape(tf.ones([6]), [tf.constant(2.0), 3]).shape == [2, 3]
    assert tf.zeros([tf.constant(2.7), 3]).shape == [2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be whole numbers"):
        tf.reshape(tf.ones([6]), [2.0, 3])


@pytest.mark.parametrize(
    ("call", "question"),
    [
        (lambda: tf.norm([1.0], axes=0), "did you mean 'axis'"),
        (lambda: tf.nn.conv2d(tf.ones([1, 1, 1, 1]), tf.ones([1, 1, 1, 1]), stride=1), "did you mean 'strides'"),
        (lambda: tf.Variable(1.0, trainble=False), "did you mean 'trainable'"),
        (lambda: tf.GradientTape(persistant=True), "did you mean 'persistent'"),
        (
            lambda: tf.while_loop(lambda x: x < 1, lambda x: x, [1], max_iterations=3),
            "did you mean 'maximum_iterations'",
        ),
        (lambda: tf.norm([1.0], nothing_like_it=0), "it takes tensor, ord, axis"),
    ],
)
def test_an_unexpected_keyword_argument_is_answered_with_the_nearest(call: Any, question: str) -> None:
    with pytest.raises(TypeError, match=f"(?i)unexpected keyword argument '\\w+'[.:] {question}"):
        call()


def test_of_a_function_of_the_program_the_message_stays() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'b'$"):
        tf.map_fn(lambda x: (lambda a: a)(b=x), tf.ones(2))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: tf.experimental.numpy.moveaxis(tf.ones([2, 3]), 5, 0), "axis=5"),
        (lambda: tf.experimental.numpy.take_along_axis(tf.ones([2, 3]), tf.zeros([2, 3], tf.int64), 5), "axis=5"),
        (lambda: tf.experimental.numpy.linspace(0, 1, 3, endpoint=False, axis=5), "axis=5"),
        (lambda: tf.sparse.transpose(tf.sparse.from_dense([[1.0, 2.0]]), [2, 3]), "perm=2"),
        (lambda: tf.ragged.constant([[1], []]).merge_dims(0, 5), "inner_axis=5"),
        (lambda: tf.concat([tf.ragged.constant([[1], []])] * 2, 5), "axis=5"),
    ],
)
def test_an_axis_out_of_range_is_refused(call: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} out of bounds: expected -"):
        call()
