"""One op on one sample, with everything that laws compute of it: results, gradients, stacks of gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from teletape_engine.arrays import Backend, backend
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Sample
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, new_uid
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DTYPES, DType, Number, Spec

T = TypeVar("T")

_DEVICE: Final[ContextVar[Backend | None]] = ContextVar("_DEVICE", default=None)
_RESULT: Final[ContextVar[int | None]] = ContextVar("_RESULT", default=None)
_TURN: Final[ContextVar[int]] = ContextVar("_TURN", default=0)


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Within it the laws are checked on that device: `cpu`, `gpu` or `gpu:N`. The comparisons are the host's.

    Raises:
        UnimplementedError: There is no such device.
    """
    token = _DEVICE.set(backend(device))
    try:
        yield
    finally:
        _DEVICE.reset(token)


@contextmanager
def in_turn(number: int) -> Iterator[None]:
    """Within it a law looks at one of its choices, which is another for each number; with 0 at all of them."""
    token = _TURN.set(number)
    try:
        yield
    finally:
        _TURN.reset(token)


@contextmanager
def of_result(number: int | None) -> Iterator[None]:
    """Within it the laws look at that one of an op's several results alone: nothing uses the others; None: at all."""
    token = _RESULT.set(number)
    try:
        yield
    finally:
        _RESULT.reset(token)


def some(choices: Iterable[T]) -> list[T]:
    """All of a law's choices for a sample, such as dtypes or layouts; within `in_turn` one of them."""
    every = [*choices]
    turn = _TURN.get()
    return [every[turn % len(every)]] if turn and every else every


def offered_dtypes(names: Iterable[str] = DTYPES) -> list[DType]:
    """The dtypes of these names that the device has on which the laws are checked."""
    refused = (_DEVICE.get() or backend("cpu")).refused
    return [DTYPES[name] for name in names if name in DTYPES and name not in refused]


class LawError(AssertionError):
    """Raised if an op breaks a law; the message names op, law, sample, input and the worst entry."""


