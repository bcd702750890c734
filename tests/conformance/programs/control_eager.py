"""while_loop, cond, case and switch_case outside functions: what runs is what Python runs."""

from conformance.probes import message, raises
from conformance.program import program


@program()
def a_counted_loop(tf, np):
    x, w = tf.Variable(1.5), tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w + x), (tf.constant(0), w * x))
    return [y, tape.gradient(y, [x, w])]


@program()
def a_loop_whose_condition_is_a_value(tf, np):
    x = tf.Variable(1.1)
    with tf.GradientTape() as tape:
        (y,) = tf.while_loop(lambda y: tf.abs(y) < 10.0, lambda y: (y * 1.7 + x,), (x,))
    return [y, tape.gradient(y, x)]


@program()
def a_loop_without_a_trip(tf, np):
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        i, y = tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * w), (0, x))
    zero = tf.UnconnectedGradients.ZERO
    return [i, y, tape.gradient(y, [x, w]), tape.gradient(y, w, unconnected_gradients=zero)]


@program()
def maximum_iterations(tf, np):
    def run(most):
        return tf.while_loop(lambda i: True, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=most)

    return [run(3), run(0), run(-1), run(2.7), run(tf.constant(4)), message(lambda: run([2]))]


@program()
def maximum_iterations_calls_the_condition_once_more(tf, np):
    calls = []

    def cond(i):
        calls.append("cond")
        return i < 5

    def body(i):
        calls.append("body")
        return (i + 1,)

    out = tf.while_loop(cond, body, (tf.constant(0),), maximum_iterations=2)
    return [out, calls]


@program()
def the_body_is_python(tf, np):
    seen, x = [], tf.Variable(2.0)
    with tf.GradientTape() as tape:

        def body(i, y):
            seen.append(float(y))
            return i + 1, y * x if seen[-1] < 5.0 else y + x

        i, y = tf.while_loop(lambda i, y: i < 4, body, (0, x))
    return [seen, i, y, tape.gradient(y, x)]


@program()
def python_numbers_and_arrays_become_tensors(tf, np):
    return tf.while_loop(
        lambda i, s, a: i < 2, lambda i, s, a: (i + 1, s * 2.0, a + 1), (0, 1.0, np.array([1, 2], np.int64))
    )


@program()
def shapes_may_change(tf, np):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        (y,) = tf.while_loop(
            lambda y: tf.size(y) < 7, lambda y: (tf.concat([y, y * y], 0),), (x,), [tf.TensorShape([None])]
        )
    return [y, tape.gradient(y, x)]


@program()
def nested_structures(tf, np):
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        i, pair, rest = tf.while_loop(
            lambda i, pair, rest: i < 2,
            lambda i, pair, rest: (i + 1, Pair(pair.a * x, pair.b), {"c": [rest["c"][0] + pair.b], "d": (x,)}),
            (0, Pair(x, tf.constant(2.0)), {"c": [tf.zeros([2])], "d": (x,)}),
        )
    return [i, pair.a, pair.b, rest, tape.gradient([pair.a, rest["c"][0]], x)]


@program()
def the_result_has_the_bodys_containers(tf, np):
    def kind(loop_vars, body):
        return type(tf.while_loop(lambda i, j: i < 2, body, loop_vars)).__name__

    a = tf.constant(0)
    return [
        kind([a, a], lambda i, j: (i + 1, j)),
        kind((a, a), lambda i, j: [i + 1, j]),
        kind((a, a), lambda i, j: tf.stack([i + 1, j])),
        kind([a + 5, a], lambda i, j: (i + 1, j)),
        kind((a, a), lambda i, j: iter((i, j)) if False else (i + 1, j)),
    ]


@program()
def variables_as_loop_variables(tf, np):
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        (y,) = tf.while_loop(lambda y: y < 10.0, lambda y: (y * v,), (v,))
    return [y, tape.gradient(y, v), v]


