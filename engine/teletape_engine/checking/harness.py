"""One op on one sample, and the two recorders that the laws run it in: with arrays, and with specs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from teletape_engine.arrays import backend
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.op import Op, Sample
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DTYPES, DType, Spec


class LawError(AssertionError):
    """An op broke a law; the message names op, law, sample, input and the worst entry."""


class Case:
    """One op on one sample: its inputs as arrays of a dtype, frozen, and how to run it."""

    def __init__(self, op: Op, sample: Sample, dtype: DType = DTYPES["float64"]) -> None:
        self.op, self.sample, self.dtype = op, sample, dtype
        self.attrs: Attrs = op.attrs(sample.attrs)
        self.inputs = tuple(typed(one, dtype) for one in sample.inputs)
        self.cpu = backend("cpu")

    def free(self) -> list[int]:
        """The inputs that have gradients."""
        return [i for i, one in enumerate(self.inputs) if isinstance(one, np.ndarray) and one.dtype in DIFFERENTIABLE]

    def bound(self) -> Bound:
        """The op bound to the inputs' specs."""
        return bind(self.op, tuple(spec_of(one) for one in self.inputs), self.attrs)

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """The result, as a session computes it."""
        context = CpuExecutor()
        with self.cpu.quiet():
            given = [as_operand(context, one) for one in (self.inputs if inputs is None else inputs)]
            return context.apply(self.op, given, self.attrs).array

    def vjp(self, ct: Any, inputs: Sequence[Any] | None = None) -> list[Any]:
        """For each input its cotangent, dense, or None; computed on bare arrays."""
        context, tape = CpuExecutor(), Tape()
        with self.cpu.quiet():
            context.open(tape)
            given = [as_operand(context, one) for one in (self.inputs if inputs is None else inputs)]
            context.watch(tape, [one for one in given if one.uid is not None])
            result = context.apply(self.op, given, self.attrs)
            found = gradient(
                context,
                GradientQuery(
                    tape, [result], [given[i] for i in self.free()], output_gradients=[as_operand(context, ct)]
                ),
            )
        out: list[Any] = [None] * len(given)
        for i, one in zip(self.free(), found, strict=True):
            out[i] = dense(one)
        return out

    def vjps(self, cts: Any, *, recorded: bool = False, context: Any = None) -> list[Any]:
        """For each input the recorded stack of its cotangents, or None; `recorded`: under an outer tape."""
        within, tape, outer = context or CpuExecutor(), Tape(), Tape()
        with self.cpu.quiet():
            given = [as_operand(within, one) for one in self.inputs]
            arrays = [one for one in given if one.uid is not None]
            for one in (outer, tape)[not recorded :]:
                within.open(one)
                within.watch(one, arrays)
            result = within.apply(self.op, given, self.attrs)
            found = vjps(
                within,
                GradientQuery(
                    tape, [result], [given[i] for i in self.free()], output_gradients=[as_operand(within, cts)]
                ),
            )
        out: list[Any] = [None] * len(given)
        for i, stack in zip(self.free(), found, strict=True):
            out[i] = stack
        return out

    def fail(self, law: str, text: str) -> NoReturn:
        """Raises LawError with everything that one needs to see it again."""
        shapes = ", ".join(repr(spec_of(one)) for one in self.inputs)
        raise LawError(f"op {self.op.name!r} breaks the law {law!r} on ({shapes}) with {dict(self.attrs)}: {text}")

    def same(self, law: str, what: str, found: Any, expected: Any, *, rtol: float, atol: float) -> None:
        """Fails unless two arrays agree; names the entry that is worst."""
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            self.fail(law, f"{what} has shape {found.shape}, expected {expected.shape}")
        if found.size == 0:
            return
        wide = np.complex128 if np.iscomplexobj(found) or np.iscomplexobj(expected) else np.float64
        found, expected = found.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            excess = np.abs(found - expected) - rtol * np.abs(expected) - atol
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        excess = np.where(same, -1.0, np.where(np.isnan(excess), np.inf, excess))
        if excess.max() > 0:
            worst = np.unravel_index(int(excess.argmax()), found.shape)
            at = [int(one) for one in worst]
            self.fail(law, f"{what}, worst at {at}: found {found[worst]}, expected {expected[worst]}")


# --------------------------------------------------------------------------------------------------------- recorders
class CpuExecutor(Executor):
    """An executor on the CPU, without a limit on memory."""

    def __init__(self) -> None:
        super().__init__(backend("cpu"), Memory(None, lambda: 0))


def as_operand(recorder: Recorder, operand: Any) -> Any:
    """An array or a number as a recorder, with arrays or without, takes it."""
    return recorder.constant(np.asarray(operand)) if is_array(operand) else Literal(operand)


# ------------------------------------------------------------------------------------------------------------- inputs
def typed(one: Any, dtype: DType) -> Any:
    """A sample's input in that dtype, read only; integer and bool arrays and Python numbers stay what they are."""
    if is_array(one) and one.dtype == np.float64:
        x = np.asarray(one)
        if dtype.kind in "iu":  # nonzero, since zero divides by nothing
            x = np.where(x < 0, -1, 1) * (1 + np.floor(3 * np.abs(np.nan_to_num(x, posinf=2, neginf=-2))))
            x = np.abs(x) if dtype.kind == "u" else x
        if dtype.kind == "c":
            with np.errstate(all="ignore"):
                x = x * (1 + 0.4j) + 0.1j * np.roll(x, 1)
        one = x > 0 if dtype.kind == "b" else x.astype(dtype)
    elif not is_array(one):
        if dtype.kind in "iu" and isinstance(one, float):
            return max(1, round(abs(one)))
        return one
    frozen = np.array(one)
    frozen.flags.writeable = False
    return frozen


def spec_of(one: Any) -> Any:
    """The spec of an array, or the weak one of a Python number."""
    return Spec.of(one.shape, one.dtype) if is_array(one) else Literal(one).spec


def is_array(one: Any) -> bool:
    """Whether it is an array and not a Python number."""
    return isinstance(one, np.ndarray | np.generic)  # a 0-d result is a NumPy scalar


def drawn(like: Any, *, seed: int) -> Any:
    """Random numbers of the shape and dtype of `like`, away from zero."""
    like = np.asarray(like)
    random = np.random.default_rng(seed)
    drawn = random.uniform(0.5, 1.5, like.shape) * random.choice((-1.0, 1.0), like.shape)
    if like.dtype in COMPLEX:
        return (drawn + 1j * random.uniform(-1, 1, like.shape)).astype(like.dtype)
    return np.asarray(drawn).astype(like.dtype)


def replaced(inputs: Sequence[Any], i: int, by: Any) -> tuple[Any, ...]:
    """The inputs with another in place i."""
    return (*inputs[:i], by, *inputs[i + 1 :])


def dense(found: Any) -> Any:
    """A gradient as an array, slices summed; None stays None."""
    if isinstance(found, SlicesValue):
        return densify(found)
    return None if found is None else found.array