class Case:
    """One op on one sample.

    Args:
        op: The op.
        sample: Inputs and attributes.
        dtype: That the inputs take, if they are float64 in the sample.

    Attributes:
        attrs: The op's attributes.
        inputs: Read-only arrays, and Python numbers.
        backend: That of the device that computes.
    """

    def __init__(self, op: Op, sample: Sample, dtype: DType = DTYPES["float64"]) -> None:
        self.op, self.sample, self.dtype = op, sample, dtype
        self.attrs: Attrs = op.attrs(sample.attrs)
        self.inputs = tuple(typed_input(value, dtype) for value in sample.inputs)
        self.backend: Backend = _DEVICE.get() or backend("cpu")

    def executor(self) -> Executor:
        """An executor on the device of the case, without a limit on memory."""
        return Executor(self.backend, Memory(None, lambda: 0))

    def put(self, value: Any) -> Any:
        """An array on the device of the case; a Python number as it is."""
        return self.backend.put(np.asarray(value)) if is_array(value) else value

    def differentiable(self) -> list[int]:
        """Numbers of the inputs that can have a gradient."""
        return [
            index
            for index, value in enumerate(self.inputs)
            if isinstance(value, np.ndarray) and value.dtype in DIFFERENTIABLE
        ]

    def bound(self) -> Bound:
        """The op bound to the inputs' specs."""
        return bind(self.op, tuple(spec_of(value) for value in self.inputs), self.attrs)

    def spec(self) -> Spec:
        """The inferred spec of `run`."""
        recorder = SpecRecorder()
        spec: Spec = self.applied(recorder, [as_operand(recorder, value) for value in self.inputs]).spec
        return spec

    def results(self, inputs: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """The results, as a session computes them, on the host."""
        recorder = self.executor()
        with self.backend.quiet():
            operands = [as_operand(recorder, value) for value in (self.inputs if inputs is None else inputs)]
            result = recorder.apply(self.op, operands, self.attrs)
            results = result if isinstance(result, tuple) else (result,)
            return tuple([self.backend.get(each.array) for each in results])

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """The result on the host; of several as `joined` makes them one."""
        recorder = self.executor()
        with self.backend.quiet():
            operands = [as_operand(recorder, value) for value in (self.inputs if inputs is None else inputs)]
            return self.backend.get(self.applied(recorder, operands).array)

    def applied(self, recorder: Recorder, operands: Sequence[Any]) -> Any:
        """The op's result on a recorder; of several as `joined` makes them one."""
        result = recorder.apply(self.op, operands, self.attrs)
        return self.joined(recorder, result) if isinstance(result, tuple) else result

    def joined(self, recorder: Recorder, results: Sequence[Any]) -> Any:
        """The one result that the law looks at, or the elements of all of differentiable dtypes, if any is."""
        only = _RESULT.get()
        if only is not None:
            return results[only]
        chosen = [each for each in results if each is not None and each.spec.differentiable] or results
        dtype = max([each.spec.dtype for each in chosen], key=lambda dtype: (dtype in COMPLEX, dtype.itemsize))
        parts = [recorder.op(ops.reshape, recorder.op(ops.cast, each, dtype=dtype), shape=(-1,)) for each in chosen]
        return recorder.op(ops.concat, *parts, axis=0)

    def vjp(self, ct: Any, inputs: Sequence[Any] | None = None) -> list[Any]:
        """For each input its cotangent as a dense array on the host, or None; nothing records the backward pass."""
        recorder, tape = self.executor(), Tape()
        with self.backend.quiet():
            recorder.context.open(tape)
            operands = [as_operand(recorder, value) for value in (self.inputs if inputs is None else inputs)]
            recorder.context.watch(tape, [operand for operand in operands if operand.uid is not None])
            result = self.applied(recorder, operands)
            sources = [operands[index] for index in self.differentiable()]
            query = GradientQuery(tape, [result], sources, output_gradients=[as_operand(recorder, ct)])
            gradients = [self.dense(each) for each in gradient(recorder, query)]
        return self._by_input(gradients)

    def vjps(self, cts: Any, *, recorded: bool = False, context: Any = None) -> list[Any]:
        """For each input the recorded stack of its cotangents, or None; `recorded`: under an outer tape."""
        recorder, tape, outer = context or self.executor(), Tape(), Tape()
        with self.backend.quiet():
            operands = [as_operand(recorder, value) for value in self.inputs]
            arrays = [operand for operand in operands if operand.uid is not None]
            for each in (outer, tape) if recorded else (tape,):
                recorder.context.open(each)
                recorder.context.watch(each, arrays)
            result = self.applied(recorder, operands)
            sources = [operands[index] for index in self.differentiable()]
            query = GradientQuery(tape, [result], sources, output_gradients=[as_operand(recorder, cts)])
            return self._by_input(vjps(recorder, query))

    def dense(self, derivative: Any) -> Any:
        """A gradient as an array on the host: slices are summed, None stays None."""
        return None if derivative is None else self.backend.get(dense(derivative))

    def _by_input(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the differentiable inputs, with None for every other input."""
        by_input: list[Any] = [None] * len(self.inputs)
        for index, each in zip(self.differentiable(), gradients, strict=True):
            by_input[index] = each
        return by_input

    def fail(self, law: str, text: str) -> NoReturn:
        """Raises LawError with everything that is needed to repeat the case."""
        specs = ", ".join(repr(spec_of(value)) for value in self.inputs)
        raise LawError(f"op {self.op.name!r} breaks the law {law!r} on ({specs}) with {dict(self.attrs)}: {text}")

    def check_close(self, law: str, what: str, actual: Any, expected: Any, *, rtol: float, atol: float) -> None:
        """Fails unless two arrays agree; the message has the entry that differs most."""
        actual, expected = np.asarray(actual), np.asarray(expected)
        if actual.shape != expected.shape:
            self.fail(law, f"{what} has shape {actual.shape}, expected {expected.shape}")
        if actual.size == 0:
            return
        wide = np.complex128 if np.iscomplexobj(actual) or np.iscomplexobj(expected) else np.float64
        actual, expected = actual.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            excess = np.abs(actual - expected) - rtol * np.abs(expected) - atol
        equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        excess = np.where(equal, -1.0, np.where(np.isnan(excess), np.inf, excess))
        if excess.max() > 0:
            worst = np.unravel_index(int(excess.argmax()), actual.shape)
            position = [int(axis) for axis in worst]
            self.fail(law, f"{what}, worst at {position}: found {actual[worst]}, expected {expected[worst]}")


def cases(op: Op, sample: Sample, names: Iterable[str]) -> list[Case]:
    """A case in each of those dtypes that the op takes on the device."""
    taken = []
    for case in [Case(op, sample, dtype) for dtype in offered_dtypes(names)]:
        with suppress(InvalidArgumentError):
            case.bound()
            taken.append(case)
    return taken


# ----------------------------------------------------------------------------------------------------------- recorders
class CpuExecutor(Executor):
    """An executor on the CPU, without a limit on memory."""

    def __init__(self) -> None:
        super().__init__(backend("cpu"), Memory(None, lambda: 0))


def as_operand(recorder: Recorder, operand: Any) -> Any:
    """An array, also one on the recorder's device, or a number as a recorder, with arrays or without, takes it."""
    if is_array(operand):
        return recorder.constant(np.asarray(operand))
    if isinstance(operand, Number):
        return Literal(operand)
    return Value(operand, Spec.of(operand.shape, operand.dtype), new_uid())


# ------------------------------------------------------------------------------------------------------------- inputs
def typed_input(value: Any, dtype: DType) -> Any:
    """A sample's input in that dtype, read only; integer and bool arrays and Python numbers keep their type."""
    if not is_array(value):
        return max(1, round(abs(value))) if dtype.kind in "iu" and isinstance(value, float) else value
    if value.dtype == np.float64:
        x = np.asarray(value)
        if dtype.kind in "iu":  # nonzero: divisions must be possible
            x = np.where(x < 0, -1, 1) * (1 + np.floor(3 * np.abs(np.nan_to_num(x, posinf=2, neginf=-2))))
            x = np.abs(x) if dtype.kind == "u" else x
        if dtype.kind == "c":
            with np.errstate(all="ignore"):
                x = x * (1 + 0.4j) + 0.1j * np.roll(x, 1)
        value = x > 0 if dtype.kind == "b" else x.astype(dtype)
    frozen = np.array(value)
    frozen.flags.writeable = False
    return frozen


def spec_of(value: Any) -> Any:
    """The spec of an array, or the weak spec of a Python number."""
    return Spec.of(value.shape, value.dtype) if is_array(value) else Literal(value).spec


def is_array(value: Any) -> bool:
    """Whether a value is an array, and not a Python number."""
    return isinstance(value, np.ndarray | np.generic)  # a result without axes is a NumPy scalar


def random_like(array: Any, *, seed: int) -> Any:
    """Random numbers of the shape and dtype of an array, away from zero."""
    array = np.asarray(array)
    random = np.random.default_rng(seed)
    numbers = random.uniform(0.5, 1.5, array.shape) * random.choice((-1.0, 1.0), array.shape)
    if array.dtype in COMPLEX:
        return (numbers + 1j * random.uniform(-1, 1, array.shape)).astype(array.dtype)
    return np.asarray(numbers).astype(array.dtype)


def with_input(inputs: Sequence[Any], index: int, value: Any) -> tuple[Any, ...]:
    """The inputs with another value for one of them."""
    return (*inputs[:index], value, *inputs[index + 1 :])


def dense(derivative: Any) -> Any:
    """A gradient as an array: slices are summed, None stays None."""
    if isinstance(derivative, SlicesValue):
        return densify(derivative)
    return None if derivative is None else derivative.array