@program()
def loops_in_loops(tf, np):
    x = tf.Variable(1.2)

    def inner(y):
        return tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, z * x), (0, y))[1]

    with tf.GradientTape() as tape:
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(y) + 1.0), (0, x))
    return [y, tape.gradient(y, x)]


@program()
def second_order_through_a_loop(tf, np):
    x = tf.Variable(1.3)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))
        g = inner.gradient(y, x)
    return [y, g, outer.gradient(g, x)]


@program()
def a_tape_inside_the_body(tf, np):
    def descend(i, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum((w - 3.0) ** 2)
        return i + 1, w - 0.1 * tape.gradient(loss, w)

    return tf.while_loop(lambda i, w: i < 20, descend, (0, tf.constant([1.0, -1.0])))


@program()
def a_variable_assigned_in_the_body(tf, np):
    v, x = tf.Variable(0.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:

        def body(i, y):
            v.assign_add(1.0)
            return i + 1, y * x + v

        _, y = tf.while_loop(lambda i, y: i < 3, body, (0, x))
    return [v, y, tape.gradient(y, [x, v])]


@program()
def wrong_loops(tf, np):
    a = tf.constant(0)
    loop = tf.while_loop
    return [
        message(lambda: loop(None, lambda i: i, (a,))),
        message(lambda: loop(lambda i: i < 3, 3, (a,))),
        message(lambda: loop(lambda i: i < 3, lambda i: i, (a,), parallel_iterations=0)),
        message(lambda: loop(lambda: True, list, [])),
        message(lambda: loop(lambda: True, list, None)),
        message(lambda: loop(lambda i: i < 3, lambda i: i + 1, a)),
        message(lambda: loop(lambda i: i < 3, lambda i: i + 1, [a])),
        message(lambda: loop(lambda i: i < 3, lambda i: None, (a,))),
        message(lambda: loop(lambda i: i < 3, lambda i: (i + 1,), (tf.constant([0, 1]),))),
        message(lambda: loop(lambda i, j: i < 3, lambda i, j: (i + 1,), (a, a))),
        message(lambda: loop(lambda i, j: i < 3, lambda i, j: (i + 1, (j,)), (a, a))),
        message(lambda: loop(lambda i: i < 3, lambda i: i + 1, [a], maximum_iterations=2)),
        message(lambda: loop(lambda d: d["a"] < 3, lambda d: {"a": d["a"] + 1}, [{"a": a}])),
        raises(lambda: loop(lambda i: i < 3, lambda i, j: (i + 1, j), (a, a))),
        message(lambda: loop(lambda s, t: False, lambda s, t: (s, t), (None, a))),
        raises(lambda: loop(lambda s: False, lambda s: (s,), (object(),)), "Could not build a TypeSpec for"),
    ]


@program()
def an_error_in_the_body_ends_the_loop(tf, np):
    x, seen = tf.Variable(2.0), []

    def body(i, y):
        seen.append(int(i))
        if len(seen) == 2:
            raise KeyError("enough")
        return i + 1, y * x

    with tf.GradientTape() as tape:
        said = message(lambda: tf.while_loop(lambda i, y: i < 5, body, (0, x)))
        y = x * x
    return [said, seen, tape.gradient(y, x)]


@program()
def the_branch_that_is_taken(tf, np):
    out = []
    for value in (0.5, 2.0):
        x, a, b = tf.Variable(value), tf.Variable(10.0), tf.Variable(20.0)
        with tf.GradientTape() as tape:
            y = tf.cond(x > 1.0, lambda: a * x, lambda: b - x)
        out.append([y, tape.gradient(y, [x, a, b])])
    return out


@program()
def the_untaken_branch_is_not_called(tf, np):
    calls = []
    tf.cond(tf.constant(True), lambda: calls.append("yes"), lambda: calls.append("no"))
    return calls


@program()
def cond_gives_what_the_branch_gives(tf, np):
    x = tf.constant(1.0)
    return [
        tf.cond(True, lambda: 1, lambda: 2),
        tf.cond(False, lambda: 1, lambda: [2, (3, {"a": x})]),
        tf.cond(True, lambda: None, lambda: 2),
        tf.cond(True, lambda: [x], lambda: x),
        tf.cond(True, lambda: (), lambda: 2),
    ]


@program()
def what_is_true(tf, np):
    def taken(pred):
        return tf.cond(pred, lambda: "yes", lambda: "no")

    given = [True, 1, 0, 0.5, np.bool_(False), [True], "a", tf.constant(1), tf.constant(0.0), tf.constant([True])]
    return [*[taken(one) for one in given], taken(tf.Variable(False))]


@program()
def wrong_conds(tf, np):
    return [
        message(lambda: tf.cond(True)),
        message(lambda: tf.cond(True, lambda: 1)),
        message(lambda: tf.cond(True, 1, lambda: 2)),
        message(lambda: tf.cond(True, lambda: 1, 2)),
        message(lambda: tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2)),
        message(lambda: tf.cond([], lambda: 1, lambda: 2)),
        message(lambda: tf.cond(None, lambda: 1, lambda: 2)),
    ]


@program()
def cond_in_a_loop(tf, np):
    x, w = tf.Variable(1.0), tf.Variable(0.5)
    with tf.GradientTape() as tape:
        _, y = tf.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, tf.cond(i % 2 == 0, lambda: y + x, lambda: y * w)), (0, x * w)
        )
    return [y, tape.gradient(y, [x, w])]


