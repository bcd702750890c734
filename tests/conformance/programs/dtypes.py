"""Dtypes: of constants, of mixed operands, of results and of gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program


@program()
def of_python_values(tf, np):
    values = [1, -7, 1.5, True, 2**31, 1j, [1, 2], [1, 2.5], [1, True], [[True, False]], [], range(3), (1.0, 2.0)]
    return [tf.constant(value) for value in values]


@program()
def of_numpy_values(tf, np):
    dtypes = [
        np.float16,
        np.float32,
        np.float64,
        np.int8,
        np.int32,
        np.int64,
        np.uint8,
        np.bool_,
        np.complex64,
        np.complex128,
    ]
    return [tf.constant(np.array([1, 0], dtype=dtype)) for dtype in dtypes] + [
        tf.constant(np.float32(1.5)),
        tf.constant(np.int64(3)),
    ]


@program()
def an_asked_for_dtype(tf, np):
    return [
        tf.constant([1, 2], dtype=tf.float32),
        tf.constant([1.5], dtype="float64"),
        tf.constant(np.array([1.7]), dtype=tf.int32),
        tf.constant(1, tf.float16),
        tf.constant([1.5, -2.0], dtype=tf.bfloat16),
        tf.constant(2.0, shape=[2, 2]),
        tf.constant([1, 2, 3, 4], shape=(2, 2)),
    ]


@program()
def constants_that_cannot_be(tf, np):
    return [
        raises(lambda: tf.constant([1.5], dtype=tf.int32)),
        raises(lambda: tf.constant(1.5, dtype="nonsense")),
        raises(lambda: tf.constant(None)),
        raises(lambda: tf.constant([[1.0, 2.0], [3.0]])),
        raises(lambda: tf.constant([1.0, "a"])),
        raises(lambda: tf.constant({"a": 1.0})),
        raises(lambda: tf.constant([1.0, 2.0], shape=[3])),
        raises(lambda: tf.constant(tf.constant([1]), dtype=tf.float32)),
    ]


@program()
def convert_to_tensor(tf, np):
    v = tf.Variable([1.0, 2.0])
    return [
        tf.convert_to_tensor([1, 2]),
        tf.convert_to_tensor([1], dtype=tf.float32),
        tf.convert_to_tensor(np.array([1.5]), dtype=tf.float32),
        tf.convert_to_tensor(v),
        tf.convert_to_tensor([tf.constant([1.0]), tf.constant([2.0])]),
        raises(lambda: tf.convert_to_tensor(tf.constant([1]), dtype=tf.float32)),
        raises(lambda: tf.convert_to_tensor(v, dtype=tf.float64)),
        raises(lambda: tf.convert_to_tensor([1.5], dtype=tf.int32)),
        raises(lambda: tf.convert_to_tensor(None)),
    ]


@program()
def python_scalars_take_the_tensors_dtype(tf, np):
    out = []
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64):
        x = tf.constant([1.0, 2.0], dtype=dtype)
        out.append([x + 1, 2 * x, x - 0.5, 1.5 / x, x**2])
    ints = [tf.constant([5, 7], dtype=dtype) for dtype in (tf.int32, tf.int64, tf.uint8)]
    return [out, [[x + 1, 3 * x, x // 2, x % 3, x == 5] for x in ints]]


@program()
def python_bools_count_as_numbers(tf, np):
    return [tf.constant([1.0, 2.0]) + True, tf.constant([3, 4]) * False]


@program()
def numpy_operands_take_the_tensors_dtype(tf, np):
    f, i = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    return [
        f + np.array([1.5, 2.5]),
        i + np.array([1.5, 2.5]),
        f * np.array([2, 3]),
        np.array([1.5, 2.5]) + i,
        np.array([1.5, 2.5]) - f,
        np.float64(3.0) * f,
        f / np.int64(2),
        f * np.float32(0.5),
        np.array([0.5, 3.0]) < f,
        np.array([1.0, 3.0]) == f,
    ]


@program()
def numpy_operands_of_variables(tf, np):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = np.array([3.0, 4.0]) * v + v * np.array([1, 2]) - np.float64(1.0)
    return [y, tape.gradient(y, v)]


@program()
def mixed_tensors_raise(tf, np):
    f, i, d = tf.constant([1.0, 2.0]), tf.constant([1, 2]), tf.constant([1.0, 2.0], dtype=tf.float64)
    pairs = {"float+int": (f, i), "int+float": (i, f), "float+double": (f, d), "variable+double": (tf.Variable(f), d)}
    out = {}
    for name, (a, b) in pairs.items():
        calls = [lambda a=a, b=b: a + b, lambda a=a, b=b: a * b, lambda a=a, b=b: a / b, lambda a=a, b=b: a < b]
        out[name] = [raises(call) for call in calls]
    return out


@program()
def a_python_float_beside_ints_raises(tf, np):
    i = tf.constant([1, 2])
    calls = [
        lambda: i + 1.5,
        lambda: 1.5 + i,
        lambda: i - 1.5,
        lambda: i * 1.0,
        lambda: 2.0 / i,
        lambda: i / 2.0,
        lambda: i // 2.0,
        lambda: i**0.5,
        lambda: i < 1.5,
        lambda: i == 1.0,
        lambda: tf.maximum(i, 1.5),
    ]
    return [raises(call) for call in calls]


@program()
def mixed_arguments_of_functions_raise(tf, np):
    f, i = tf.constant([1.0]), tf.constant([1])
    calls = [
        lambda: tf.add(f, i),
        lambda: tf.multiply(i, f),
        lambda: tf.maximum(f, i),
        lambda: tf.pow(f, i),
        lambda: tf.matmul([[1.0]], tf.constant([[1]])),
        lambda: tf.concat([f, i], 0),
        lambda: tf.stack([f, i]),
        lambda: tf.add_n([f, i]),
        lambda: tf.where([True], f, i),
        lambda: tf.equal(f, i),
        lambda: tf.math.squared_difference(f, i),
    ]
    return [raises(call) for call in calls]


@program()
def ops_that_refuse_a_dtype(tf, np):
    i, b = tf.constant([4]), tf.constant([True])
    calls = [
        lambda: tf.sqrt(i),
        lambda: tf.exp(i),
        lambda: tf.tanh(i),
        lambda: tf.sigmoid(i),
        lambda: tf.nn.softmax(i),
        lambda: tf.math.log(i),
        lambda: tf.floor(i),
        lambda: b + b,
        lambda: -b,
        lambda: tf.reduce_sum(b),
        lambda: tf.reduce_any(i),
        lambda: tf.logical_and(i, i),
        lambda: tf.nn.relu(b),
        lambda: tf.constant([1j]) < tf.constant([1j]),
        lambda: tf.reduce_max(tf.constant([1j])),
    ]
    return [raises(call) for call in calls]


@program()
def ints_divided(tf, np):
    pairs = [
        (tf.constant([7, -7], dtype=dtype), tf.constant([2, 2], dtype=dtype)) for dtype in (tf.int32, tf.int64, tf.int8)
    ]
    return [[a / b for a, b in pairs], tf.constant(7) / 2, 7 / tf.constant(2), tf.divide(7, 2), tf.constant(7) / 0]


@program()
def ints_divided_and_differentiated(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        half = tf.constant(1) / tf.constant(2)
        y = x * tf.cast(half, tf.float32)
    return [half, tape.gradient(y, x)]


@program()
def integer_arithmetic(tf, np):
    a, b = tf.constant([7, -7, 7, -7]), tf.constant([2, 2, -2, -2])
    return [a // b, a % b, a * b, a - b, a**2, abs(a), -a, tf.sign(a), tf.maximum(a, b), tf.square(a), tf.round(a)]


@program()
def integer_overflow_wraps(tf, np):
    return [
        tf.constant(2**31 - 1) + 1,
        tf.constant(250, tf.uint8) + tf.constant(10, tf.uint8),
        tf.abs(tf.constant(-(2**31))),
    ]


@program()
def integer_errors(tf, np):
    a = tf.constant([7, 8])
    return [
        raises(lambda: (a // 0).numpy(), "Integer division by zero"),
        raises(lambda: (a % tf.constant([0, 1])).numpy(), "Integer division by zero"),
        raises(lambda: (a**-1).numpy(), "Integers to negative integer powers are not allowed"),
    ]


@program()
def means_of_ints(tf, np):
    return [tf.reduce_mean(tf.constant(x)) for x in ([1, 2], [-1, -2], [7, 0, 0], [3, 3])] + [
        tf.reduce_sum(tf.constant([200, 100], tf.uint8))
    ]


@program()
def casts(tf, np):
    x = tf.constant([1.7, -1.7, 0.0])
    return [
        [
            tf.cast(x, dtype)
            for dtype in (tf.int32, tf.int64, tf.bool, tf.float16, tf.float64, tf.bfloat16, tf.complex64)
        ],
        tf.cast([True, False], tf.float32),
        tf.cast(3, "float32"),
        tf.cast(np.array([1.5]), tf.float32),
        tf.cast(tf.constant([300]), tf.uint8),
        tf.cast(tf.Variable([1.5]), tf.int32),
        raises(lambda: tf.cast(x, "nonsense")),
        raises(lambda: tf.cast(x, None)),
    ]


@program()
def gradients_through_casts(tf, np):
    x = tf.Variable([1.5, -2.0])
    out = []
    for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.complex64):
        with tf.GradientTape() as tape:
            y = tf.cast(x * x, dtype)
            y = tf.cast(tf.math.real(y), tf.float32) if dtype.is_complex else y * tf.constant(2.0, dtype)
        out.append([y, tape.gradient(y, x)])
    return out


@program()
def gradients_keep_the_dtype(tf, np):
    out = []
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        x = tf.Variable([0.5, 1.5], dtype=dtype)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.exp(x) * x + tf.tanh(x))
        out.append([y, tape.gradient(y, x)])
    return out


@program()
def double_precision_is_kept(tf, np):
    x = tf.constant([0.1, 0.2, 0.3], dtype=tf.float64)
    return derivatives(tf, lambda x: tf.exp(tf.sin(x)) / (1.0 + x * x), x)


@program()
def matmul_in_half_precision(tf, np):
    out = []
    for dtype in (tf.float16, tf.bfloat16, tf.float64):
        a = tf.Variable([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
        with tf.GradientTape() as tape:
            y = tf.matmul(a, a)
        out.append([y, tape.gradient(y, a)])
    return out


@program()
def complex_products(tf, np):
    z = np.array([1.0 + 2.0j, -0.5 + 0.25j], dtype=np.complex64)
    functions = {
        "square": lambda z: z * z,
        "times_conjugate": lambda z: z * tf.math.conj(z),
        "quotient": lambda z: (z + 1.0) / (z - 2.0),
        "exp": tf.exp,
        "negative": lambda z: -z * 3.0,
    }
    return {name: derivatives(tf, function, z) for name, function in functions.items()}


@program()
def complex_parts(tf, np):
    z = np.array([3.0 + 4.0j, -1.0 + 0.5j], dtype=np.complex64)
    functions = {"real": tf.math.real, "imag": tf.math.imag, "abs": tf.abs, "conj": tf.math.conj}
    return {name: derivatives(tf, function, z) for name, function in functions.items()}


@program()
def complex_from_two_reals(tf, np):
    def spiral(a, b):
        z = tf.complex(a, b)
        return tf.abs(z * z + 1.0)

    return derivatives(tf, spiral, [1.0, 0.5], [2.0, -1.0])


@program()
def complex_128(tf, np):
    z = tf.Variable(np.array([1.0 + 1.0j]))
    with tf.GradientTape() as tape:
        y = tf.math.real(z * z * z)
    return [y, tape.gradient(y, z), tf.complex(tf.constant(1.0, tf.float64), tf.constant(2.0, tf.float64))]


@program()
def complex_matmul(tf, np):
    a = tf.constant(np.array([[1.0 + 1.0j, 2.0]], dtype=np.complex64))
    return [tf.matmul(a, a, adjoint_a=True), tf.matmul(a, a, transpose_b=True), tf.transpose(a, conjugate=True)]


@program()
def dtypes_of_index_results(tf, np):
    x = tf.constant([[1.0, 5.0], [7.0, 2.0]])
    return [
        tf.argmax(x),
        tf.argmin(x, axis=1),
        tf.argmax(x, output_type=tf.int32),
        tf.range(3),
        tf.shape(x),
        tf.size(x),
        tf.rank(x),
    ]


@program()
def a_dtype_object(tf, np):
    d = tf.float32
    return [
        [d.name, d.is_floating, d.is_integer, d.is_complex, d.size, tf.int64.is_integer, tf.complex64.is_complex],
        [d == "float32", d == np.float32, d != tf.float64, d is tf.as_dtype("float32"), tf.as_dtype(np.int64)],
        [np.zeros(2, d.as_numpy_dtype), tf.double == tf.float64, tf.half == tf.float16, {tf.float32: "key"}[d]],
    ]


@program()
def complex_numbers_are_true_by_their_real_parts(tf, np):
    return [tf.cast(tf.constant([1j, 1 + 0j, 0j, -2 + 1j], dtype), tf.bool) for dtype in (tf.complex64, tf.complex128)]
