"""tf.function: sizes and numbers of iterations that follow from a tensor among the arguments."""

from conformance.program import program


def tables(tf):
    return tf.constant([[((7 * i + 3 * j) % 11) - 4.5 for j in range(5)] for i in range(5)])


def following(tf, table, token, i):
    """The next token of a decoder."""
    return tf.argmax(tf.gather(table, token) + tf.sin(tf.cast(i, tf.float32)) * table[i % 5])


def several(tf, f, numbers=(6, 2, 0, 6)):
    """Its results for several numbers of iterations, and how often it was traced."""
    return [f(tf.constant(1, tf.int64), tf.constant(n)) for n in numbers], f.experimental_get_tracing_count()


@program()
def sz_array_of_a_size(tf, np):
    table = tables(tf)

    @tf.function
    def decode(start, n):
        out, token = tf.TensorArray(tf.int64, size=n + 1), start
        out = out.write(0, start)
        for i in tf.range(n):
            token = following(tf, table, token, i)
            out = out.write(i + 1, token)
        return out.stack()

    return several(tf, decode)


@program()
def sz_array_that_grows_and_a_break(tf, np):
    table = tables(tf)

    @tf.function
    def decode(start, n):
        out, token = tf.TensorArray(tf.int64, size=0, dynamic_size=True), start
        for i in tf.range(n):
            token = following(tf, table, token, i)
            out = out.write(i, token)
            if token == 4:
                break
        return out.stack()

    return several(tf, decode, (6, 2, 6))


@program()
def sz_zeros_and_updates(tf, np):
    table = tables(tf)

    @tf.function
    def decode(start, n):
        out, token = tf.zeros([n + 1, 2], tf.int64), start
        for i in tf.range(n):
            token = following(tf, table, token, i)
            out = tf.tensor_scatter_nd_update(out, [[i + 1]], [[token, token + 1]])
        return out

    return several(tf, decode)


@program()
def sz_concatenation(tf, np):
    table = tables(tf)

    @tf.function
    def decode(start, n):
        out, token, i = tf.reshape(start, [1]), start, 0
        while i < n:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(out, tf.TensorShape([None]))])
            token = following(tf, table, token, i)
            out = tf.concat([out, [token]], 0)
            i += 1
        return out

    return several(tf, decode)


@program()
def sz_while_loop(tf, np):
    table = tables(tf)

    @tf.function
    def decode(start, n):
        def body(i, token, out):
            token = following(tf, table, token, i)
            return i + 1, token, tf.concat([out, [token]], 0)

        shapes = [tf.TensorShape([]), tf.TensorShape([]), tf.TensorShape([None])]
        loop_vars = [tf.constant(0), start, tf.reshape(start, [1])]
        return tf.while_loop(lambda i, token, out: i < n, body, loop_vars, shape_invariants=shapes)

    return several(tf, decode)


@program()
def sz_gradient(tf, np):
    x = tf.Variable(1.5)

    @tf.function
    def powers(n):
        out, y = tf.TensorArray(tf.float32, size=n), tf.ones([])
        for i in tf.range(n):
            y = y * x
            out = out.write(i, y)
        return out.stack()

    results = []
    for n in (3, 5, 3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(powers(tf.constant(n)))
        results.append((loss, tape.gradient(loss, x)))
    return results


@program()
def sz_gradient_inside(tf, np):
    @tf.function
    def slope(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.cast(tf.range(n), tf.float32) * x**2)
        return tape.gradient(y, x), tf.ones([n, n * 2])

    return [slope(tf.constant(3.0), tf.constant(n)) for n in (2, 4)]


@program()
def sz_nested_functions(tf, np):
    @tf.function
    def ramp(n, step):
        return step * tf.cast(tf.range(n), tf.float32)

    @tf.function
    def both(n, step):
        return ramp(n + 1, step), ramp(2 * n, -step)

    results = [both(tf.constant(n), tf.constant(0.5)) for n in (1, 3, 1)]
    return results, both.experimental_get_tracing_count()


@program()
def sz_input_signature(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
    def tiled(x, n):
        return tf.reshape(tf.tile(x, [n]), [n, -1])

    results = [tiled([1.0, 2.0], n) for n in (2, 3)] + [tiled(tf.constant([1.0]), tf.constant(2))]
    return results, tiled.experimental_get_tracing_count()


@program()
def sz_method_and_keywords(tf, np):
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable([2.0])

        @tf.function
        def roll(self, x, *, lengths):
            return tf.concat([tf.fill([lengths["before"]], 0.0), self.w * x, tf.ones([lengths["after"]])], 0)

    model = Model()
    return [
        model.roll(tf.constant(3.0), lengths={"before": tf.constant(before), "after": tf.constant(after)})
        for before, after in ((1, 2), (0, 1), (1, 2))
    ]


@program()
def sz_branches(tf, np):
    @tf.function
    def f(x, n):
        if x > 0.0:
            y = tf.reduce_sum(tf.ones([n])) * x
        else:
            y = x
        return y

    return [f(tf.constant(x), tf.constant(n)) for x, n in ((2.0, 3), (-2.0, 3), (2.0, 4))]
