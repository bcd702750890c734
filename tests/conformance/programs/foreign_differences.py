"""What programs of other people once met that TensorFlow does otherwise, one program for each kind of difference."""

from conformance.probes import raises
from conformance.program import program


# -------------------------------------------------------------------------------------------------------- conversions
@program()
def a_list_of_tensors_takes_the_dtype_that_is_asked_for(tf, np):
    tensors = [tf.constant(1.0), tf.constant(2.0)]
    return [
        tf.convert_to_tensor(tensors, dtype=tf.float64),
        raises(lambda: tf.convert_to_tensor([tf.constant(1, tf.int32)], dtype=tf.float32)),
        tf.stack([tf.constant(1.0), 2.0]),
    ]


@program()
def a_shape_converts_to_a_tensor(tf, np):
    w = tf.zeros([3, 4])
    return [tf.reduce_prod(w.shape), tf.constant(w.shape), tf.cast(w.shape, tf.float32), tf.reshape(w, w.shape)]


@program()
def numpy_arrays_become_conditions(tf, np):
    return [
        tf.where(np.array([1, 0]), [1.0, 2.0], [3.0, 4.0]),
        tf.reduce_all(np.zeros([0])),
        tf.reduce_any(np.array([0.0, 2.0])),
        tf.logical_not(np.array([1, 0])),
    ]


@program()
def numbers_that_do_not_fit_wrap_or_are_cast(tf, np):
    return [
        tf.one_hot([1, 0], 3, dtype=tf.float16, on_value=np.float32(1.0), off_value=np.float32(0.0)),
        raises(lambda: tf.pad(tf.constant([1, 2], tf.uint8), [[1, 1]], constant_values=-123)),
        raises(lambda: tf.constant([0, -1], tf.uint8)),
        raises(lambda: tf.add(tf.constant([1, 2], tf.int8), [129, 130])),
        tf.constant([120], tf.int8) + tf.constant([10], tf.int8),
        tf.constant([1], tf.uint8) - tf.constant([2], tf.uint8),
        tf.constant([200], tf.uint8) * tf.constant([2], tf.uint8),
        -tf.constant([-128], tf.int8),
        tf.abs(tf.constant([-128], tf.int8)),
    ]


# --------------------------------------------------------------------------------------------------------- arithmetic
@program()
def means_of_long_rows_of_small_integers(tf, np):
    return [
        tf.reduce_mean(tf.zeros([128], tf.int8)),
        tf.reduce_mean(tf.fill([256], tf.constant(3, tf.uint8))),
        tf.reduce_mean(tf.zeros([32768], tf.int16)),
        tf.reduce_mean(tf.constant([100, 100, 100], tf.int8)),
        tf.reduce_mean(tf.constant([-100, -100, -101], tf.int8)),
        tf.reduce_mean(tf.constant([[2**31 - 1, 2**31 - 1], [-1, 0]]), axis=1),
        tf.reduce_mean(tf.fill([3], tf.constant(2**32 - 1, tf.uint32)), keepdims=True),
        tf.function(lambda x: tf.reduce_mean(x))(tf.constant([127, 127], tf.int8)),
    ]


@program()
def dtypes_of_gathers_norms_and_products(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [
        tf.gather(x, tf.constant([1, 0], tf.int16)),
        tf.gather_nd(x, tf.constant([[1], [0]], tf.int16)),
        tf.gather_nd(x[None], [[[1, 0]]], batch_dims=1),
        tf.scatter_nd([[1], [3]], [True, True], [4]),
        str(tf.scatter_nd([[1], [1], [2]], ["a", "b", "c"], [4]).numpy()),
        tf.math.reduce_euclidean_norm(tf.constant([3, 4])),
        tf.math.reduce_euclidean_norm(tf.constant([3 + 4j, 0j])),
        tf.math.squared_difference(tf.constant([1 + 2j]), tf.constant([2 - 1j])),
        tf.argmax([1.0, 3.0], output_type=tf.uint16),
        tf.matmul(tf.constant([[100, 100]], tf.int8), tf.constant([[100], [100]], tf.int8), output_type=tf.int32),
        str(tf.one_hot([1], 2, on_value="yes", off_value="no", dtype=tf.string).numpy()),
        str(tf.pad(tf.constant(["a"]), [[1, 0]], constant_values="z").numpy()),
    ]


@program()
def strings_are_added(tf, np):
    added = [tf.constant("a") + tf.constant("b"), "x" + tf.constant(["y", "z"]), tf.constant(["a", "b"])[0]]
    return [str(strings.numpy()) for strings in added]


# ---------------------------------------------------------------------------------------------------------- gradients
@program()
def a_custom_gradient_is_not_called_where_nothing_watched_reaches_it(tf, np):
    calls = []

    @tf.custom_gradient
    def double(x):
        def gradient(upstream):
            calls.append("called")
            return 2.0 * upstream

        return 2.0 * x, gradient

    x, z = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(z) + x
    return [tape.gradient(y, x), calls]


@program()
def recomputed_functions_take_dicts_of_variables(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(5.0)
    table = {v.ref(): tf.constant(3.0), w.ref(): tf.constant(7.0)}

    def function(values, x):
        return values[v.ref()] * x * v + values[w.ref()] * w

    x = tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.recompute_grad(function)(table, x)
    return [y, tape.gradient(y, [x, v, w])]


@program()
def tangents_of_python_numbers_are_zero(tf, np):
    @tf.function
    def function(k, y):
        return tf.cond(k > 0, lambda: y * 2.0, lambda: 0.0)

    y = tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as accumulator:
        first, second = function(tf.constant(1), y), function(tf.constant(-1), y)
        return [accumulator.jvp(first), accumulator.jvp(second)]


@program()
def sparse_gradients_are_indexed_slices(tf, np):
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(x, [1, 1]) ** 2
    gradient = tape.gradient(y, x)
    clipped = tf.clip_by_value(gradient, -1.0, 7.0)
    return [type(gradient) is tf.IndexedSlices, type(clipped) is tf.IndexedSlices, clipped.values, clipped.indices]


# ------------------------------------------------------------------------------------------------------------ objects
@program()
def a_tensor_that_left_its_function_has_no_value(tf, np):
    leaked = []

    @tf.function
    def function(x):
        leaked.append(x + 1.0)
        return x

    function(tf.constant(1.0))
    return [raises(lambda: leaked[0].numpy())]


@program()
def variables_of_any_shape(tf, np):
    v = tf.Variable(1.0, shape=tf.TensorShape(None))
    v.assign([[1.0, 2.0]])
    shapes = [v.shape.rank, v.read_value()]
    v.assign(3.0)
    return [*shapes, v.read_value(), raises(lambda: v.assign("a"))]


@program()
def operators_that_other_objects_refuse(tf, np):
    class Refuses:
        def __radd__(self, other):
            return NotImplemented

    x = tf.constant(1.0)
    return [
        raises(lambda: x + Refuses()),
        tf.__version__.startswith("2"),
        x.cpu().numpy(),
        tf.Variable(1.0).initializer is None,
    ]


@program()
def reductions_that_are_refused_name_their_own_call(tf, np):
    x = tf.constant([[1.0, 2.0]])
    return [
        raises(lambda: tf.reduce_prod(x, axis=3)),
        raises(lambda: tf.reduce_mean(x, axis=[0, 0])),
        raises(lambda: tf.gather([[1.0, 2.0]], [0], batch_dims=3)),
        raises(lambda: tf.gather(x, [5]).numpy()),
    ]
