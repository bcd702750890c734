"""Threads and async tasks: reading blocks no other thread, each has a recorder, shared tables are published whole."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Assign
from teletape_engine.spec import DTYPES, Spec


def start(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns after a microsecond."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_many_threads(function: Callable[[int], object], count: int = 8) -> None:
    """Runs a function in threads that begin together, and raises what any of them raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        try:
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [start(lambda number=number: run(number)) for number in range(count)]  # type: ignore[misc]
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


# -------------------------------------------------------------------------------------------------------------- threads
def test_a_thread_records_while_another_reads(remote: RemoteSession, loopback: Loopback) -> None:
    x = tf.ones(300)
    loopback.gate.clear()
    reader = start(x.numpy)
    assert loopback.arrived.wait(10)
    recorded = threading.Event()

    def record() -> None:
        for _ in range(100):
            x + 1.0
        recorded.set()

    start(record)
    assert recorded.wait(10)
    assert reader.is_alive()
    loopback.gate.set()
    reader.join(10)
    assert not reader.is_alive()


def test_two_threads_read_at_once_and_each_gets_its_own(remote: RemoteSession, loopback: Loopback) -> None:
    x = tf.ones(300)
    loopback.gate.clear()
    values: dict[float, float] = {}

    def read(factor: float) -> None:
        values[factor] = float((x * factor).numpy()[0])

    threads = [start(lambda factor=factor: read(factor)) for factor in (2.0, 3.0, 4.0)]  # type: ignore[misc]
    assert loopback.arrived.wait(10)
    loopback.gate.set()
    for thread in threads:
        thread.join(10)
    assert values == {2.0: 2.0, 3.0: 3.0, 4.0: 4.0}


def test_a_failure_of_one_thread_is_not_taken_for_a_result_of_another(remote: RemoteSession) -> None:
    x = tf.constant(np.arange(4, dtype=np.float32)) * 1.0

    def program(number: int) -> None:
        for _ in range(10):
            if number == 0:
                with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                    tf.gather(x, tf.cast(x, "int32") + 9).numpy()
            else:
                try:
                    assert (x + float(number)).numpy().tolist() == [number, 1 + number, 2 + number, 3 + number]
                except tf.errors.InvalidArgumentError as error:  # dropped with what failed before it
                    assert "is not in" in str(error)  # noqa: PT017

    in_many_threads(program, 4)


def test_what_threads_record_at_once_happens_once(remote: RemoteSession, loopback: Loopback, switching: None) -> None:
    v = tf.Variable(0.0)
    tf.sync()

    def program(number: int) -> None:
        for step in range(20):
            v.assign_add(1.0)
            if step % 7 == number % 7:
                v.numpy()

    in_many_threads(program)
    assert v.numpy() == 160.0
    assert len(loopback.commands(Assign)) == 160


def test_many_short_threads_leave_nothing(remote: RemoteSession, loopback: Loopback) -> None:
    x = tf.Variable([1.0, 2.0])

    def program() -> None:
        with tf.GradientTape() as tape:
            y = x * x
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    for _ in range(50):
        start(program).join(10)
    gc.collect()
    tf.sync()
    (x + 1.0).numpy()
    assert len(loopback.session._state._contexts) <= 2
    assert loopback.session.listing("tape") == []


# ---------------------------------------------------------------------------------------------------------- async tasks
@pytest.fixture(params=["on a server", "in this process"])
def anywhere(request: pytest.FixtureRequest) -> None:
    if request.param == "on a server":
        request.getfixturevalue("remote")
    else:
        use(LocalSession())