@program()
def cases(tf, np):
    yes, no = tf.constant(True), tf.constant(False)
    x, a, b = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        y = tf.case([(x > 3.0, lambda: a * x), (x > 1.0, lambda: b * x)], default=lambda: x)
    return [
        [y, tape.gradient(y, [x, a, b])],
        tf.case([(no, lambda: 1), (yes, lambda: 2)]),
        tf.case([(no, lambda: 1), (no, lambda: 2)], default=lambda: 3),
        tf.case([(yes, lambda: 1), (yes, lambda: 2)]),
        tf.case([(yes, lambda: [x + 0.0])]),
        tf.case([(yes, lambda: [x + 0.0])], default=lambda: 1),
        tf.case([(yes, lambda: [x + 0.0])], default=lambda: 1, strict=True),
        tf.case([(no, lambda: 1), (yes, lambda: 2)], default=lambda: 3, exclusive=True),
    ]


@program()
def wrong_cases(tf, np):
    from collections import OrderedDict

    yes, no = tf.constant(True), tf.constant(False)
    return [
        message(lambda: tf.case([(no, lambda: 1), (no, lambda: 2)])),
        message(lambda: tf.case([(no, lambda: 1)])),
        message(lambda: tf.case([(yes, lambda: 1), (yes, lambda: 2)], default=lambda: 3, exclusive=True)),
        message(lambda: tf.case([(True, lambda: 1)])),
        message(lambda: tf.case(3)),
        message(lambda: tf.case({yes.ref(): lambda: 1})),
        raises(lambda: tf.case(OrderedDict([(yes.ref(), lambda: 1)]))),
        message(lambda: tf.case([yes])),
        message(lambda: tf.case([])),
        message(lambda: tf.case([(yes, lambda: 1)], default=3)),
        raises(lambda: tf.case([(tf.constant(1), lambda: 1)])),
        raises(lambda: tf.case([(yes, 1)])),
    ]


@program()
def switch_cases(tf, np):
    x, a, b = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(5.0)
    out = []
    for at in (0, 1, 7, -1):
        with tf.GradientTape() as tape:
            y = tf.switch_case(tf.constant(at), [lambda: a * x, lambda: b * x], default=lambda: a * b)
        out.append([y, tape.gradient(y, [x, a, b])])
    return [
        out,
        tf.switch_case(tf.constant(9), [lambda: 1, lambda: 2]),
        tf.switch_case(tf.constant(-3, tf.int64), {1: lambda: "one", 0: lambda: "zero"}),
        tf.switch_case(tf.constant(0, tf.uint8), [(1, lambda: "one"), (0, lambda: "zero")]),
    ]


