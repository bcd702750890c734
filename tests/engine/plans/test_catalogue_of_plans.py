"""The law of plans: every op, forward and backward, on every sample, dtype and layout, gives the interpreter's bytes.

In the mode `force` each new plan is run twice in memory filled with no numbers, and compared with the interpreter.
"""

import itertools
from dataclasses import asdict

import numpy as np
import pytest

from op_laws.harness import CpuExecutor, as_operand, is_array, random_like, typed_input
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.errors import InternalError, TeletapeError
from teletape_engine.plans.cache import Plans
from teletape_engine.plans.ir.buffers import same_layout
from teletape_engine.plans.ir.instructions import PythonCall
from teletape_engine.plans.lower.foreseen import Foreseen, Unforeseen
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.spec import DTYPES


class Body:
    """A function of a recorder, as plans run it."""

    size = 1

    def __init__(self, body):
        self.body = body

    def run(self, recorder, arguments, *, tie=True):
        return self.body(recorder, arguments)


def row_major(array):
    return array


def column_major(array):
    return np.asfortranarray(array)


def reversed_rows(array):
    return np.ascontiguousarray(array[::-1])[::-1] if array.ndim else array


def strided(array):
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


LAYOUTS = (row_major, column_major, reversed_rows, strided)
CASES = [
    # Of several layouts each sample has one, in turn.
    ("python", (row_major,), "float32"),
    ("python", LAYOUTS, "float16"),
    ("python", (column_major,), "complex64"),
    ("c", (row_major,), "float32"),
    ("c", LAYOUTS, "float64"),
    ("c", (column_major,), "complex64"),
    ("c", LAYOUTS, "int32"),
    *[
        pytest.param(walk, (layout,), dtype, marks=pytest.mark.more)
        for walk, layout, dtype in [
            *itertools.product(["python"], LAYOUTS[1:], ["float32"]),
            *itertools.product(["python"], LAYOUTS, ["float64"]),
            ("python", row_major, "float16"),
            ("python", strided, "int32"),
            ("c", row_major, "float64"),
            ("c", strided, "float32"),
            ("c", reversed_rows, "int32"),
        ]
    ],
]


@pytest.fixture
def forced(walk, monkeypatch):
    if walk == "c" and loaded.LIBRARY_LOADED is None:
        pytest.skip("librows.so.1 is not built: no C compiler")
    for name, setting in (asdict(Policy.of("force")) | {"compiled": walk == "c"}).items():
        monkeypatch.setattr(POLICY, name, setting)


def planned(body, recorder, arguments):
    """Runs a body as a plan; returns whether there is one, and how many of its instructions are in Python."""
    plans = Plans(possible=True)
    try:
        plans.run(Body(body), recorder, arguments)
    except InternalError:
        raise
    except TeletapeError:
        return None
    plans = [plan for plan in plans._plans.values() if plan is not None and plan.__class__ is not int]
    return plans[0] if plans else None


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize(
    ("walk", "layouts", "dtype"),
    CASES,
    ids=lambda case: case if isinstance(case, str) else " and ".join(layout.__name__ for layout in case),
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_plans_of_every_op(walk, layouts, dtype):
    lowered, total, foreseen = set(), set(), set()
    next_layout = itertools.cycle(layouts)
    for name, op in CATALOGUE.items():
        for sample in op.samples():
            layout = next(next_layout)
            inputs = [typed_input(value, DTYPES[dtype]) for value in sample.inputs]
            inputs = [layout(value) if is_array(value) else value for value in inputs]
            recorder = CpuExecutor()
            attrs = op.attrs(sample.attrs)
            with np.errstate(all="ignore"):
                operands = [as_operand(recorder, value) for value in inputs]
                try:
                    bound = bind(op, tuple([operand.spec for operand in operands]), attrs)
                    result = recorder.apply(op, operands, attrs)
                except TeletapeError:
                    continue
                if len(op.results) > 1:
                    plan = planned(lambda r, a, op=op, attrs=attrs: [*r.apply(op, a, attrs)], recorder, operands)
                    assert plan is not None or op.dynamic or layout is reversed_rows, (name, sample.attrs)
                    continue
                if is_foreseen(op, recorder, operands, attrs, result.array):
                    foreseen.add(name)
                plan = planned(lambda r, a, op=op, attrs=attrs: [r.apply(op, a, attrs)], recorder, operands)
                if plan is not None:
                    total.add(name)
                    if not any(isinstance(each, PythonCall) for each in plan.instructions):
                        lowered.add(name)
                if op.expand is None and op.registered and not op.dynamic:
                    backward(bound, recorder, operands, result)
    assert len(lowered) > 0.4 * len(total) > 20, sorted(total - lowered)
    assert len(foreseen) > 0.4 * len(total)


def is_foreseen(op, recorder, operands, attrs, array):
    """Whether the layout of a result is known before; it must be the real one then."""
    lowering = Foreseen(recorder, operands)
    try:
        result = lowering.apply(op, operands, attrs)
    except (TeletapeError, Unforeseen):
        return False
    if any(isinstance(instruction, PythonCall) for instruction in lowering.instructions):
        return False
    tracer = lowering.tracer(result)
    assert same_layout(tracer.layout, array), (op.name, attrs, tracer.strides, array.strides)
    assert tracer.scalar == isinstance(array, np.generic), (op.name, attrs)
    return True


def backward(bound, recorder, operands, result):
    """Runs each vjp and jvp rule as a plan."""
    plan = bound.plan((1 << len(operands)) - 1)
    values = (*operands, result)
    ct = recorder.constant(random_like(result.array, seed=3))

    def vjp(rule):
        def body(recorder, arguments):
            residuals = [
                Operand(recorder, value) if value.uid is not None else value.array
                for value in [arguments[pick] for pick in plan.picks]
            ]
            gradient = rule(Operand(recorder, arguments[-1]), residuals)
            return [] if isinstance(gradient, SparseGradient) else [gradient.value]

        return body

    for _, rule in plan.rules:
        planned(vjp(rule), recorder, [*values, ct])
