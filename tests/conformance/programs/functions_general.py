"""tf.function: sizes that are not known, counts of traces, recursion, tensors that leak, names of graphs."""

from conformance.probes import gradients, raises
from conformance.program import program


@program()
def a_signature_with_unknown_sizes(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        total = tf.zeros([2])
        for i in tf.range(n):
            total += x[i]
        if n > 1:
            total = total * 2.0
        return total, tf.shape(x)[0], tf.reduce_mean(x)

    results = [f(tf.ones([rows, 2]), n) for rows, n in ((3, 2), (1, 1), (2, 2))]
    return [
        results,
        f.experimental_get_tracing_count(),
        gradients(tf, lambda x: f(x, 2)[0], [[1.0, 2.0], [3.0, 4.0]]),
        raises(lambda: f(tf.ones([3, 3]), 1)),
        raises(lambda: f(tf.ones([3]), 1)),
    ]


@program()
def a_concrete_function_of_unknown_sizes(tf, np):
    @tf.function
    def f(x, y=2.0):
        return {"a": x * y, "b": tf.reduce_sum(x, 0), "c": tf.reshape(x, [-1])}

    concrete = f.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
    count = f.experimental_get_tracing_count()
    results = [concrete(tf.ones([rows, 3])) for rows in (1, 4)]
    return [
        count,
        results,
        f.experimental_get_tracing_count(),
        f(tf.ones([7, 3]))["b"],
        f.experimental_get_tracing_count(),
        concrete.output_shapes,
        raises(lambda: concrete(tf.ones([1, 3], tf.int32))),
    ]


@program()
def unknown_ranks(tf, np):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.reduce_sum(x * x)

    return [f(1.0), f([1.0, 2.0]), f([[1.0, 3.0]]), f.experimental_get_tracing_count()]


@program()
def reduced_retracing(tf, np):
    @tf.function(reduce_retracing=True)
    def f(x):
        return tf.reduce_sum(x)

    counts = []
    for shape in ([1], [2], [3], [4], [2, 2], [3, 2], [5]):
        f(tf.zeros(shape))
        counts.append(f.experimental_get_tracing_count())
    f(tf.zeros([1], tf.int32))
    counts.append(f.experimental_get_tracing_count())
    return counts


@program()
def recursion_on_a_tensor(tf, np):
    @tf.function
    def factorial(n):
        if n <= 1:
            return tf.constant(1)
        return n * factorial(n - 1)

    def run():
        try:
            factorial(tf.constant(5))
        except Exception:
            return "raised"
        return "returned"

    return [run(), factorial.python_function(1)]


@program()
def a_tensor_that_leaks(tf, np):
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x + 1.0)
        return x

    f(tf.constant(1.0))
    return [
        raises(lambda: leaked[0].numpy(), "has no attribute 'numpy'"),
        raises(lambda: leaked[0] + 1.0, "out of scope"),
    ]


@program()
def orders_of_a_graph(tf, np):
    v = tf.Variable(1.0)
    called = []

    @tf.function
    def f(x):
        with tf.control_dependencies([v.assign_add(x)]):
            y = v * 2.0
        tf.group(v.assign(y), v.assign_add(1.0))
        tf.no_op()
        return y

    with tf.control_dependencies([lambda: called.append(1)]):
        z = v + 1.0
    with tf.control_dependencies(None):
        z = z + 1.0
    return [f(tf.constant(3.0)), v, z, called, tf.group(), tf.no_op()]


@program()
def printed_signatures(tf, np):
    @tf.function
    def f(x, y=2.0, *, k=None):
        return {"a": x * y, "b": [x]}

    f(tf.constant([1.0, 2.0]))
    f(tf.constant([[1.0, 2.0]]), 3.0)
    concrete = f.get_concrete_function(tf.TensorSpec([None, 3]))
    graph = concrete.graph
    return [
        f.pretty_printed_concrete_signatures(),
        concrete.pretty_printed_signature(verbose=False),
        graph.name,
        len(graph.inputs),
        len(graph.outputs),
        [each.shape for each in concrete.inputs],
    ]


@program()
def a_loop_over_a_dataset(tf, np):
    v = tf.Variable(0.0)

    @tf.function
    def total(dataset, limit):
        s = 0.0
        for x, y in dataset:
            s += tf.reduce_sum(x * y)
            v.assign_add(1.0)
            if s > limit:
                s = s * 0.5
        return s

    data = tf.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])).batch(2)
    return [total(data, tf.constant(4.0)), total(data, tf.constant(100.0)), v]


@program()
def results_that_become_tensors(tf, np):
    @tf.function
    def f(x):
        return {"shape": x.shape, "sizes": x.shape.as_list(), "rank": x.shape.rank, "array": np.arange(3), "none": None}

    results = f(tf.ones([2, 3]))
    return [results, results["shape"].dtype.name, tf.Variable([1.0]).is_initialized()]


@program()
def dtypes_that_do_not_fit_in_a_function(tf, np):
    def refused(function, *args):
        return raises(lambda: tf.function(function)(*args))

    whole, half, wide = tf.constant([1]), tf.constant([1.0], tf.float16), tf.constant([1.0], tf.float64)
    return [
        refused(tf.sin, whole),
        refused(tf.nn.softmax, whole),
        refused(lambda x, y: x + y, half, wide),
        refused(tf.matmul, tf.ones([2, 2], tf.bool), tf.ones([2, 2], tf.bool)),
        refused(tf.less, tf.constant([True]), tf.constant([False])),
        refused(tf.reduce_sum, tf.constant([True])),
    ]


@program()
def a_reshape_of_unknown_sizes_that_must_fit(tf, np):
    weight = tf.Variable(2.0)

    @tf.function
    def f(x, i):
        s = i.shape[:2] + x.shape[1:]
        y = x * weight
        if s.is_fully_defined():
            return tf.reshape(y, s)
        return tf.reshape(y, tf.concat([tf.shape(i)[:2], tf.shape(x)[1:]], 0))

    concrete = f.get_concrete_function(tf.TensorSpec([None] * 3), tf.TensorSpec([None] * 3))
    return [
        concrete.output_shapes,
        concrete.output_dtypes,
        len(concrete.variables),
        concrete(tf.ones([4, 2, 2]), tf.ones([2, 2, 5])),
        concrete(tf.ones([6, 1, 2]), tf.ones([2, 3, 5])).shape,
    ]
