"""The operators of tensors and variables, their reflected forms, indexing, and the rest of the Python protocol."""

from conformance.probes import derivatives, raises
from conformance.program import program


@program()
def arithmetic(tf, np):
    a, b = tf.constant([7.0, -4.0]), tf.constant([2.0, 3.0])
    return [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, abs(a)]


@program()
def arithmetic_of_variables(tf, np):
    a, b = tf.Variable([7.0, -4.0]), tf.Variable([2.0, 3.0])
    return [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, abs(a), a + tf.constant(1.0), tf.constant(1.0) - b]


@program()
def reflected(tf, np):
    out = []
    for x in (tf.constant([2.0, 4.0]), tf.Variable([2.0, 4.0])):
        scalars = [1.0 + x, 1 - x, 3 * x, 8.0 / x, 9 // x, 7 % x, 2.0**x]
        lists = [[1.0, 2.0] * x, (5, 6) - x, [8.0, 2.0] / x, [1.0, 2.0] + x]  # noqa: RUF005 - a sum of numbers
        out.append([scalars, lists])
    return out


@program()
def gradients_of_every_arithmetic_operator(tf, np):
    functions = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "truediv": lambda a, b: a / b,
        "mod": lambda a, b: a % b,
        "pow": lambda a, b: a**b,
        "neg": lambda a, b: -a * b,
        "abs": lambda a, b: abs(a) * b,
        "rsub": lambda a, b: 3.0 - a * b,
        "rtruediv": lambda a, b: 2.0 / (a * b),
        "rpow": lambda a, b: 1.5 ** (a + b),
    }
    return {name: derivatives(tf, function, [1.5, 2.5], [0.7, 3.2]) for name, function in functions.items()}


@program()
def comparisons(tf, np):
    a, b = tf.constant([1.0, 2.0, 3.0]), tf.constant([3.0, 2.0, 1.0])
    return [a < b, a <= b, a > b, a >= b, a == b, a != b, a < 2, 2 < a, a == [1.0, 2.0, 2.0], 2.0 >= a]


@program()
def comparisons_that_do_not_fit(tf, np):
    a, b = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
    return [a == b, a != b, a == None, a != None, raises(lambda: a < b), raises(lambda: tf.equal(a, b))]  # noqa: E711


@program()
def a_chained_comparison(tf, np):
    x = tf.constant(5)
    return [1 < x < 9, bool(1 < x < 3), x > 2 and x < 7]


@program()
def logic(tf, np):
    a, b = tf.constant([True, True, False, False]), tf.constant([True, False, True, False])
    return [a & b, a | b, a ^ b, ~a, a & True, False | b, a == b, a != b]


@program()
def bits(tf, np):
    a, b = tf.constant([6, 5]), tf.constant([3, 1])
    return [a & b, a | b, a ^ b, ~a, a & 2]


@program()
def matmul(tf, np):
    a, v = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([[5.0], [6.0]])
    return [a @ v, a @ [[1.0], [2.0]], [[1.0, 2.0]] @ v, np.array([[1.0, 2.0]]) @ a, a @ np.eye(2), a @ a]


@program()
def matmul_that_does_not_fit(tf, np):
    a = tf.constant([[1.0, 2.0]])
    return [raises(lambda: a @ a), raises(lambda: a @ tf.constant([1.0, 2.0])), raises(lambda: a[0] @ a[0])]


@program()
def operands_that_do_not_fit(tf, np):
    a, b = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
    calls = [lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / b, lambda: a**b, lambda: tf.Variable(a) * b]
    return [raises(call, "Incompatible shapes: [2] vs. [3]") for call in calls]


@program()
def operands_that_are_no_numbers(tf, np):
    a = tf.constant([1.0, 2.0])
    return [raises(call) for call in (lambda: a + None, lambda: a * "x", lambda: {} - a, lambda: a / [None])]


@program()
def truth(tf, np):
    truths = [bool(tf.constant(value)) for value in (0, 1, 0.0, 2.5, True, [1.0], [])]
    return [truths, not tf.constant(0.0), raises(lambda: bool(tf.constant([1.0, 2.0])))]


@program()
def to_python_numbers(tf, np):
    x = tf.constant(2.7)
    return [float(x), int(x), int(tf.constant(3)), [10, 20, 30][tf.constant(1)], raises(lambda: float(tf.ones([2])))]


@program()
def lengths_and_iteration(tf, np):
    m = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a, b, c = m
    return [
        len(m),
        list(m),
        a + b + c,
        [len(row) for row in m],
        raises(lambda: len(m[0][0])),
        raises(lambda: list(m[0][0])),
    ]


@program()
def iteration_over_a_variable(tf, np):
    v = tf.Variable([1.0, 2.0])
    return [list(v), raises(lambda: iter(tf.Variable(1.0)))]


