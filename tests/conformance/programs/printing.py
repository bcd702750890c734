"""``repr`` and ``str``, character for character."""

from conformance.program import program


@program()
def scalars(tf, np):
    values = [1.0, 1.5, -0.25, 3, True, 1e20, 1e-7, float("nan"), float("inf"), 1.6, 100000000.0]
    return [[repr(tf.constant(value)), str(tf.constant(value))] for value in values]


@program()
def scalars_of_other_dtypes(tf, np):
    dtypes = [tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.int64, tf.uint8]
    scalars = [tf.constant(3, dtype) for dtype in dtypes] + [tf.constant(0.1, tf.float64), tf.constant(0.1, tf.float16)]
    return [[repr(scalar), str(scalar)] for scalar in scalars]


@program()
def complex_numbers(tf, np):
    z = tf.constant(np.complex64(1.0 + 2.0j))
    return [repr(z), str(z), repr(tf.reshape(z, [1])), str(tf.reshape(z, [1]))]


@program()
def vectors(tf, np):
    values = [[1.0, 2.5, -3.0], [1, 2, 3], [True, False], [1e-8, 1.0], [float("nan"), 1.0], [0.1, 1000.5]]
    return [[repr(tf.constant(value)), str(tf.constant(value))] for value in values]


@program()
def matrices_and_more(tf, np):
    tensors = [
        tf.constant([[1.0, 2.0], [3.0, 4.0]]),
        tf.constant([[1, 2, 3]]),
        tf.zeros([2, 1, 2]),
        tf.constant([[1.0], [-2.0]]),
    ]
    return [[repr(tensor), str(tensor)] for tensor in tensors]


@program()
def empty_tensors(tf, np):
    return [[repr(tensor), str(tensor)] for tensor in (tf.zeros([0]), tf.zeros([0, 2]), tf.zeros([2, 0], tf.int32))]


@program()
def half_precision_vectors(tf, np):
    tensors = [
        tf.constant([0.5, 2.0], tf.float16),
        tf.constant([0.5, 2.0], tf.bfloat16),
        tf.constant([0.5], tf.float64),
    ]
    return [[repr(tensor), str(tensor)] for tensor in tensors]


@program()
def strings(tf, np):
    return [repr(tf.constant("word")), str(tf.constant("word")), str(tf.constant(["a", "b"]))]


@program()
def variables(tf, np):
    variables = [
        tf.Variable(1.5),
        tf.Variable(3, name="count"),
        tf.Variable([1.0, 2.0], name="w"),
        tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="layer/kernel", trainable=False),
        tf.Variable([0.5], dtype=tf.float64),
    ]
    return [[repr(v), str(v)] for v in variables]


@program()
def the_result_of_an_assign(tf, np):
    v = tf.Variable([1.0, 2.0], name="w")
    return [repr(v.assign([3.0, 4.0])), str(v.assign_add([1.0, 1.0])), repr(v)]


@program()
def gradients(tf, np):
    x, m = tf.Variable(3.0), tf.Variable([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * tf.reduce_sum(m)
    return [str(tape.gradient(y, x)), repr(tape.gradient(y, [x, m])), str({"m": tape.gradient(y, m)})]


@program()
def indexed_slices(tf, np):
    full = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]), tf.constant([5, 2]))
    bare = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 1]))
    return [str(full), str(bare)]


@program()
def shapes(tf, np):
    shapes = [tf.constant(1.0).shape, tf.zeros([3]).shape, tf.zeros([2, 0]).shape, tf.TensorShape([None, 2])]
    return [[repr(shape), str(shape)] for shape in shapes] + [f"{tf.zeros([2, 3]).shape}", str([tf.zeros([1]).shape])]


@program()
def dtypes(tf, np):
    dtypes = [tf.float32, tf.bfloat16, tf.int64, tf.bool, tf.complex64, tf.string]
    return [[repr(dtype), str(dtype)] for dtype in dtypes]


@program()
def formatting(tf, np):
    x, v = tf.constant(1.25), tf.constant([1.0, 2.5])
    return [
        f"{x:.3f}",
        f"{x}",
        f"{v}",
        "%.1f" % x,  # noqa: UP031 - what people still write
        "%d" % tf.constant(3),  # noqa: UP031
        f"{tf.Variable(2.0, name='w')}",
        f"{x.numpy():.1f}",
    ]


@program()
def in_a_container(tf, np):
    x = tf.constant([1.0, 2.0])
    return [str([x, None]), str({"x": tf.constant(1)}), str((tf.constant(True),))]
