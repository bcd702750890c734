"""Operands: recorded values inside rules, on which operators are ops."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import trace_spec
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.spec import DTYPES, Spec

VECTOR = Spec.of((3,), DTYPES["float32"])
MATRIX = Spec.of((2, 3), DTYPES["float32"])
INTS = Spec.of((3,), DTYPES["int32"])


class Noting(Runtime):
    """Notes what operands ask of it."""

    def __init__(self):
        self.seen = []

    def call(self, op, args, attrs):
        self.seen.append((op.name, [getattr(arg, "value", arg) for arg in args]))
        return "made"


OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_an_op(name):
    runtime = Noting()
    assert OPERATORS[name](Operand(runtime, "a"), 2.0) == "made"
    assert runtime.seen == [(name, ["a", 2.0])]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_a_reflected_operator_keeps_the_order(name):
    runtime = Noting()
    OPERATORS[name](2.0, Operand(runtime, "a"))
    OPERATORS[name](np.ones(2), Operand(runtime, "a"))  # NumPy must not take the operand apart
    assert [seen[0] for seen in runtime.seen] == [name, name]
    assert runtime.seen[0][1] == [2.0, "a"]


def test_an_operand_is_no_key():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Operand(Noting(), "a"))


def test_a_composition_has_the_spec_of_its_ops():
    spec = trace_spec(lambda a, b: CATALOGUE["reduce_sum"](a * b + 1.0, axis=1), (VECTOR, MATRIX), {})
    assert spec is Spec.of((2,), DTYPES["float32"])


def test_an_op_called_on_bare_arrays_runs_at_once():
    assert CATALOGUE["add"](np.ones(2), 1.0).tolist() == [2.0, 2.0]