@program()
def hashing(tf, np):
    x = tf.constant(1.0)
    table = {x.ref(): "found"}
    return [raises(lambda: hash(x), "unhashable"), raises(lambda: {x: 1}), table[x.ref()], x.ref().deref() is x]


@program()
def numpys_view_of_a_tensor(tf, np):
    x = tf.constant([[1.0, 4.0], [9.0, 16.0]])
    return [
        np.asarray(x),
        np.sqrt(x),
        np.sum(x),
        np.array([x[0], x[1]]),
        np.asarray(x, dtype=np.float64),
        np.mean(x, axis=0),
    ]


@program()
def shape_and_dtype(tf, np):
    x = tf.zeros([2, 3])
    rows, columns = x.shape
    return [
        x.shape,
        x.shape[0],
        x.shape[-1],
        rows * columns,
        x.shape == (2, 3),
        x.dtype,
        x.ndim,
        x.get_shape(),
        len(x.shape),
    ]


@program()
def tensor_shapes(tf, np):
    s = tf.TensorShape([2, 3])
    return [
        [s.as_list(), s.rank, s.num_elements(), s.is_fully_defined(), list(s), tuple(s), s[1:], s[0]],
        [
            s == [2, 3],
            s == (2, 4),
            s != (2, 3),
            s + [4],  # noqa: RUF005 - a shape, not a list
            s.concatenate([5]),
            tf.TensorShape([]).as_list(),
            bool(tf.TensorShape([])),
        ],
        [np.zeros(s).shape == (2, 3), tf.zeros(s), tf.reshape(tf.range(6), s)],
    ]


@program()
def what_is_a_tensor(tf, np):
    x, v = tf.constant(1.0), tf.Variable(1.0)
    return [
        [isinstance(x, tf.Tensor), isinstance(v, tf.Tensor), isinstance(x, tf.Variable), isinstance(v, tf.Variable)],
        [tf.is_tensor(x), tf.is_tensor(v), tf.is_tensor(1.0), tf.is_tensor(np.ones(2))],
        [
            type(x).__name__,
            type(v).__name__,
            type(v + 1.0).__name__,
            type(x.numpy()).__name__,
            type(tf.ones([1]).numpy()).__name__,
        ],
    ]


@program()
def indexing(tf, np):
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    return [
        x[0],
        x[1, 2],
        x[1, 2, 3],
        x[-1, -2],
        x[:, 1],
        x[..., 0],
        x[0, ..., 1],
        x[:, :, 1:3],
        x[:, ::2, ::-1],
        x[1:, :2, -2:],
        x[5:],
        x[0:1][0],
    ]


@program()
def indexing_with_new_axes(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    items = [x[None], x[:, None], x[..., tf.newaxis], x[None, ..., None], x[0, None], x[tf.newaxis, 1, :, None]]
    return [[item, item.shape] for item in items]


@program()
def indexing_with_tensors_and_numpy(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return [
        x[tf.constant(1)],
        x[tf.constant(1) :],
        x[np.int64(2)],
        x[tf.constant(2, tf.int64), 1],
        x[[2, 1]],
        x[tf.Variable(0)],
    ]


@program()
def gradients_of_indexing(tf, np):
    functions = [
        lambda x: x[0],
        lambda x: x[1, 2],
        lambda x: x[:, 1:],
        lambda x: x[..., ::-1],
        lambda x: x[::2, ::2],
        lambda x: x[:, None] * x[1],
        lambda x: x[-1, -2:] ** 2,
        lambda x: x[0:0],
    ]
    return [derivatives(tf, function, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) for function in functions]


@program()
def overlapping_slices_add_up(tf, np):
    x = tf.Variable([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x[1:] * x[:-1]) + x[0] * 10.0 + x[-1] ** 2
    return [y, tape.gradient(y, x)]


@program()
def indices_that_do_not_fit(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    calls = [lambda: x[2], lambda: x[0, 5], lambda: x[0, 0, 0], lambda: x[-3], lambda: x[0, 0][0], lambda: x[::0]]
    kinds = [lambda: x[1.0], lambda: x["a"], lambda: x[1.5:], lambda: x[tf.constant(1.0)], lambda: x[[0, 1], [1, 0]]]
    return [[raises(call) for call in calls], [raises(call, "Only integers, slices") for call in kinds]]


@program()
def tensors_cannot_be_changed(tf, np):
    x = tf.constant([1.0, 2.0])

    def store():
        x[0] = 5.0

    def rebind():
        y = x
        y += 1.0
        return y

    return [raises(store), rebind(), x]


@program()
def attributes_that_do_not_exist(tf, np):
    x = tf.constant([1.0, 2.0])
    return [
        raises(call) for call in (lambda: x.nonsense, lambda: x.mean(), lambda: x.reshape([2, 1]), lambda: tf.nonsense)
    ]
