"""Tensors and variables for other programs and libraries: await, pickle, copies, DLPack; reprs of sessions."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections.abc import Iterator

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.session import Session


@pytest.fixture(params=["in the process", "over HTTP"], autouse=True)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    remote = request.param == "over HTTP"
    url = request.getfixturevalue("server_url") if remote else None
    with tf.connect(url, local=not remote) as session:
        yield session


def test_await_gives_the_values_while_the_loop_goes_on() -> None:
    turns: list[int] = []

    async def tick() -> None:
        for i in range(3):
            turns.append(i)
            await asyncio.sleep(0)

    async def program() -> tuple[object, object, None]:
        x = tf.constant([1.0, 2.0]) * 2.0
        v = tf.Variable(3.0)
        ticking = asyncio.create_task(tick())
        results = await x, await v.assign_add(1.0), await tf.sync_async()
        await ticking
        return results

    values, variable, synced = asyncio.run(program())
    assert isinstance(values, np.ndarray)
    assert values.tolist() == [2.0, 4.0]
    assert (variable, synced) == (4.0, None)
    assert turns == [0, 1, 2]


def test_await_raises_what_a_read_raises_and_needs_a_loop() -> None:
    async def program() -> None:
        await tf.linalg.inv(tf.zeros([2, 2]))

    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        asyncio.run(program())
    with pytest.raises(RuntimeError, match="event loop of asyncio or trio"):
        next(tf.constant(1.0).__await__())


def test_tensors_and_variables_are_pickled_with_their_values() -> None:
    v = tf.Variable([[1.0, 2.0]], name="weights", trainable=False)
    x = tf.constant([1, 2], tf.int64)
    copied, tensor = pickle.loads(pickle.dumps((v, x)))  # noqa: S301  # of the test's own
    v.assign(v * 0.0)
    assert copied.numpy().tolist() == [[1.0, 2.0]]
    assert (copied.name, copied.trainable, copied.dtype) == ("weights:0", False, tf.float32)
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int64, [1, 2])


def test_a_copy_is_another_variable() -> None:
    v = tf.Variable(1.0, name="v")
    for other in (copy.copy(v), copy.deepcopy(v)):
        v.assign_add(1.0)
        assert other is not v
        assert float(other) < float(v)
        assert other.name == "v:0"


def test_dlpack_both_ways() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]]) + 1.0
    back = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    assert back.numpy().tolist() == [[2.0, 3.0], [4.0, 5.0]]
    array = np.from_dlpack(x)
    array[0, 0] = 9.0
    assert x.numpy()[0, 0] == 2.0
    assert x.__dlpack_device__() == (1, 0)
    assert tf.experimental.dlpack.from_dlpack(np.arange(3)).dtype == tf.int64
    variable = tf.Variable([1.0, 2.0])
    assert np.from_dlpack(variable).tolist() == [1.0, 2.0]


def test_what_has_no_dlpack_form() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="bfloat16 has no DLPack form"):
        tf.experimental.dlpack.to_dlpack(tf.constant([1.0], tf.bfloat16))
    with pytest.raises(TypeError, match="must be a TF tensor"):
        tf.experimental.dlpack.to_dlpack([1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no DLPack capsule or array"):
        tf.experimental.dlpack.from_dlpack("text")


def test_a_session_shows_where_it_is_and_what_is_free(session: Session) -> None:
    tf.constant([1.0]).numpy()
    if session.local:
        assert repr(session) == "<LocalSession on cpu>"
        return
    number = r"[\d,]+"
    assert re.fullmatch(
        rf"<RemoteSession _\w+ at {session.url}, cpu, {number} MiB free, until \d\d:\d\d:\d\d, {number} requests>",
        repr(session),
    )
    page = session._repr_html_()
    assert f"<tr><th>server</th><td>{session.url}, teletape " in page
    assert re.search(r"<th>until</th><td>\d\d:\d\d:\d\d, if it is not used</td>", page)
    session.close()
    assert "<th>ended</th><td>it was closed by the program</td>" in session._repr_html_()
    assert repr(session).endswith("ended: it was closed by the program>")
