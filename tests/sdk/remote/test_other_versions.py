"""A server of another version answers what a gradient through ops is like whose records differ; all else is as ever."""

import logging
import os
from collections.abc import Iterator

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from programs import load_script
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape_engine.catalogue import describe
from teletape_engine.commands import Gradient, Jacobian

#: Loaded by each process of the server before all else. There the square has no gradient, floor passes it on, and none
#: is registered for tan.
OTHER_OPS = """
import teletape_engine.ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED

def change(name, **fields):
    op = CATALOGUE.named(name)
    for field, value in fields.items():
        object.__setattr__(op, field, value)

change("square", vjp=(NON_DIFFERENTIABLE,))
change("floor", vjp=CATALOGUE.named("identity").vjp)
change("tan", vjp=(NOT_REGISTERED,))
"""


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "sitecustomize.py").write_text(OTHER_OPS)
    with_server = load_script("with_server")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**with_server.clean_environment(), "PYTHONPATH": os.pathsep.join(paths)}
    with with_server.server(
        [with_server.Path(tf.__file__).parents[2] / ".venv/bin/teletape"], folder, environment
    ) as url:
        yield url


@pytest.fixture
def other(other_server: str, caplog: pytest.LogCaptureFixture) -> Iterator[RemoteSession]:
    caplog.set_level(logging.WARNING)
    with tf.connect(other_server) as session:
        yield session  # type: ignore[misc]


def test_the_ops_that_differ_are_named(other_server: str, caplog: pytest.LogCaptureFixture) -> None:
    with tf.connect(other_server):
        assert "has other records of 3 of this SDK's" in caplog.text
        assert "(floor, square, tan)" in caplog.text


@pytest.mark.usefixtures("other")
def test_a_gradient_is_what_the_server_has() -> None:
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape(persistent=True) as tape:
        squares, steps, tangents = tf.square(x), tf.floor(x), tf.tan(x)
        both = tf.reduce_sum(tf.square(x)) + tf.reduce_sum(x * x)
    assert tape.gradient(squares, x) is None
    assert np.array_equal(tape.gradient(steps, x), [1.0, 1.0])
    with pytest.raises(LookupError, match="tan"):
        tape.gradient(tangents, x)
    assert np.array_equal(tape.gradient(both, x), [3.0, 5.0])
    assert tape.jacobian(squares, x) is None
    with pytest.raises(tf.errors.OpError, match="dense on the server, and none by the records of this SDK"):
        tape.jacobian(steps, x)


def test_a_gradient_of_a_gradient_goes_on(other: RemoteSession) -> None:
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.floor(x) * x * x
        first = inner.gradient(y, x)
    assert np.array_equal(first, [x * x + 2 * np.floor(x) * x for x in (1.5, 2.5)])
    assert outer.gradient(first, x) is not None


def test_only_gradients_through_ops_that_differ_cost_a_request(other: RemoteSession) -> None:
    x = tf.Variable([1.5, 2.5])

    def requests(function: object) -> int:
        tf.sync()
        before = other.requests
        with tf.GradientTape() as tape:
            y = function(x)  # type: ignore[operator]
        tape.gradient(y, x)
        return int(other.requests - before)

    assert requests(tf.exp) == 0
    assert requests(tf.square) == 1


def test_a_prediction_is_sent_only_where_the_records_are_the_same() -> None:
    loopback = Loopback(catalogue="another")
    loopback.changed = {"square": {"composite": True}, "exp": {"documentation": "e to the power of x"}}
    session = session_on(loopback)
    use(session)
    try:
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.exp(x)
        tape.gradient(y, x)
        tape.jacobian(y, x)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.square(x)
        assert np.array_equal(tape.gradient(y, x), [2.0, 4.0])
        assert np.array_equal(tape.jacobian(y, x), np.diag([2.0, 4.0]))
        tf.sync()
        assert [command.predicted for command in loopback.commands(Gradient)] == [("dense",), None]
        assert [command.predicted for command in loopback.commands(Jacobian)] == [("dense",), None]
    finally:
        use(LocalSession())
        session.close()


def test_of_a_server_without_a_list_of_ops_no_gradient_is_predicted() -> None:
    loopback = Loopback(catalogue="another")
    loopback.changed = None
    session = session_on(loopback)
    assert session.channel.differing == {record["name"] for record in describe.catalogue()}
    session.close()
