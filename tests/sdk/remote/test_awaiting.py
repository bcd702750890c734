"""Awaiting values in an event loop: without threads, in few requests, and a cancelled task stops the server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on
from teletape.errors import DeadlineExceededError, InvalidArgumentError, SessionEndedError
from test_deadlines import LONG, busy, counted
from test_life_of_a_session import until

import teletape as tf
from serving import KEYS, Server
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.core.sessions.sending.strands import running_task
from teletape.core.sessions.session import Session
from teletape_engine.commands import Fetch
from teletape_server.settings import Settings

trio = pytest.importorskip("trio", reason="trio is not installed: make install")

Program = Callable[[], Coroutine[Any, Any, Any]]


def in_asyncio(program: Program) -> Any:
    return asyncio.run(program())


def in_trio(program: Program) -> Any:
    return trio.run(program)


@pytest.fixture(params=[in_asyncio, in_trio])
def run(request: pytest.FixtureRequest) -> Callable[[Program], Any]:
    return request.param  # type: ignore[no-any-return]  # one of the two


@pytest.fixture(params=["in the process", "over HTTP"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[Session]:
    remote = request.param == "over HTTP"
    url = request.getfixturevalue("server_url") if remote else None
    with tf.connect(url, local=not remote) as session:
        yield session


@pytest.fixture(scope="module")
def patient() -> Iterator[Server]:
    """A server that lets a loop run for ever."""
    with Server(
        Settings(api_keys=KEYS, max_iterations=1 << 40, patience=600.0, shutdown_grace=0.1)
    ).running() as server:
        yield server


# -------------------------------------------------------------------------------------------------------------- values
@pytest.mark.usefixtures("anywhere")
def test_values_are_those_that_numpy_returns(run: Callable[[Program], Any]) -> None:
    async def program() -> list[Any]:
        x, v = tf.constant([1.0, 2.0]) * 2.0, tf.Variable(3.0)
        return [await x, await v, await v.assign_add(1.0), await tf.constant("text"), await tf.sync_async()]

    values, before, after, text, synced = run(program)
    assert isinstance(values, np.ndarray)
    assert values.flags.writeable
    assert (values.tolist(), before, after, text, synced) == ([2.0, 4.0], 3.0, 4.0, b"text", None)


@pytest.mark.usefixtures("anywhere")
def test_a_variable_has_the_value_of_the_moment_at_which_it_is_awaited(run: Callable[[Program], Any]) -> None:
    async def program() -> list[Any]:
        v = tf.Variable([1.0])
        waiting = v.__await__()
        v.assign([2.0])

        class Waits:
            def __await__(self) -> Any:
                return waiting

        return [await Waits(), await v]

    first, second = run(program)
    assert second.tolist() == [2.0]
    assert first.tolist() in ([1.0], [2.0])  # it is awaited when the event loop takes it up


def test_several_values_come_in_one_request(server_url: str, run: Callable[[Program], Any]) -> None:
    async def program() -> tuple[Any, int]:
        session = tf.session()
        w, b = tf.Variable([[1.0, 2.0]]), tf.Variable([3.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w) * b[0]
        gradients = tape.gradient(loss, {"w": w, "b": b})
        rows = tf.gather(w, [0])
        await tf.sync_async()
        before = session.requests
        values = await tf.gather_values(loss, gradients, [rows, None, 7])
        return values, session.requests - before

    with tf.connect(server_url):
        (loss, gradients, (rows, none, number)), requests = run(program)
    assert (loss, gradients["w"].tolist(), gradients["b"].tolist()) == (9.0, [[3.0, 3.0]], [3.0])
    assert (rows.tolist(), none, number) == ([[1.0, 2.0]], None, 7)
    assert requests == 1


def test_the_parts_of_composites_are_read_too(server_url: str, run: Callable[[Program], Any]) -> None:
    async def program() -> tuple[Any, list[Any], int]:
        session = tf.session()
        v = tf.Variable(tf.ones([4, 2]))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(v, [1, 1]))
        (slices,) = await tf.gather_values(tape.gradient(y, v))
        before = session.requests
        return slices, slices.values.numpy().tolist(), session.requests - before

    with tf.connect(server_url):
        slices, values, requests = run(program)
        assert isinstance(slices, tf.IndexedSlices)
    assert (values, requests) == ([[1.0, 1.0], [1.0, 1.0]], 0)


@pytest.mark.usefixtures("anywhere")
def test_an_await_raises_what_a_read_raises(run: Callable[[Program], Any]) -> None:
    async def program() -> None:
        await tf.linalg.inv(tf.zeros([2, 2]))

    with pytest.raises(InvalidArgumentError, match="not invertible") as caught:
        run(program)
    assert any("await tf.linalg.inv" in str(entry.statement) for entry in caught.traceback)


@pytest.mark.parametrize("awaited", [lambda: tf.constant(1.0), lambda: tf.gather_values(1), tf.sync_async])
def test_without_an_event_loop_there_is_nothing_to_wait_in(awaited: Callable[[], Awaitable[Any]]) -> None:
    waiting = awaited()
    with pytest.raises(RuntimeError, match="event loop of asyncio or trio"):
        next(waiting.__await__())


# ----------------------------------------------------------------------------------------------------------- many tasks
def test_a_thousand_awaits_take_no_thread_and_few_requests(server_url: str) -> None:
    """Each task has values of its own, and one in a hundred fails: the others do not notice."""
    seen: set[int] = set()

    async def task(number: int) -> Any:
        x = tf.linalg.inv([[float(number % 100)]]) * float(number % 100)
        try:
            return (await (x + float(number))).tolist()
        except InvalidArgumentError:
            return "failed"
        finally:
            seen.add(threading.active_count())

    async def program() -> list[Any]:
        return await asyncio.gather(*(task(number) for number in range(1, 1001)))

    with tf.connect(server_url) as session:
        tf.constant(1.0).numpy()
        threads, before = threading.active_count(), session.requests
        values = asyncio.run(program())
        requests = session.requests - before
    assert values == [[[number + 1.0]] if number % 100 else "failed" for number in range(1, 1001)]
    assert max(seen) <= threads
    assert requests < 200


def test_the_event_loop_goes_on_while_the_server_computes(loopback: Loopback) -> None:
    session = use(session_on(loopback))
    loopback.gate.clear()

    async def program() -> float:
        task = asyncio.create_task(wait_for(tf.ones(()) + 1.0))
        await holds(loopback.arrived.is_set)
        assert not task.done()
        loopback.gate.set()
        return await task

    assert asyncio.run(program()) == 2.0
    use(LocalSession())
    session.close()


async def holds(condition: Callable[[], object]) -> None:
    """Gives other tasks their turns until a state is there, and fails if it does not come."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0)


