"""The op that the message of an error names, as in ``Incompatible shapes: [2,3] vs. [2] [Op:AddV2]``."""

from conformance.probes import op_named
from conformance.program import program


@program()
def shapes(tf, np):
    a, b = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), tf.constant([1.0, 2.0])
    cases = {
        "matmul": lambda: tf.matmul(a, a),
        "@": lambda: a @ a,
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "**": lambda: a**b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "<": lambda: a < b,
        "maximum": lambda: tf.maximum(a, b),
        "squared_difference": lambda: tf.math.squared_difference(a, b),
        "reshape": lambda: tf.reshape(a, [4]),
        "concat": lambda: tf.concat([a, tf.ones([3, 2])], 0),
        "stack": lambda: tf.stack([a, b]),
        "broadcast_to": lambda: tf.broadcast_to(a, [2, 4]),
        "tile": lambda: tf.tile(a, [2]),
        "transpose": lambda: tf.transpose(a, [0]),
        "where": lambda: tf.where(tf.constant([True, False]), a, a),
        "squeeze": lambda: tf.squeeze(a, 0),
        "add_n": lambda: tf.add_n([a, b]),
        "einsum": lambda: tf.einsum("ij,jk->ik", a, a),
        "bias_add": lambda: tf.nn.bias_add(a, b),
        "cross_entropy": lambda: tf.nn.softmax_cross_entropy_with_logits(a, tf.ones([3, 3])),
        "conv2d": lambda: tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([2, 2, 2, 1]), 1, "SAME"),
        "cholesky": lambda: tf.linalg.cholesky(a),
        "inv": lambda: tf.linalg.inv(a),
        "matvec": lambda: tf.linalg.matvec(a, b),
        "tensordot": lambda: tf.tensordot(a, a, 1),
        "ensure_shape": lambda: tf.ensure_shape(a, [3, 3]),
    }
    return {name: op_named(case) for name, case in cases.items()}


@program()
def axes(tf, np):
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    cases = {
        "reduce_sum": lambda: tf.reduce_sum(a, axis=5),
        "reduce_mean": lambda: tf.reduce_mean(a, axis=5),
        "argmax": lambda: tf.argmax(a, axis=4),
        "cumsum": lambda: tf.cumsum(a, axis=4),
        "expand_dims": lambda: tf.expand_dims(a, 5),
        "gather": lambda: tf.gather(a, [0], axis=3),
        "index": lambda: a[5],
        "too many indices": lambda: a[0, 0, 0],
        "slice": lambda: tf.slice(a, [0, 0], [3, 3]),
        "split": lambda: tf.split(a, 2, axis=1),
        "norm": lambda: tf.norm(a, axis=7),
    }
    return {name: op_named(case) for name, case in cases.items()}


@program()
def dtypes(tf, np):
    a, i = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    cases = {
        "+": lambda: a + i,
        "subtract": lambda: tf.subtract(a, tf.cast(a, tf.float64)),
        "matmul": lambda: tf.matmul(a[None], i[:, None]),
        "concat": lambda: tf.concat([a, i], 0),
        "sqrt": lambda: tf.sqrt(i),
        "one_hot": lambda: tf.one_hot(a, 3),
        "cast": lambda: tf.cast(a, "none"),
    }
    return {name: op_named(case) for name, case in cases.items()}


@program()
def values(tf, np):
    v = tf.Variable([1.0, 2.0, 3.0])
    x = v.read_value()
    cases = {
        "gather": lambda: tf.gather(x, [5]).numpy(),
        "//": lambda: (tf.constant([1, 2]) // 0).numpy(),
        "sparse_cross_entropy": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([5], x[None]).numpy(),
        "segment_sum": lambda: tf.math.unsorted_segment_sum(x, [0, 5, 1], 2).numpy(),
        "inv": lambda: tf.linalg.inv(tf.zeros([2, 2])).numpy(),
        "check_numerics": lambda: tf.debugging.check_numerics(x / 0.0, "loss").numpy(),
        "assign_add": lambda: v.assign_add([1.0, 2.0]),
        "assign": lambda: v.assign([1.0, 2.0]),
    }
    return {name: op_named(case) for name, case in cases.items()}
