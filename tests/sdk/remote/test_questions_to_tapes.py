"""Jacobians, second derivatives, many questions: a server gives what this process gives, without a round trip."""

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import BatchJacobian, Gradient, Hessian, Hvp, Jacobian, Vjps

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], np.float32)
W = np.array([[0.5, -1.0], [0.25, 0.75], [1.0, 0.1]], np.float32)


def network(*, persistent=True):
    x, w, b = tf.constant(X), tf.Variable(W), tf.Variable([0.1, -0.2])
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = tf.tanh(x @ w + b)
    return tape, y, x, w, b


def jacobians():
    tape, y, x, w, b = network()
    table = tf.Variable(W)
    with tf.GradientTape() as other:
        rows = tf.gather(table, [0, 2, 2]) ** 2.0
    return [
        *tape.jacobian(y, [w, b, x]),
        tape.jacobian(y, table),
        tape.jacobian(y, {"a": table, "b": w}, unconnected_gradients="zero")["a"],
        tape.jacobian(y, w, parallel_iterations=3),
        tape.jacobian(y, w, experimental_use_pfor=False),
        tape.jacobian(y, w, max_bytes=4000),
        tape.batch_jacobian(y, x),
        tape.batch_jacobian(y, x, max_bytes=300),
        tape.batch_jacobian(y, tf.ones([2, 5])),
        other.jacobian(rows, table),
    ]


def stacks():
    tape, y, x, w, b = network(persistent=False)
    stack = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    return tape.vjps(y, [x, w, b], tf.constant(stack))


def second_order():
    tape, y, x, w, b = network()
    vectors = [tf.ones_like(w), tf.constant([1.0, 2.0])]
    blocks = tape.hessian(y, [w, b])
    weighted = tape.hvp([y, y], [w, b], vectors, output_gradients=[np.arange(4.0).reshape(2, 2), None])
    return [*blocks[0], *blocks[1], *tape.hvp(y, [w, b], vectors), tape.hessian(y, x), tape.hvp(y, x, X), *weighted]


def under_outer_tapes():
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            y = x**3.0 * x[0]
        first = inner.jacobian(y, x)
        second = inner.hvp(y, x, [1.0, 2.0])
        examples = inner.vjps(y, x, [[1.0, 0.0], [0.0, 2.0]])
    return [first, second, outer.jacobian(first, x), outer.jacobian(second, x), outer.gradient(examples, x)]


def many_questions():
    tape, y, x, w, b = network(persistent=False)
    z = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    first, [second, third], fourth = tape.gradients([(y, x), ([y, y], [w, b]), (y, b, z)])
    return [first, second, third, fourth]


def inside_a_function():
    @tf.function
    def ask(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3.0)
            z = tf.sin(x) * x[0]
        stack = tf.reshape(tf.range(6.0), [2, 3])
        return [
            tape.hvp(y, x, tf.ones_like(x)),
            tape.hessian(y, x),
            tape.vjps(z, x, stack),
            *tape.gradients([(y, x), (z, x)]),
            tape.jacobian(z, x),
        ]

    return ask(tf.constant([0.5, -1.0, 2.0]))


def through_a_custom_gradient():
    @tf.custom_gradient
    def clipped(x):
        def grad(upstream):
            return upstream * tf.clip_by_value(x, -1.0, 1.0) ** 2.0

        return tf.exp(x), grad

    x = tf.Variable([0.5, -2.0, 0.25])
    with tf.GradientTape(persistent=True) as tape:
        y = clipped(x)
    stack = tf.reshape(tf.range(6.0), [2, 3])
    return [tape.jacobian(y, x), tape.vjps(y, x, stack), tape.hessian(y, x), tape.hvp(y, x, [1.0, 2.0, 3.0])]


PROGRAMS = [
    jacobians,
    stacks,
    second_order,
    under_outer_tapes,
    many_questions,
    inside_a_function,
    through_a_custom_gradient,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_server_gives_what_this_process_gives_and_is_asked_once(program):
    use(LocalSession())
    here = program()
    session = session_on(Loopback())
    use(session)
    try:
        before = session.requests
        there = program()
        assert session.requests == before
        for a, b in zip(here, there, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.shape == b.shape
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    finally:
        use(LocalSession())
        session.close()


def test_each_question_is_one_command(loopback, remote):
    tape, y, x, w, b = network()
    tape.jacobian(y, [w, x], max_bytes=5000)
    tape.batch_jacobian(y, x, parallel_iterations=2)
    tape.vjps(y, [w], tf.ones([3, 2, 2]))
    tape.hessian(y, [b, w])
    tape.hvp(y, [b], [tf.ones([2])])
    remote.sync()
    sent = [command for batch in loopback.batches for command in batch.commands]
    [jacobian] = [item for item in sent if isinstance(item, Jacobian)]
    assert (jacobian.predicted, jacobian.max_bytes, jacobian.chunk_size) == (("dense", "dense"), 5000, None)
    [by_example] = [item for item in sent if isinstance(item, BatchJacobian)]
    assert by_example.chunk_size == 2
    assert [item.predicted for item in sent if isinstance(item, Vjps | Hvp)] == [("dense",)] * 2
    [hessian] = [item for item in sent if isinstance(item, Hessian)]
    assert hessian.predicted == ("dense",) * 4
    assert not [item for item in sent if isinstance(item, Gradient)]


def test_what_does_not_fit_is_reported_at_the_next_read():
    session = session_on(Loopback(memory_limit=1 << 20))
    use(session)
    try:
        tape, y, _, w, _ = network()
        jacobians = tape.jacobian(y, w, max_bytes=10)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="max_bytes is 10: raise it"):
            jacobians.numpy()
        assert tape.jacobian(y, w).numpy().shape == (2, 2, 3, 2)
    finally:
        use(LocalSession())
        session.close()


def test_too_small_a_bound_here_is_reported_at_once():
    tape, y, _, w, _ = network()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="one of the 4 rows takes about"):
        tape.jacobian(y, w, max_bytes=10)


