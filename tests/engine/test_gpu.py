"""On a GPU every op gives what it gives on the CPU, and so does its gradient."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import backend
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.checking.harness import Case, drawn, is_array
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES


def numbers(context, one):
    """A gradient's numbers on the host; slices as their values, in order."""
    if one is None:
        return None
    return context.backend.get(one.values.array if isinstance(one, SlicesValue) else one.array)


def answers(device, op, case):
    """The result, the gradient of each input that has one, and those for two cotangents at once."""
    context, tape = Executor(backend(device), Memory(None, lambda: 0)), Tape(persistent=True)
    with context.backend.quiet():
        given = [context.constant(np.asarray(one)) if is_array(one) else Literal(one) for one in case.inputs]
        arrays = [one for one in given if one.uid is not None]
        context.open(tape)
        context.watch(tape, arrays)
        result = context.apply(op, given, case.attrs)
        found = [context.backend.get(result.array)]
        if result.spec.differentiable and op.registered:
            ct = context.constant(drawn(found[0], seed=0))
            found += [
                numbers(context, one)
                for one in gradient(context, GradientQuery(tape, [result], arrays, output_gradients=[ct]))
            ]
            cts = context.constant(np.stack([drawn(found[0], seed=k) for k in range(2)]))
            found += [
                numbers(context, one)
                for one in vjps(context, GradientQuery(tape, [result], arrays, output_gradients=[cts]))
            ]
    return found


def compare(device, name, dtype):
    op = CATALOGUE[name]
    for sample in op.samples():
        case = Case(op, sample, DTYPES[dtype])
        for found, expected in zip(answers(device, op, case), answers("cpu", op, case), strict=True):
            assert (found is None) == (expected is None)
            if found is not None:
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_on_the_gpu_is_the_op_on_the_cpu(name):
    compare("gpu", name, "float64")


def test_the_comparison_itself_runs_on_any_machine():
    for name in ("mul", "gather", "reduce_prod", "adjust_contrast", "isnan", "nonzero"):
        compare("cpu", name, "float64")