@program()
def wrong_switch_cases(tf, np):
    one = tf.constant(1)
    return [
        message(lambda: tf.switch_case(1, [lambda: 1])),
        message(lambda: tf.switch_case(tf.constant(1.0), [lambda: 1])),
        message(lambda: tf.switch_case(one, [])),
        message(lambda: tf.switch_case(one, 3)),
        message(lambda: tf.switch_case(one, [1, 2])),
        message(lambda: tf.switch_case(one, [(0, 1)])),
        message(lambda: tf.switch_case(one, [(0.5, lambda: 1)])),
        message(lambda: tf.switch_case(one, {0: lambda: 1, 2: lambda: 2})),
        message(lambda: tf.switch_case(tf.constant([1]), [lambda: 1, lambda: 2])),
        message(lambda: tf.switch_case(tf.constant(5), [lambda: 1], default=3)),
    ]


@program()
def the_older_names(tf, np):
    v1, i, x = tf.compat.v1, tf.constant(0), tf.constant(1.5)
    xs = tf.constant([1.0, 2.0, 3.0])
    return [
        v1.while_loop(lambda i: i < 3, lambda i: i + 1, [i]),
        v1.while_loop(lambda i: i < 3, lambda i: [i + 1], [i]),
        v1.while_loop(lambda i: i < 0, lambda i: i + 1, [i]),
        v1.while_loop(lambda i: i < 3, lambda i: i + 1, [i], maximum_iterations=2),
        v1.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j), [i, x]),
        raises(lambda: v1.while_loop(lambda i: i < 3, lambda i: i + 1, [i], return_same_structure=True)),
        v1.cond(True, lambda: [x], lambda: [x]),
        v1.cond(True, lambda: [x], lambda: [x], strict=True),
        v1.cond(False, fn1=lambda: 1, fn2=lambda: 2),
        message(lambda: v1.cond(True, lambda: 1, lambda: 2, fn1=lambda: 1)),
        message(lambda: v1.cond(True, lambda: 1)),
        v1.case([(tf.constant(True), lambda: [x])], default=lambda: [x]),
        v1.map_fn(lambda e: e * 2.0, xs),
        v1.scan(lambda a, e: a + e, xs),
        [v1.foldl(lambda a, e: a - e, xs), v1.foldr(lambda a, e: a - e, xs)],
    ]


@program()
def two_tapes_around_a_loop_that_values_decide(tf, np):
    x, w = tf.Variable(1.5), tf.Variable(1.2)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            (y,) = tf.while_loop(lambda y: y < 50.0, lambda y: (y * w + x,), (x,))
        g = inner.gradient(y, [x, w])
    return [y, g, outer.gradient(g[1], [x, w])]


@program()
def python_numbers_stay_python_numbers(tf, np):
    y = tf.constant([0.0, 1.0])
    return [
        tf.while_loop(lambda s, y: tf.reduce_sum(y) < 30.0, lambda s, y: (s * 1.1, y + s), (0.1, y)),
        tf.while_loop(lambda i, y: tf.reduce_sum(y) < 30.0, lambda i, y: (i + 1, y + i / 2), (1, y)),
        tf.while_loop(lambda i, y: tf.reduce_sum(y) < 30.0, lambda i, y: (i * 2, y * i), (1, y)),
    ]


@program()
def a_gather_in_the_body(tf, np):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        (y,) = tf.while_loop(
            lambda y: tf.reduce_sum(y) < 30.0, lambda y: (y + tf.gather(table, [1])[0],), (tf.constant([0.0, 1.0]),)
        )
    return [y, tf.convert_to_tensor(tape.gradient(y, table))]


@program()
def a_bound_on_a_loop_that_values_decide(tf, np):
    w = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = tf.while_loop(
            lambda y: tf.reduce_sum(y) < 1e9, lambda y: [y * w], [tf.constant([1.0, 2.0])], maximum_iterations=4
        )
    return [y, tape.gradient(y, w)]
