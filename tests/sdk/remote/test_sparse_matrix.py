"""Sparse derivatives through a server: what this process gives, in one request each."""

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import SparseHessian, SparseJacobian

X = np.array([0.5, -1.0, 2.0, 1.5, 0.25, -0.75], np.float32)


def tape_of(function, **options):
    x = tf.Variable(X)
    with tf.GradientTape(**options) as tape:
        y = function(x)
    return tape, y, x


def chain(x):
    return tf.reduce_sum((x[1:] - x[:-1] ** 2) ** 2)


def formats():
    tape, y, x = tape_of(chain, persistent=True)
    z = tf.Variable([1.0, 2.0])
    return [
        tape.sparse_hessian(y, x),
        tape.sparse_hessian(y, x, format="csr", max_bytes=1),
        tape.sparse_jacobian(y, x),
        tape.sparse_jacobian(y, z),
        tape.sparse_hessian(y, z),
        tape.sparse_hessian(y, z, "zero"),
    ]


def once():
    tape, y, x = tape_of(lambda x: tf.sin(x[1:]) * x[:-1])
    return [tape.sparse_jacobian(y, x)]


def while_it_records():
    x = tf.Variable(X)
    with tf.GradientTape(persistent=True) as tape:
        y = chain(x)
        before = tape.sparse_hessian(y, x)
        y = y * x[0]
        after = tape.sparse_hessian(y, x)
    return [before, after]


def through_a_custom_gradient():
    @tf.custom_gradient
    def clipped(x):
        return tf.exp(x), lambda ct: ct * tf.clip_by_value(x, -1.0, 1.0) ** 2.0

    tape, y, x = tape_of(clipped, persistent=True)
    return [tape.sparse_jacobian(y, x), tape.sparse_hessian(y, x)]


@pytest.mark.parametrize("program", [formats, once, while_it_records, through_a_custom_gradient])
def test_a_server_gives_what_this_process_gives(program):
    use(LocalSession())
    here = program()
    session = session_on(Loopback())
    use(session)
    try:
        there = program()
        for a, b in zip(here, there, strict=True):
            if a is None:
                assert b is None
                continue
            assert (type(a), a.shape, a.vector_products) == (type(b), b.shape, b.vector_products)
            for part, other in zip(a[:3], b[:3], strict=True):
                assert (part.shape, part.dtype) == (other.shape, other.dtype)
                np.testing.assert_allclose(part.numpy(), other.numpy(), rtol=1e-6)
    finally:
        use(LocalSession())
        session.close()


def test_each_is_one_request_and_its_parts_are_read_together(loopback, remote):
    tape, y, x = tape_of(chain, persistent=True)
    before = remote.requests
    matrix = tape.sparse_hessian(y, x)
    assert remote.requests == before + 1
    assert matrix.rows.numpy().shape == matrix.cols.numpy().shape == matrix.values.numpy().shape == (16,)
    assert remote.requests == before + 2
    tape.sparse_jacobian(y, x)
    sent = [command for batch in loopback.batches for command in batch.commands]
    assert [type(item) for item in sent if isinstance(item, SparseHessian | SparseJacobian)] == [
        SparseHessian,
        SparseJacobian,
    ]


def test_what_one_side_refuses_the_other_does(remote):
    tape, y, x = tape_of(chain, persistent=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="one source, found 2"):
        tape.sparse_hessian(y, [x, x])
    with pytest.raises(tf.errors.InvalidArgumentError, match="one target, found 2"):
        tape.sparse_jacobian([y, y], x)
    with tf.GradientTape():
        with tf.GradientTape(persistent=True) as tape:
            y = chain(x)
        with pytest.raises(tf.errors.UnimplementedError, match="another tape records"):
            tape.sparse_hessian(y, x)
    assert tape.sparse_hessian(y, x).vector_products == 3


def test_a_function_that_asks_for_it_runs_op_by_op(remote, caplog):
    @tf.function
    def ask(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = chain(x)
        return tape.sparse_hessian(y, x).values

    assert ask(tf.constant(X)).shape == [16]
    assert "asks for sparse_hessian, whose size the tape decides" in caplog.text
