"""A failure stays in its strand: in the thread or task that recorded the command, and in what uses its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape_engine.commands import Assign, OnFailure

ROUNDS = 200  #: Of the eight threads; 1,000 take 7 s.


def in_thread(function: Callable[[], object]) -> list[BaseException]:
    """Runs a function in a thread until it has ended, and returns what it has raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    return errors


def out_of_range(x: Any) -> Any:
    """Records an op that only the server can refuse."""
    return tf.gather(x, tf.cast(x * 0.0, "int32") + 300)


@pytest.fixture
def x(remote: RemoteSession) -> Any:
    value = tf.constant(np.arange(300, dtype=np.float32)) * 1.0
    tf.sync()
    return value


def test_eight_threads_of_which_one_is_wrong_in_each_round(server_url: str) -> None:
    errors: list[BaseException] = []
    wrong: list[Any] = []
    raised: list[int] = []
    barrier = threading.Barrier(8)

    def program(number: int) -> None:
        for turn in range(ROUNDS):
            barrier.wait(60)
            if turn % 8 == number:
                out_of_range(x)
                counts[number].assign_add(1000.0)  # dropped: it comes after the failure
                try:
                    wrong.append(float(tf.reduce_sum(x)))
                except tf.errors.InvalidArgumentError:
                    raised.append(turn)
            else:
                counts[number].assign_add(1.0)
                if (total := float(tf.reduce_sum(x * float(number + 1)))) != 44850.0 * (number + 1):
                    wrong.append(total)

    def run(number: int) -> None:
        try:
            program(number)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    with tf.connect(server_url):
        x = tf.constant(np.arange(300, dtype=np.float32)) * 1.0
        counts = [tf.Variable(0.0) for _ in range(8)]
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert (errors, wrong, sorted(raised)) == ([], [], list(range(ROUNDS)))
        assert [float(count) for count in counts] == [ROUNDS * 7 / 8] * 8


def test_tasks_of_one_thread_are_strands_too(x: Any) -> None:
    async def right(number: float) -> float:
        y = tf.reduce_sum(x) * number
        await asyncio.sleep(0)
        return float(y)

    async def wrong() -> float:
        out_of_range(x)
        await asyncio.sleep(0)
        return float(tf.reduce_sum(x))

    async def program() -> list[Any]:
        calls = [wrong() if number == 3 else right(float(number)) for number in range(8)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    results = asyncio.run(program())
    assert isinstance(results.pop(3), tf.errors.InvalidArgumentError)
    assert results == [44850.0 * number for number in (0, 1, 2, 4, 5, 6, 7)]


def test_what_uses_a_value_of_a_failed_strand_fails_for_the_same_reason(x: Any, loopback: Loopback) -> None:
    v = tf.Variable(1.0)
    tf.sync()
    wrong: list[Any] = []
    assert in_thread(lambda: wrong.append(tf.reduce_sum(out_of_range(x)))) == []
    v.assign_add(wrong[0])
    v.assign_add(5.0)  # after what fails
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Op:GatherV2\](.|\n)*in out_of_range"):
        float(tf.reduce_sum(x))
    assert loopback.batches[-1].on_failure is OnFailure.STRAND
    assert float(v) == 1.0
    assert float(tf.reduce_sum(x)) == 44850.0
    tf.sync()  # the program knows


def test_a_strand_raises_that_its_assignment_was_dropped_for_another_ones_failure(x: Any, loopback: Loopback) -> None:
    v = tf.Variable(1.0)
    wrong = tf.reduce_sum(out_of_range(x))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    errors = in_thread(lambda: (v.assign(wrong), float(tf.reduce_sum(x))))
    assert [type(error) for error in errors] == [tf.errors.InvalidArgumentError]
    assert float(v) == 1.0
    assert len(loopback.commands(Assign)) == 0


def test_a_tensor_that_is_too_large_for_the_server_fails_in_its_own_strand(x: Any, loopback: Loopback) -> None:
    loopback.most_bytes = 2_000
    later: list[Any] = []
    assert in_thread(lambda: later.append(tf.constant(np.zeros(1000)) + 1.0)) == []
    assert float(tf.reduce_sum(x)) == 44850.0
    with pytest.raises(tf.errors.RequestError, match="at most 2000 bytes"):
        tf.sync()
    with pytest.raises(tf.errors.RequestError, match="at most 2000 bytes"):
        later[0].numpy()
    assert float(tf.reduce_sum(x)) == 44850.0


def test_what_a_thread_has_not_read_is_raised_by_a_sync_after_its_end(x: Any) -> None:
    assert in_thread(lambda: out_of_range(x)) == []
    assert float(tf.reduce_sum(x)) == 44850.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
        tf.sync()
    tf.sync()


def test_a_thread_that_runs_keeps_its_failure_for_its_own_read(x: Any) -> None:
    recorded, read = threading.Event(), threading.Event()

    def program() -> None:
        out_of_range(x)
        recorded.set()
        read.wait(60)
        float(tf.reduce_sum(x))

    errors: list[list[BaseException]] = []
    thread = threading.Thread(target=lambda: errors.append(in_thread(program)))
    thread.start()
    recorded.wait(60)
    tf.sync()
    assert float(tf.reduce_sum(x)) == 44850.0
    read.set()
    thread.join(60)
    assert [type(error) for error in errors[0]] == [tf.errors.InvalidArgumentError]
    tf.sync()


def test_failures_that_nothing_reads_do_not_add_up(x: Any, remote: RemoteSession) -> None:
    for _ in range(5):
        in_thread(lambda: out_of_range(x))
        float(tf.reduce_sum(x))
    assert len(remote.channel.buffer.failures) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
        tf.sync()


def test_a_session_that_is_closed_raises_what_failed_in_any_strand() -> None:
    session = use(session_on(Loopback()))
    x = tf.ones(300)
    goes_on, ends = threading.Event(), threading.Event()
    threading.Thread(target=lambda: (out_of_range(x), goes_on.set(), ends.wait(60)), daemon=True).start()
    goes_on.wait(60)
    use(LocalSession())
    with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
        session.close()
    ends.set()


def test_another_recorder_of_a_thread_is_of_its_strand(x: Any, remote: RemoteSession) -> None:
    v = tf.Variable(1.0)
    tf.sync()
    remote.outside(lambda: out_of_range(x))
    v.assign(9.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
        float(tf.reduce_sum(x))
    assert float(v) == 1.0


def test_a_read_brings_no_values_of_other_strands(x: Any, loopback: Loopback) -> None:
    others: list[Any] = []
    in_thread(lambda: others.append(tf.reduce_sum(x) * 2.0))
    assert float(tf.reduce_sum(x)) == 44850.0
    assert others[0].recorded.host is None


def test_a_server_that_knows_no_strands_fails_the_whole_batch() -> None:
    loopback = Loopback(features=[])
    session = use(session_on(loopback))
    x = tf.constant(np.arange(300, dtype=np.float32)) * 1.0
    tf.sync()
    in_thread(lambda: out_of_range(x))
    with pytest.raises(tf.errors.InvalidArgumentError, match="GatherV2"):
        float(tf.reduce_sum(x))
    assert {batch.on_failure for batch in loopback.batches} == {OnFailure.POISON}
    assert float(tf.reduce_sum(x)) == 44850.0
    use(LocalSession())
    session.close()
