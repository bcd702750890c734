"""In-process sessions on a GPU: each op runs on the session's device, with memory of the session's pool.

CuPy is replaced by NumPy arrays that note which device and pool are current when an array is made.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.arrays import devices
from teletape_engine.arrays.cpu import CPU
from teletape_engine.arrays.gpu import Gpu


class Machine:
    """Two GPUs; device 0 and the common pool are current at first."""

    def __init__(self) -> None:
        self.device, self.pool = 0, "common"
        self.used: list[tuple[int, Any]] = []

    def note(self) -> None:
        self.used.append((self.device, self.pool))

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        before, self.device = self.device, device
        try:
            yield
        finally:
            self.device = before

    @contextmanager
    def allocating(self, malloc: Any) -> Iterator[None]:
        before, self.pool = self.pool, malloc.__self__
        try:
            yield
        finally:
            self.pool = before


class Pool:
    def malloc(self) -> None: ...

    def set_limit(self, size: int) -> None: ...


def on_device(machine: Machine, function: Callable[..., Any], array: type[np.ndarray[Any, Any]]) -> Callable[..., Any]:
    """A function of NumPy that returns device arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        machine.note()
        result = function(*args, **kwargs)
        return np.asarray(result).view(array) if isinstance(result, np.ndarray | np.generic) else result

    if isinstance(function, np.ufunc):
        call.at = function.at  # type: ignore[attr-defined]  # as CuPy's
    return call


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()

    class DeviceArray(np.ndarray[Any, Any]):
        def __array_finalize__(self, _: Any) -> None:
            machine.note()

        def get(self) -> Any:
            return np.asarray(self)

    class Namespace(ModuleType):
        def __init__(self, name: str, source: Any) -> None:
            super().__init__(name)
            self.source = source

        def __getattr__(self, name: str) -> Any:
            value = getattr(self.source, name)
            return on_device(machine, value, DeviceArray) if callable(value) and not isinstance(value, type) else value

    cupy = Namespace("cupy", np)
    runtime = SimpleNamespace(getDeviceCount=lambda: 2)
    memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]  # a replacement of the module
        runtime=runtime,
        memory=memory,
        MemoryPool=Pool,
        Device=machine.on,
        Stream=lambda non_blocking: nullcontext(),
        using_allocator=machine.allocating,
    )
    cupy.ndarray, cupy.asnumpy = DeviceArray, np.array  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    monkeypatch.setattr(Gpu, "base", staticmethod(CPU.base))  # NumPy's arrays lie in no block of a pool
    return machine


def ops() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert float(tf.reduce_sum(tf.matmul(x, x) + 1.0)) == 58.0
    assert tf.gather(tf.reshape(x, [-1]), [3, 0]).numpy().tolist() == [4.0, 1.0]


def variables() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    v.assign_add([1.0, 1.0, 1.0])
    v[1].assign(7.0)
    v.scatter_nd_add([[0]], [5.0])
    assert v.numpy().tolist() == [7.0, 7.0, 4.0]


def derivatives() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True, replayable=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x * x) + tf.gather(x, [0, 0]))
    assert tape.gradient(y, x).shape == (2,)
    assert tape.hessian(y, x).shape == (2, 2)
    assert tape.jacobian(y, x).shape == (2,)
    assert "gradient" in str(tape.explain(y, x))
    assert tape.check_gradients(y, x).agrees
    assert sum(tape.memory()) > 0


def nested_tapes_and_tangents() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as accumulator, tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3)
        z = tape.gradient(y, x) * 2.0
    assert accumulator.jvp(z).numpy().tolist() == [12.0, 24.0]
    assert outer.gradient(z, x).numpy().tolist() == [12.0, 24.0]


def functions() -> None:
    @tf.function
    def power(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, tf.ones_like(x)])[1]

    x = tf.constant([1.0, -2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = power(x)
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 12.0]


@pytest.mark.parametrize("program", [ops, variables, derivatives, nested_tapes_and_tangents, functions])
def test_every_array_is_made_on_the_sessions_device(machine: Machine, program: Callable[[], None]) -> None:
    session = LocalSession("gpu:1")
    with use(session):
        program()
    assert len(machine.used) > 5
    assert set(machine.used) == {(1, session._state.backend._pool)}  # type: ignore[attr-defined]  # the GPU backend's
    assert (machine.device, machine.pool) == (0, "common")
    assert [facts.device for facts in devices()] == ["cpu", "gpu:0", "gpu:1"]
