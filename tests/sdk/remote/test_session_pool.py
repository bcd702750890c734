"""A pool of sessions: blocks take them in turn, functions are traced once, failures stay in their block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from teletape.errors import ConnectionFailed, InvalidArgumentError

import teletape as tf
from serving import until
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.tf.sessions import pool as pools


def in_threads(function: Callable[[int], object], count: int) -> None:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []


def out_of_range() -> Any:
    """Records an op that fails when it runs."""
    return tf.gather(tf.ones(3), tf.cast(tf.ones(2) * 7.0, "int32"))


def test_a_function_of_its_arguments_is_traced_once_for_four_sessions(server_url: str) -> None:
    traces: list[int] = []

    @tf.function
    def gradient(x: Any) -> Any:
        traces.append(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3)
        return tape.gradient(y, x)

    with tf.SessionPool(server_url, size=4) as pool:
        all_in_use, sessions = threading.Barrier(4), set()

        def program(number: int) -> None:
            for turn in range(3):
                with pool.session() as session:
                    sessions.add(session.id)  # type: ignore[attr-defined]  # a session on a server
                    if not turn:
                        all_in_use.wait(30)
                    x = tf.constant([1.0, float(number)])
                    assert gradient(x).numpy().tolist() == [3.0, 3.0 * number**2]

        in_threads(program, 4)
        assert len(sessions) == 4
    assert len(traces) == 1


def test_a_function_of_a_sessions_variables_is_traced_once_in_each(server_url: str) -> None:
    traces: list[int] = []

    @tf.function
    def scaled(x: Any, models: Any = None) -> Any:
        traces.append(1)
        return x * weights[tf.session().home]

    weights: dict[Any, Any] = {}
    with tf.SessionPool(server_url, size=2) as pool:
        for turn in range(3):
            with pool.session() as first, pool.session() as second:
                for session in (first, second):
                    with session.as_default():
                        if not turn:
                            weights[session] = tf.Variable(float(len(weights)))
                        assert float(scaled(tf.constant(3.0))) == 3.0 * list(weights).index(session)
    assert len(traces) == 2


def test_a_declaration_of_one_session_is_in_no_trace_of_another() -> None:
    @tf.function
    def contrast(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.raw_ops.AdjustContrastv2(images=x, contrast_factor=2.0)
        gradient = tape.gradient(y, x)
        return tf.constant(-1.0) if gradient is None else tf.reduce_sum(gradient)

    with tf.SessionPool(local=True, size=2) as pool, pool.session() as first, pool.session():
        x = tf.ones((1, 2, 2, 3))
        with first.as_default():
            tf.no_gradient("AdjustContrastv2")
            assert float(contrast(tf.ones((1, 2, 2, 3)))) == -1.0
        with pytest.raises(LookupError, match="AdjustContrastv2"):
            contrast(x)


def test_what_a_block_leaves_is_computed_at_its_end_and_fails_there(server_url: str) -> None:
    with tf.SessionPool(server_url, size=1) as pool:
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"), pool.session():
            out_of_range()
        assert "1 idle" in repr(pool)
        with pool.session():
            assert float(tf.constant(2.0) * 3.0) == 6.0


def test_the_error_of_a_block_is_raised_and_leaves_nothing_to_the_next(server_url: str) -> None:
    with tf.SessionPool(server_url, size=1) as pool:
        with pytest.raises(ZeroDivisionError), pool.session():
            raise ZeroDivisionError(out_of_range().shape)
        assert "1 idle" in repr(pool)
        with pool.session():
            assert float(tf.constant(2.0) * 3.0) == 6.0


def test_an_interrupted_block_ends_its_session_and_another_is_opened(server_url: str) -> None:
    with tf.SessionPool(server_url, size=1) as pool:
        with pytest.raises(KeyboardInterrupt), pool.session():
            raise KeyboardInterrupt((tf.ones(2) + 1.0).shape)
        assert "0 idle" in repr(pool)
        with pool.session():
            assert float(tf.constant(2.0) * 3.0) == 6.0


def test_a_session_that_ended_on_the_server_is_replaced(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_LOOK_AFTER", 0.0)
    with tf.SessionPool(server_url, size=1) as pool:
        with pool.session() as first:
            assert float(tf.constant(2.0) * 3.0) == 6.0
        tf.sessions(server_url).end(first.id)  # type: ignore[attr-defined]  # a session on a server
        with pool.session() as second:
            assert float(tf.constant(2.0) * 3.0) == 6.0
        assert second is not first
        assert repr(pool) == "<SessionPool of at most 1 sessions, 0 in use, 1 idle>"


def test_blocks_wait_for_a_session_and_for_no_longer_than_they_want() -> None:
    pool = tf.SessionPool(local=True, size=1)
    order: list[str] = []
    with pool.session():
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"all 1 sessions .* in use for 0 s"):
            pool.session(timeout=0.0).__enter__()
        waits = threading.Thread(target=lambda: order.append(repr(pool.session().__enter__())), daemon=True)
        waits.start()
        until(lambda: "1 blocks waiting" in repr(pool))
        order.append("first")
    waits.join(10)
    assert order[0] == "first"
    assert len(order) == 2


def test_a_closed_pool_ends_its_sessions_and_says_so(server_url: str) -> None:
    pool = tf.SessionPool(server_url, size=1)
    errors: list[BaseException] = []

    def late() -> None:
        try:
            pool.session().__enter__()
        except BaseException as error:
            errors.append(error)

    with pool.session() as session:
        thread = threading.Thread(target=late, daemon=True)
        thread.start()
        until(lambda: "1 blocks waiting" in repr(pool))
        pool.close()
        thread.join(10)
        assert float(tf.constant(2.0) * 3.0) == 6.0
    assert session.closed is not None
    with pytest.raises(tf.errors.FailedPreconditionError, match="is closed"), pool.session():
        pass
    assert [type(error) for error in errors] == [tf.errors.FailedPreconditionError]


def test_a_server_that_is_not_there_leaves_the_place_free() -> None:
    pool = tf.SessionPool("http://127.0.0.1:9", size=1)
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match="nothing answers there"), pool.session():
            pass


def test_options_are_those_of_connect() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one session"):
        tf.SessionPool(size=0)
    with pytest.raises(InvalidArgumentError, match="have no names"):
        tf.SessionPool(session="mine")
    with pytest.raises(TypeError, match="lazyness"):
        tf.SessionPool(lazyness=True)


async def _tasks_in_turn(pool: Any, sleep: Callable[[float], Any], results: list[float], number: int) -> None:
    async with pool.session() as session:
        x = tf.constant(float(number))
        assert x.session is session
        await sleep(0)
        results.append(float(await (x * 2.0)))


def test_tasks_of_asyncio_take_sessions_in_turn(server_url: str) -> None:
    home = use(LocalSession())
    results: list[float] = []

    async def program() -> None:
        async with tf.SessionPool(server_url, size=2) as pool:
            await asyncio.gather(*(_tasks_in_turn(pool, asyncio.sleep, results, number) for number in range(12)))
            assert tf.session() is home
            assert "2 idle" in repr(pool)

    asyncio.run(program())
    assert sorted(results) == [2.0 * number for number in range(12)]


def test_a_task_that_is_cancelled_gives_its_turn_up() -> None:
    pool = tf.SessionPool(local=True, size=1)

    async def late() -> None:
        async with pool.session():
            pass

    async def program() -> None:
        async with pool.session():
            with pytest.raises(tf.errors.DeadlineExceededError):
                await pool.session(timeout=0.001).__aenter__()
            waits = asyncio.create_task(late())
            await asyncio.sleep(0)  # it runs until it waits
            assert "1 blocks waiting" in repr(pool)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            with pytest.raises(tf.errors.FailedPreconditionError, match="async with"), pool.session():
                pass
        async with pool.session(timeout=1.0):
            assert float(tf.constant(2.0)) == 2.0

    asyncio.run(program())


def test_an_async_block_needs_an_event_loop() -> None:
    pool = tf.SessionPool(local=True, size=1)
    with pool.session():
        turn = pool.session().__aenter__()
        with pytest.raises(RuntimeError, match="event loop of asyncio or trio"):
            turn.send(None)
    assert "0 in use, 1 idle" in repr(pool)


def test_what_an_async_block_leaves_fails_at_its_end(server_url: str) -> None:
    async def program() -> None:
        async with tf.SessionPool(server_url, size=1) as pool:
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                async with pool.session():
                    out_of_range()
            async with pool.session():
                assert float(await (tf.constant(2.0) * 3.0)) == 6.0

    asyncio.run(program())