async def wait_for(value: Any) -> Any:
    return await value


# --------------------------------------------------------------------------------------------------------- cancellation
def test_a_cancelled_task_stops_the_server_and_no_other_work_is_lost(patient: Server) -> None:
    async def program(session: Session) -> float:
        v = tf.Variable(1.0)
        await tf.sync_async()
        task = asyncio.create_task(endless())
        await asyncio.to_thread(until, lambda: bool(busy(patient)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        v.assign_add(1.0)
        return float(await v)

    async def endless() -> None:
        await counted(tf.constant(LONG))

    with tf.connect(patient.url, api_key=KEYS["ann"]) as session:
        assert asyncio.run(program(session)) == 2.0
        tf.sync()  # nothing is left to raise


def test_a_cancelled_task_of_trio_stops_the_server(patient: Server) -> None:
    async def program() -> float:
        with trio.move_on_after(0.2):
            await counted(tf.constant(LONG))
        return float(await (tf.constant(1.0) + 1.0))

    with tf.connect(patient.url, api_key=KEYS["ann"]):
        assert trio.run(program) == 2.0
    until(lambda: not busy(patient))


def test_what_others_wait_for_is_not_stopped(loopback: Loopback) -> None:
    """Two tasks wait for one batch; one leaves."""
    session = use(session_on(loopback))
    assert isinstance(session, RemoteSession)
    loopback.gate.clear()

    async def program() -> Any:
        first = asyncio.create_task(wait_for(tf.ones(()) + 0.0))
        await asyncio.sleep(0)
        await holds(loopback.arrived.is_set)
        tasks = [asyncio.create_task(wait_for(tf.ones(()) + float(i))) for i in range(2)]
        await holds(lambda: len(session.channel.buffer.replies()) == 2)
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        loopback.gate.set()
        return await first, await tasks[1]

    assert asyncio.run(program()) == (1.0, 2.0)
    assert not [path for path in loopback.paths if "cancel" in path]
    assert len(loopback.batches) == 2
    use(LocalSession())
    session.close()


def test_questions_of_a_cancelled_task_are_not_sent(loopback: Loopback) -> None:
    session = use(session_on(loopback))
    assert isinstance(session, RemoteSession)
    loopback.gate.clear()
    x = tf.ones(300)

    async def program() -> Any:
        first = asyncio.create_task(wait_for(tf.ones(()) + 0.0))
        await holds(loopback.arrived.is_set)
        task = asyncio.create_task(wait_for(x))
        await holds(session.channel.buffer.replies)
        task.cancel()
        await asyncio.wait([task])
        loopback.gate.set()
        return await first, await (tf.ones(()) + 1.0)

    assert asyncio.run(program()) == (1.0, 2.0)
    name = x.recorded.name.id  # type: ignore[attr-defined]  # an EagerTensor's
    assert name not in [command.id for command in loopback.commands(Fetch)]
    use(LocalSession())
    session.close()


def test_an_await_has_the_timeout_of_its_block(patient: Server, run: Callable[[Program], Any]) -> None:
    async def program() -> float:
        with (
            tf.session().with_options(timeout=0.2),
            pytest.raises(DeadlineExceededError, match=r"within 0\.2 s"),
        ):
            await counted(tf.constant(LONG))
        return float(await (tf.constant(1.0) + 1.0))

    with tf.connect(patient.url, api_key=KEYS["ann"]):
        assert run(program) == 2.0


def test_a_silent_server_is_left_at_the_timeout(loopback: Loopback, run: Callable[[Program], Any]) -> None:
    session = use(session_on(loopback))
    loopback.gate.clear()

    async def program() -> None:
        with session.with_options(timeout=0.05):
            await (tf.ones(()) + 1.0)

    with pytest.raises(DeadlineExceededError, match=r"no answer within 0\.05 s"):
        run(program)
    loopback.gate.set()
    use(LocalSession())
    session.close()


# ----------------------------------------------------------------------------------------------------------------- ends
def test_a_session_is_a_block_of_a_task(server_url: str, run: Callable[[Program], Any]) -> None:
    before = tf.session()

    async def program() -> Session:
        async with tf.connect(server_url) as session:
            assert tf.session() is session
            v = tf.Variable(1.0)
            v.assign_add(1.0)
            assert await v == 2.0
            return session

    session = run(program)
    assert session.closed == "it was closed by the program"
    assert tf.session() is before


def test_a_block_that_an_error_leaves_ends_the_session_at_once(patient: Server, run: Callable[[Program], Any]) -> None:
    sessions: list[Session] = []

    async def program() -> None:
        async with tf.connect(patient.url, api_key=KEYS["ann"]) as session:
            sessions.append(session)
            late = counted(tf.constant(LONG))
            raise KeyError(late.shape)

    began = time.monotonic()
    with pytest.raises(KeyError):
        run(program)
    assert time.monotonic() - began < 3.0
    assert sessions[0].closed == "the program left its block by an error"


def test_a_block_that_is_cancelled_ends_the_session(patient: Server) -> None:
    sessions: list[Session] = []

    async def block() -> None:
        async with tf.connect(patient.url, api_key=KEYS["ann"]) as session:
            sessions.append(session)
            await counted(tf.constant(LONG))

    async def of_trio() -> None:
        with trio.move_on_after(0.3):
            await block()

    async def of_asyncio() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(block(), 0.3)

    trio.run(of_trio)
    asyncio.run(of_asyncio())
    assert [session.closed for session in sessions] == ["the program left its block by an error"] * 2
    until(lambda: not busy(patient))


def test_an_async_close_delivers_what_waits_and_raises_what_failed(
    server_url: str, run: Callable[[Program], Any]
) -> None:
    async def program() -> tuple[Session, Session]:
        session = tf.connect(server_url, session="closed-later")
        v = tf.Variable(1.0, name="v")
        v.assign_add(1.0)
        await tf.sync_async()
        v.assign_add(1.0)
        other = tf.connect(server_url, session="closed-later")
        assert isinstance(other, RemoteSession)
        await session.sync_later()
        assert [float(value) for value in other.variables()] == [3.0]
        tf.linalg.inv(tf.zeros([2, 2]))
        with pytest.raises(InvalidArgumentError, match="not invertible"):
            await other.aclose()
        await session.aclose()
        return session, other

    for session in run(program):
        assert session.closed is not None
    tf.connect(local=True)


def test_an_async_close_with_a_timeout(patient: Server, run: Callable[[Program], Any]) -> None:
    async def program() -> Session:
        session = tf.connect(patient.url, api_key=KEYS["ann"])
        counted(tf.constant(LONG))
        with pytest.raises(DeadlineExceededError):
            await session.aclose(timeout=0.2)
        return session

    assert run(program).closed == "it was not done within the timeout of its end"
    tf.connect(local=True)


def test_an_await_in_a_session_that_has_ended(server_url: str, run: Callable[[Program], Any]) -> None:
    async def program() -> None:
        session = tf.connect(server_url)
        x = tf.ones(300)
        await session.aclose()
        with pytest.raises(SessionEndedError, match="closed by the program"):
            await x

    run(program)
    tf.connect(local=True)


def test_trio_is_calls_its_task_only_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere its answer is an exception, which would cost more than the rest of the look, at every op."""
    calls: list[object] = []
    monkeypatch.setattr(trio.lowlevel, "current_task", lambda: calls.append(trio))
    assert running_task() is None
    assert calls == []
