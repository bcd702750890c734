"""What a type checker refuses: each line that ends in `# wrong` is one error."""

import teletape as tf
from teletape_engine.commands import Fetch

x = tf.constant([1.0, 2.0])
tf.reduce_summ(x)  # wrong
tf.math.matmul(x, x)  # wrong
tf.reduce_sum(x, axes=0)  # wrong
tf.matmul(x)  # wrong
numpy = tf.data.np  # wrong


@tf.function
def double(value: tf.Tensor) -> tf.Tensor:
    """Keeps its signature."""
    return value * 2


double(x, x)  # wrong

fetch = Fetch("x")
fetch.id = "y"  # wrong