async def gradient_of(factor: float, turns: int) -> float:
    """A tape that is open while other tasks have their turns."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(turns):
            await asyncio.sleep(0)
            y = y * factor
    await asyncio.sleep(0)
    return float(tape.gradient(y, x))


@pytest.mark.usefixtures("anywhere")
def test_tasks_of_one_thread_record_on_their_own_tapes() -> None:
    lengths: list[int] = []

    async def counting() -> None:
        x = tf.constant(1.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * 2.0
            await asyncio.sleep(0)
            y = y * 2.0
        lengths.append(len(tape._tape.nodes))
        assert float(tape.gradient(y, x)) == 4.0

    async def program() -> list[float]:
        values = await asyncio.gather(*(gradient_of(float(factor), 3) for factor in range(1, 6)))
        await asyncio.gather(counting(), counting(), counting())
        return values

    assert asyncio.run(program()) == [1.0, 8.0, 27.0, 64.0, 125.0]
    assert lengths == [2, 2, 2]


class Task:
    """What another library has for a task: `current_task` of trio, `getcurrent` of greenlet, which gevent uses."""

    parent: object = "the hub"


class Turns:
    """Runs generators in turn in one thread, each as a task of the library that is simulated."""

    def __init__(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.task = thread = Task()
        thread.parent = None
        self._thread = thread
        attribute = {"trio.lowlevel": "current_task", "greenlet": "getcurrent"}[library]
        monkeypatch.setitem(sys.modules, library, types.SimpleNamespace(**{attribute: self.running}))  # type: ignore[arg-type]
        self._outside = RuntimeError("must be called from async context") if library == "trio.lowlevel" else None

    def running(self) -> Task:
        if self.task is self._thread and self._outside is not None:
            raise self._outside
        return self.task

    def run(self, programs: list[Iterator[None]]) -> None:
        tasks = {program: Task() for program in programs}
        while tasks:
            for program, task in [*tasks.items()]:
                self.task = task
                if next(program, tasks) is tasks:
                    del tasks[program]
                self.task = self._thread


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("library", ["trio.lowlevel", "greenlet"])
def test_tasks_of_trio_and_gevent_record_on_their_own_tapes_too(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(library, monkeypatch)
    gradients: list[tuple[int, float]] = []

    def program(factor: int) -> Iterator[None]:
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in range(3):
                yield
                y = y * float(factor)
        yield
        gradients.append((len(tape._tape.nodes), float(tape.gradient(y, x))))

    turns.run([program(factor) for factor in range(1, 6)])
    assert gradients == [(3, 1.0), (3, 8.0), (3, 27.0), (3, 64.0), (3, 125.0)]
    thread = tf.session()._thread
    assert "recorder" in vars(thread)
    assert len(thread._tasks) == 0


@pytest.mark.usefixtures("anywhere")
def test_one_task_watches_a_tensor_that_another_computes_with() -> None:
    x = tf.constant(3.0)

    async def watching(ready: asyncio.Event, done: asyncio.Event) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            ready.set()
            await done.wait()
        return tape._tape.nodes

    async def program() -> Any:
        ready, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(watching(ready, done))
        await ready.wait()
        x * x  # as in another thread: not recorded
        done.set()
        return await task

    assert asyncio.run(program()) == []


@pytest.mark.usefixtures("anywhere")
def test_after_its_tasks_a_thread_is_as_before() -> None:
    asyncio.run(gradient_of(2.0, 1))
    thread = tf.session()._thread
    assert "recorder" in vars(thread)
    assert len(thread._tasks) == 0
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0


@pytest.mark.usefixtures("anywhere")
def test_a_cancelled_task_closes_its_tape() -> None:
    async def endless() -> None:
        with tf.GradientTape():
            await asyncio.sleep(3600)

    async def program() -> None:
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(program())
    assert not tf.session().recorder().recorded


@pytest.mark.usefixtures("anywhere")
def test_functions_and_accumulators_in_tasks() -> None:
    @tf.function
    def cube(x: Any) -> Any:
        return x * x * x

    async def tangent(at: float) -> float:
        x = tf.constant(at)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
            y = cube(x)
            await asyncio.sleep(0)
            y = y * 1.0
        return float(accumulator.jvp(y))

    async def program() -> list[float]:
        return list(await asyncio.gather(*(tangent(float(at)) for at in range(1, 4))))

    assert asyncio.run(program()) == [3.0, 12.0, 27.0]


# -------------------------------------------------------------------------------------------------------- shared tables
def test_specs_are_seen_whole(switching: None) -> None:
    def program(number: int) -> None:
        for length in range(1_000, 1_400):
            spec = Spec.of((length, 7), DTYPES["float32"])
            assert (spec.size, spec.nbytes, spec.differentiable) == (length * 7, length * 28, True)
            assert Spec.of((length, 7), DTYPES["float32"]) is spec

    in_many_threads(program)


def test_bound_ops_and_attributes_are_seen_whole(switching: None) -> None:
    use(LocalSession())
    for name in ("add", "reshape", "reduce_sum", "tanh"):
        if name in CATALOGUE:
            CATALOGUE[name].bound.clear()

    def program(number: int) -> None:
        for rows in range(1, 40):
            x = tf.ones((rows, 2))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.tanh(tf.reshape(x, (2 * rows,)) + float(number)), axis=0)
            gradient = tape.gradient(y, x)
            assert gradient.shape == (rows, 2)

    in_many_threads(program, 6)


def test_a_function_traced_by_many_threads_at_once_is_one(switching: None) -> None:
    use(LocalSession())
    calls: list[int] = []
    for number_of_traces in range(1, 6):

        @tf.function
        def square(x: Any) -> Any:
            calls.append(1)
            return x * x

        def program(number: int, square: Any = square) -> None:
            for _ in range(5):
                assert float(square(tf.constant(float(number)))) == number**2

        in_many_threads(program, 16)
        assert len(calls) == number_of_traces


@pytest.mark.parametrize("captures", [False, True])
def test_a_function_called_in_many_sessions_at_once_is_traced_for_each_that_it_captures_from(
    captures: bool, switching: None
) -> None:
    sessions = [session_on(Loopback()) for _ in range(4)]
    factors = {}
    for session in sessions:
        with session.as_default():
            factors[session] = tf.Variable(3.0)
    calls: list[int] = []

    @tf.function
    def scaled(x: Any) -> Any:
        calls.append(1)
        return x * (factors[tf.session().home] if captures else 3.0)

    def program(number: int) -> None:
        with sessions[number % 4].as_default():
            for step in range(5):
                assert float(scaled(tf.constant(float(step)))) == 3.0 * step

    in_many_threads(program, 16)
    assert len(calls) == (4 if captures else 1)
    for session in sessions:
        session.close()


def test_a_signature_is_checked_while_another_thread_makes_a_concrete_function(switching: None) -> None:
    use(LocalSession())

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def total(x: Any) -> Any:
        return tf.reduce_sum(x)

    def program(number: int) -> None:
        for _ in range(20):
            if number % 2:
                total.get_concrete_function(tf.TensorSpec([3], tf.float32))
            else:
                with pytest.raises(TypeError, match="Can not cast"):
                    total(tf.constant([1, 2]))

    in_many_threads(program, 4)


def test_reads_noted_by_many_threads(switching: None) -> None:
    use(LocalSession())

    def program(number: int) -> None:
        for i in range(400):
            tf.constant(float(number * 1000 + i)).numpy()

    in_many_threads(program)
