"""Common mistakes of programs: each is a function of the module that is imported as `tf`, and raises.

`python tests/sdk/mistakes.py`, with TensorFlow installed, writes the classes of its errors to mistakes.json.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_suffix(".json")


def product_of_shapes(tf: Any) -> Any:
    return tf.matmul(tf.ones([2, 3]), tf.ones([4, 2]))


def product_by_the_operator(tf: Any) -> Any:
    return tf.ones([2, 3]) @ tf.ones([2, 3])


def sum_of_shapes(tf: Any) -> Any:
    return tf.ones([2, 3]) + tf.ones([2])


def sum_of_dtypes(tf: Any) -> Any:
    return tf.constant([1.0]) + tf.constant([1])


def sum_of_sizes_of_floats(tf: Any) -> Any:
    return tf.constant(1.0) * tf.constant(1.0, tf.float64)


def a_string_in_place_of_a_number(tf: Any) -> Any:
    return tf.constant([1.0, 2.0]) * "two"


def a_string_for_a_float(tf: Any) -> Any:
    return tf.constant("1.5", dtype=tf.float32)


def none_in_place_of_a_tensor(tf: Any) -> Any:
    return tf.reduce_sum(None)


def none_in_a_sum(tf: Any) -> Any:
    return tf.constant(1.0) + None


def a_float_for_integers(tf: Any) -> Any:
    return tf.constant([1, 2]) * 0.5


def a_ragged_list(tf: Any) -> Any:
    return tf.constant([[1.0, 2.0], [3.0]])


def concatenation_of_shapes(tf: Any) -> Any:
    return tf.concat([tf.ones([2, 3]), tf.ones([3, 2])], axis=0)


def concatenation_of_dtypes(tf: Any) -> Any:
    return tf.concat([tf.ones([2]), tf.constant([1])], axis=0)


def stack_of_shapes(tf: Any) -> Any:
    return tf.stack([tf.ones([2]), tf.ones([3])])


def reshape_to_another_size(tf: Any) -> Any:
    return tf.reshape(tf.ones([2, 3]), [4])


def reshape_with_two_unknown_sizes(tf: Any) -> Any:
    return tf.reshape(tf.ones([2, 3]), [-1, -1])


def sum_over_a_missing_axis(tf: Any) -> Any:
    return tf.reduce_sum(tf.ones([2, 3]), axis=2)


def softmax_over_a_missing_axis(tf: Any) -> Any:
    return tf.nn.softmax(tf.ones([2, 3]), axis=5)


def transposition_of_another_rank(tf: Any) -> Any:
    return tf.transpose(tf.ones([2, 3]), [0, 1, 2])


def an_index_out_of_range(tf: Any) -> Any:
    return tf.ones([3])[5]


def an_index_of_a_float(tf: Any) -> Any:
    return tf.ones([3])[1.0]


def an_index_too_many(tf: Any) -> Any:
    return tf.ones([3])[0, 0]


def gather_out_of_range(tf: Any) -> Any:
    return tf.gather(tf.ones([3]), [7]).numpy()


def gather_by_floats(tf: Any) -> Any:
    return tf.gather(tf.ones([3]), [0.0])


def items_of_a_tensor_assigned(tf: Any) -> Any:
    tf.ones([3])[0] = 1.0


def split_into_unequal_parts(tf: Any) -> Any:
    return tf.split(tf.ones([5]), 2)


def squeeze_of_a_long_axis(tf: Any) -> Any:
    return tf.squeeze(tf.ones([2, 3]), axis=0)


def expansion_at_a_missing_axis(tf: Any) -> Any:
    return tf.expand_dims(tf.ones([2]), 4)


def convolution_of_channels(tf: Any) -> Any:
    return tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([2, 2, 1, 8])[:, :, :1], 1, "VALID")


def padding_that_is_unknown(tf: Any) -> Any:
    return tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([2, 2, 3, 8]), 1, "NONE")


def labels_of_another_shape(tf: Any) -> Any:
    return tf.nn.softmax_cross_entropy_with_logits(tf.ones([2, 3]), tf.ones([2, 4]))


def labels_that_are_classes(tf: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.ones([2, 3]), tf.ones([2, 3]))


def unknown_dtype(tf: Any) -> Any:
    return tf.cast(tf.ones([2]), "float31")


def unknown_argument(tf: Any) -> Any:
    return tf.reduce_sum(tf.ones([2]), dim=0)


def missing_argument(tf: Any) -> Any:
    return tf.matmul(tf.ones([2, 2]))


def missing_name(tf: Any) -> Any:
    return tf.matmull(tf.ones([2, 2]), tf.ones([2, 2]))


def missing_method(tf: Any) -> Any:
    return tf.ones([2]).backward()


def truth_of_many(tf: Any) -> Any:
    return bool(tf.ones([2]) > 0.0)


def float_of_many(tf: Any) -> Any:
    return float(tf.ones([2]))


def length_of_a_scalar(tf: Any) -> Any:
    return len(tf.constant(1.0))


def iteration_over_a_scalar(tf: Any) -> Any:
    return list(tf.constant(1.0))


def assignment_of_another_shape(tf: Any) -> Any:
    return tf.Variable(tf.ones([2, 3])).assign(tf.ones([3]))


def assignment_of_another_dtype(tf: Any) -> Any:
    return tf.Variable([1.0]).assign(tf.constant([1]))


def subtraction_of_another_shape(tf: Any) -> Any:
    return tf.Variable([1.0, 2.0]).assign_sub([1.0, 2.0, 3.0])


def subtraction_of_none(tf: Any) -> Any:
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        z = x * 2.0
    y.assign_sub(0.1 * tape.gradient(z, y))


def a_tape_that_is_used_twice(tf: Any) -> Any:
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    return tape.gradient(y, x)


def a_gradient_of_a_number(tf: Any) -> Any:
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = float(x * x)
    return tape.gradient(y, x)


def a_watch_of_a_number(tf: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(3.0)


def a_jacobian_of_two_tapes(tf: Any) -> Any:
    with tf.GradientTape() as tape:
        x = tf.constant([1.0])
    tape.jacobian(x, x)
    return tape.jacobian(x, x)


def an_output_gradient_of_another_shape(tf: Any) -> Any:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x, output_gradients=tf.ones([3]))


def a_value_in_a_function(tf: Any) -> Any:
    return tf.function(lambda x: x.numpy())(tf.constant(1.0))


def a_shape_in_a_function(tf: Any) -> Any:
    return tf.function(lambda x: x @ tf.ones([4, 2]))(tf.ones([2, 3]))


def a_variable_in_a_function_that_is_made_again(tf: Any) -> Any:
    @tf.function
    def step(x: Any) -> Any:
        return tf.Variable(x) * 2.0

    step(tf.constant(1.0))
    return step(tf.constant(1.0))


def another_signature(tf: Any) -> Any:
    step = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([2], tf.float32)])
    return step(tf.ones([3]))


def a_loop_whose_variable_changes_its_shape(tf: Any) -> Any:
    step = tf.function(lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, y], 0)), [0, x]))
    return step(tf.ones([2]))


def an_inverse_of_a_singular_matrix(tf: Any) -> Any:
    return tf.linalg.inv([[1.0, 2.0], [2.0, 4.0]]).numpy()


def a_product_of_strings(tf: Any) -> Any:
    return tf.constant(["a"]) * tf.constant(["b"])


def a_step_of_an_integer_division_by_zero(tf: Any) -> Any:
    return (tf.constant([1]) // tf.constant([0])).numpy()


#: The mistakes by name.
MISTAKES = {name: each for name, each in list(globals().items()) if callable(each) and hasattr(each, "__code__")}


def class_of(mistake: Any, tf: Any) -> str | None:
    """Returns the name of the public class of what a mistake raises; None: it raises nothing."""
    try:
        mistake(tf)
    except Exception as error:
        return next(cls.__name__ for cls in type(error).__mro__ if not cls.__name__.startswith("_"))
    return None


if __name__ == "__main__":
    tensorflow = importlib.import_module("tensorflow")
    classes = {name: class_of(mistake, tensorflow) for name, mistake in MISTAKES.items()}
    RECORDED.write_text(json.dumps(classes, indent=1) + "\n")
