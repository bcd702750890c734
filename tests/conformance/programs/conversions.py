"""What a program passes where a tensor is expected: shapes, lists with tensors, arrays of numbers, large integers."""

from conformance.probes import message
from conformance.program import program


@program()
def lists_with_tensors(tf, np):
    one, v = tf.constant(1.0), tf.Variable([4.0])
    return [
        tf.convert_to_tensor([one, tf.constant(2.0)], dtype=tf.float64),
        tf.convert_to_tensor([one, 2], dtype=tf.float64),
        tf.convert_to_tensor([one, tf.constant(2.5)], dtype=tf.int32),
        tf.convert_to_tensor([[one, 2.0], [3.0, v[0]]], dtype=tf.float64),
        tf.convert_to_tensor([one, 2.0]),
        message(lambda: tf.convert_to_tensor([tf.constant(1), one])),
    ]


@program()
def shapes(tf, np):
    x = tf.zeros([2, 3])
    return [
        tf.reduce_prod(x.shape),
        tf.constant(x.shape),
        tf.convert_to_tensor(x.shape),
        tf.cast(x.shape, tf.float32),
        tf.constant(x.shape, tf.int64),
        tf.constant(tf.TensorShape([1 << 40])),
        tf.reduce_prod(tf.TensorShape([])),
        tf.concat([x.shape, [3]], 0),
        message(lambda: tf.constant(tf.TensorShape([1, None]))),
        message(lambda: tf.convert_to_tensor(x.shape, tf.float32))["error"],
    ]


@program()
def truths(tf, np):
    return [
        tf.where(np.array([1, 0]), [1.0, 2.0], [3.0, 4.0]),
        tf.where(np.array([1.5, 0.0]), 1, 2),
        tf.reduce_all(np.zeros([0])),
        tf.reduce_any(np.array([0, 2])),
        tf.logical_and(np.array([1, 0]), np.array([1, 1])),
        tf.logical_or(np.array([1.0, 0.0]), tf.constant([False, False])),
        tf.logical_not(np.array([1, 0])),
        message(lambda: tf.where([1, 0], 1.0, 2.0)),
        message(lambda: tf.reduce_all([1, 0])),
        message(lambda: tf.logical_not(tf.constant([1, 0])))["error"],
    ]


@program()
def integers_that_do_not_fit(tf, np):
    return [
        tf.constant([0, -1], tf.uint8),
        tf.constant([300], tf.uint8),
        tf.constant([1, -129], tf.int8),
        tf.constant(-1, tf.uint16),
        tf.constant([70000], tf.int16),
        tf.constant(-1, tf.uint32),
        tf.constant(1 << 40, tf.int32),
        tf.add(tf.constant([1, 2], tf.int8), [129, 130]),
        tf.constant([1], tf.uint8) + 300,
        tf.pad(tf.constant([1], tf.uint8), [[1, 1]], constant_values=-123),
        message(lambda: tf.constant(1 << 70, tf.int32))["error"],
    ]


@program()
def values_of_one_hot(tf, np):
    return [
        tf.one_hot([0, 1], 2, dtype=tf.float16, on_value=np.float32(1.0)),
        tf.one_hot([0, 1], 2, dtype=tf.int32, on_value=np.float32(3.0)),
        tf.one_hot([0, 1], 2, dtype=tf.float64, on_value=2, off_value=np.float32(-1.0)),
        message(lambda: tf.one_hot([0], 2, dtype=tf.float16, on_value=tf.constant(1.0)))["error"],
    ]


@program()
def reflected_operators(tf, np):
    class Mute:
        def __radd__(self, other):
            return NotImplemented

    class Speaks:
        def __radd__(self, other):
            return "mine"

    x = tf.constant(1.0)
    return [
        x + Speaks(),
        tf.Variable(1.0) + Speaks(),
        message(lambda: x + Mute())["error"],
        message(lambda: tf.Variable(1.0) + Mute())["error"],
        message(lambda: x + object())["error"],
        message(lambda: Mute() + x)["error"],
    ]


@program()
def places(tf, np):
    x, s = tf.constant([1.0]), tf.constant("a")
    return [x.cpu(), str(s.cpu().numpy()), message(lambda: x.gpu()), tf.Variable(1.0).initializer]


@program()
def classes_of_slices(tf, np):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(v, [0, 0])
    slices = tape.gradient(y, v)
    clipped = tf.clip_by_value(slices, -0.5, 0.5)
    return [
        type(slices) is tf.IndexedSlices,
        type(clipped) is tf.IndexedSlices,
        clipped,
        type(-slices) is tf.IndexedSlices,
        tf.clip_by_value(slices, tf.constant(-0.25), 0.25),
    ]


@program()
def a_constant_of_a_variable_is_not_connected(tf, np):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        a, b = tf.constant(v) * 2.0, tf.constant(v * 1.0)
    return a, tape.gradient(a, v), tape.gradient(b, v)
