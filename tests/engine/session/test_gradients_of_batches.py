"""A gradient whose rules a batch's plan notes has the bits and layouts of one that is computed on bare arrays."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
from driving import run

from op_laws.harness import CpuExecutor, is_array, random_like, typed_input
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Call, Constant, Contents, Fetch, Gradient, MakeVariable, TapeOpen
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import TeletapeError
from teletape_engine.plans.ir.buffers import same_layout, same_numbers
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.session.repeats.step_lowering import StepLowering
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES

FIRST = 1 << 40
LAYOUTS = (
    lambda array: array,
    np.asfortranarray,
    lambda array: np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array,
    lambda array: array[::-1] if array.ndim else array,
)


def results(recorder, op, attrs, operands):
    """An op's results that have gradients."""
    ys = recorder.apply(op, operands, attrs)
    return [y for y in (ys if isinstance(ys, tuple) else (ys,)) if y.spec.differentiable]


def gradients(recorder, op, attrs, operands, weights, calls):
    """The gradients of an op's results, which are computed several times."""
    tape = Tape(persistent=False, watch_accessed=False)
    recorder.context.open(tape)
    sources = [value for value in operands if value.uid is not None]
    recorder.context.watch(tape, sources)
    targets = [y for _ in range(calls) for y in results(recorder, op, attrs, operands)]
    if not targets:
        return []
    return gradient(recorder, GradientQuery(tape, targets, sources, output_gradients=weights or None))


def parts(value):
    """The values of a gradient."""
    return [] if value is None else [value.values, value.indices] if isinstance(value, SlicesValue) else [value]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_every_op(dtype):
    """Of several layouts each sample has one, in turn."""
    noted, ops, next_layout = set(), set(), itertools.cycle(LAYOUTS)
    for name, op in CATALOGUE.items():
        for sample in op.samples():
            inputs = [typed_input(value, DTYPES[dtype]) for value in sample.inputs]
            if not all(is_array(value) or isinstance(value, bool | int | float) for value in inputs):
                continue
            recorder, attrs, layout = CpuExecutor(), op.attrs(sample.attrs), next(next_layout)
            operands = [recorder.constant(layout(value)) if is_array(value) else Literal(value) for value in inputs]
            for calls, is_weighted in (1, False), (1, True), (2, True):
                with np.errstate(all="ignore"):
                    try:
                        ys = results(recorder, op, attrs, operands) * calls if is_weighted else []
                        weights = [
                            recorder.constant(layout(random_like(np.asarray(y.array), seed=i)))
                            for i, y in enumerate(ys)
                        ]
                        wanted = gradients(recorder, op, attrs, operands, weights, calls)
                    except TeletapeError:
                        continue
                    taken = [*[value for value in operands if value.uid is not None], *weights]
                    lowering = StepLowering(recorder, taken, Contents((), (), (), ()), (), constants=False)
                    noted_ones = gradients(lowering, op, attrs, operands, weights, calls)
                ops.add(name)
                if lowering.obstacle is None:
                    noted.add(name)
                for a, b in zip(map(parts, noted_ones), map(parts, wanted), strict=True):
                    for x, y in zip(a, b, strict=True):
                        first, second = np.asarray(x.array), np.asarray(y.array)
                        alike = x.spec is y.spec and type(x.array) is type(y.array) and same_layout(first, second)
                        assert alike, (name, sample.attrs)
                        assert same_numbers(first, second), (name, sample.attrs)
    assert len(noted) > 0.85 * len(ops) > 50, sorted(ops - noted)


def test_complex_scalars(monkeypatch):
    """NumPy multiplies complex scalars with other last bits than arrays: no plan has them, and no batch notices."""
    for name, setting in asdict(Policy.of("force")).items():
        monkeypatch.setattr(POLICY, name, setting)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        start, factor = np.complex64(rng.normal(size=2) + 1j * rng.normal(size=2))
        session, fetched = Session(), set()
        run(session, MakeVariable("v", start))
        for number in range(4):
            x, tape, a, b, c, y, grad = range(FIRST + 10 * number, FIRST + 10 * number + 7)
            todo = (
                *(Constant(x, factor), TapeOpen(tape), Call("mul", ("v", x), (a,)), Call("sin", (a,), (b,))),
                *(Call("square", (b,), (c,)), Call("real", (c,), (y,)), Gradient(tape, (y,), ("v",), (grad,))),
                Fetch(grad),
            )
            results = run(session, *todo, releases=(x, tape, a, b, c, y, grad))
            fetched.add(np.asarray(results[-1].array).tobytes())
        assert len(fetched) == 1
