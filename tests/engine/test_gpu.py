"""On a GPU every op gives what it gives on the CPU, and so does its gradient."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import backend
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.checking.harness import Case, is_array, random_like
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES


def numbers(context, item):
    """A gradient's numbers on the host; slices as their values, in order."""
    if item is None:
        return None
    return context.backend.get(item.values.array if isinstance(item, SlicesValue) else item.array)


def answers(device, op, case):
    """The result, the gradient of each input that has one, and those for two cotangents at once."""
    context, tape = Executor(backend(device), Memory(None, lambda: 0)), Tape(persistent=True)
    with context.backend.quiet():
        results = [
            context.constant(np.asarray(operand)) if is_array(operand) else Literal(operand) for operand in case.inputs
        ]
        arrays = [item for item in results if item.uid is not None]
        context.context.open(tape)
        context.context.watch(tape, arrays)
        result = context.apply(op, results, case.attrs)
        outcome = [context.backend.get(result.array)]
        if result.spec.differentiable and op.registered:
            ct = context.constant(random_like(outcome[0], seed=0))
            outcome += [
                numbers(context, item)
                for item in gradient(context, GradientQuery(tape, [result], arrays, output_gradients=[ct]))
            ]
            cts = context.constant(np.stack([random_like(outcome[0], seed=k) for k in range(2)]))
            outcome += [
                numbers(context, derivative)
                for derivative in vjps(context, GradientQuery(tape, [result], arrays, output_gradients=[cts]))
            ]
    return outcome


def compare(device, name, dtype):
    op = CATALOGUE[name]
    for sample in op.samples():
        case = Case(op, sample, DTYPES[dtype])
        for answer, expected in zip(answers(device, op, case), answers("cpu", op, case), strict=True):
            assert (answer is None) == (expected is None)
            if answer is not None:
                assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_on_the_gpu_is_the_op_on_the_cpu(name):
    compare("gpu", name, "float64")


def test_the_comparison_itself_runs_on_any_machine():
    for name in ("mul", "gather", "reduce_prod", "adjust_contrast", "isnan", "nonzero"):
        compare("cpu", name, "float64")