WRONG = {
    "stack of another shape": (
        lambda tape, y, x: tape.vjps(y, x, tf.ones([2, 3])),
        tf.errors.InvalidArgumentError,
        "a stack of output gradients",
    ),
    "no stack": (lambda tape, y, x: tape.vjps(y, x, None), tf.errors.InvalidArgumentError, "no stack"),
    "two stacks": (
        lambda tape, y, x: tape.vjps([y], x, [tf.ones([1, 2, 2])] * 2),
        ValueError,
        "output_gradients: found 2, and 1 are needed",
    ),
    "vector of another shape": (
        lambda tape, y, x: tape.hvp(y, x, tf.ones([3])),
        tf.errors.InvalidArgumentError,
        "must have the source's shape and dtype",
    ),
    "no vector": (lambda tape, y, x: tape.hvp(y, [x], []), ValueError, "vectors: found 0, and 1 are needed"),
    "None among sources": (lambda tape, y, x: tape.hessian(y, [x, None]), TypeError, "None"),
    "an array as target": (lambda tape, y, x: tape.hessian(np.ones(2), x), TypeError, "it has left the program"),
    "a string": (lambda tape, y, x: tape.hvp(y, tf.constant("a"), [1.0]), TypeError, "a source must be numeric"),
    "a bad word": (lambda tape, y, x: tape.vjps(y, x, tf.ones([1, 2, 2]), "no"), ValueError, "unconnected_gradients"),
    "a question of one part": (lambda tape, y, x: tape.gradients([(y,)]), ValueError, r"\(target, sources\)"),
}


@pytest.mark.parametrize("why", WRONG)
@pytest.mark.parametrize("where", ["here", "there"])
def test_bad_questions_are_refused_where_they_stand(why, where):
    session = LocalSession() if where == "here" else session_on(Loopback())
    use(session)
    try:
        ask, kind, text = WRONG[why]
        tape, y, x, *_ = network()
        with pytest.raises(kind, match=text):
            ask(tape, y, x)
        assert tape.jacobian(y, x).numpy().shape == (2, 2, 2, 3)
    finally:
        use(LocalSession())
        session.close()


def test_a_tape_that_is_not_persistent_answers_once():
    for ask in (
        lambda tape, y, x: tape.hessian(y, x),
        lambda tape, y, x: tape.hvp(y, x, X),
        lambda tape, y, x: tape.vjps(y, x, tf.ones([1, 2, 2])),
        lambda tape, y, x: tape.gradients([(y, x)]),
    ):
        tape, y, x, *_ = network(persistent=False)
        ask(tape, y, x)
        for again in (tape.jacobian, tape.gradient, tape.hessian):
            with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
                again(y, x)


def test_no_questions_have_no_answers_and_use_nothing_up():
    tape, y, x, *_ = network(persistent=False)
    assert tape.gradients([]) == []
    assert tape.gradient(y, x) is not None


def test_nothing_at_all_through_a_function_that_reads():
    @tf.custom_gradient
    def curious(x):
        def grad(upstream):
            return upstream * (2.0 if float(tf.reduce_sum(upstream)) > 0.5 else 3.0)

        return x * x, grad

    x, other = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = curious(x)[:0]
    assert tape.jacobian(y, x).shape == (0, 2)
    assert tape.jacobian(y, [x, other])[1] is None
    assert tape.vjps(y, x, tf.ones([2, 0])).numpy().tolist() == [[0.0, 0.0]] * 2
    with pytest.raises(tf.errors.UnimplementedError, match="hvp: the gradient function of 'curious' reads a value"):
        tape.hvp(y, x, [1.0, 1.0])


@pytest.mark.parametrize("where", ["here", "there"])
def test_what_belongs_to_another_session_is_refused_and_nothing_is_lost(where):
    use(LocalSession())
    strange, foreign = tf.Variable([1.0, 2.0]), tf.constant([1.0, 2.0])
    session = LocalSession() if where == "here" else session_on(Loopback())
    use(session)
    try:
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = x * x
        for ask in (
            lambda: tape.gradient(foreign, x),
            lambda: tape.gradient(y, [x, strange]),
            lambda: tape.jacobian(foreign, x),
            lambda: tape.jacobian(y, strange),
            lambda: tape.hessian(y, foreign),
            lambda: tape.gradients([(y, strange)]),
            lambda: tape.watch(foreign),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another session than the tape"):
                ask()
        np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])
    finally:
        use(LocalSession())
        session.close()
