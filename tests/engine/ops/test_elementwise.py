"""Elementwise ops: what their formulas become, with factors, whole maps, names and numbers."""

import numpy as np
import pytest
from driving import executor

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.elementwise import binary, elementwise, linear_map, unary
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import DTYPES, Spec

VECTOR = Spec.of((3,), DTYPES["float32"])
MATRIX = Spec.of((2, 3), DTYPES["float32"])
INTS = Spec.of((3,), DTYPES["int32"])

X, Y, CT = np.array([1.0, 2, 4]), np.array([2.0, 4, 8]), np.array([1.0, 10, 100])
FLOATS = Spec.of((3,), DTYPES["float64"])


@pytest.fixture
def family(monkeypatch):
    """Lets a test define ops, which are gone after it."""
    names = set(CATALOGUE)
    monkeypatch.setattr(CATALOGUE, "frozen", False)
    yield
    for name in set(CATALOGUE) - names:
        del CATALOGUE[name]
        delattr(ops, name)


def gradients(op, *arrays):
    """The gradients by all inputs, from the cotangent CT."""
    plan = bind(op, tuple(Spec.of(array.shape, array.dtype) for array in arrays)).plan((1 << len(arrays)) - 1)
    residuals = plan.keep((*arrays, op(*arrays)))
    return [rule(CT, residuals).tolist() for _, rule in plan.rules], len(residuals)


def test_a_factor_multiplies_the_cotangent(family):
    op = unary("doubled_square", lambda x: 4 * x, "2x².", numpy="square")
    assert gradients(op, X) == ([[4, 80, 1600]], 1)


def test_a_linear_map_is_the_whole_rule(family):
    op = unary("halved", linear_map(lambda ct: ct / 2), "x / 2.", numpy="positive")
    assert gradients(op, X) == ([[0.5, 5, 50]], 0)


def test_a_name_is_the_factor_and_a_number_is(family):
    op = binary("product", ("b", -1), "a · b.", numpy="multiply")
    assert gradients(op, X, Y) == ([[2, 40, 800], [-1, -10, -100]], 1)


def test_a_number_of_zero_is_a_rule_that_is_zero_everywhere(family):
    op = unary("constant", 0, "A constant.", numpy="sign")
    assert gradients(op, X) == ([[0, 0, 0]], 0)
    assert bind(op, (FLOATS,)).zero_derivative(0)
    assert not bind(ops.exp, (FLOATS,)).zero_derivative(0)


def test_an_entry_belongs_to_the_file_that_makes_it(family):
    op = unary("mine", NON_DIFFERENTIABLE, "Mine.", numpy="sign", tf="mine math.mine")
    assert (op.forward.__module__, op.op_type, op.tf, op.doc) == (__name__, "Mine", ("mine", "math.mine"), "Mine.")
    assert ops.mine is op


def test_the_result_may_have_a_dtype_of_its_own(family):
    op = binary("above", NOT_REGISTERED, "a > b.", numpy="greater", result=DTYPES["bool"])
    assert bind(op, (FLOATS, FLOATS)).spec is Spec.of((3,), DTYPES["bool"])
    with pytest.raises(InvalidArgumentError, match="was expected to be a double tensor but is a float tensor"):
        bind(op, (FLOATS, VECTOR))


def test_a_formula_that_needs_what_does_not_exist(family):
    @elementwise(lambda colour: colour)
    def painted(xp, x):
        """x, painted."""
        return x

    with pytest.raises(TypeError, match="painted: a rule needs 'colour'"):
        bind(painted, (FLOATS,)).plan(1)


# --------------------------------------------------------------------------------------------------------------- tails
def _exact_logistic(x):
    """The logistic function's first two derivatives, from the small exponential alone."""
    e = np.exp(-np.abs(x))
    first = e / (1 + e) ** 2
    return first, -np.sign(x) * first * (1 - e) / (1 + e)


def _exact_tanh(x):
    """tanh x = 2 sigmoid(2 x) - 1."""
    first, second = _exact_logistic(2 * x)
    return 4 * first, 8 * second


@pytest.mark.parametrize(
    ("name", "order", "dtype", "exact_derivatives"),
    [
        *(("sigmoid", 1, dtype, _exact_logistic) for dtype in ("float64", "float32", "float16")),
        *(("softplus", 2, dtype, _exact_logistic) for dtype in ("float64", "float32", "float16")),
        ("tanh", 1, "float64", _exact_tanh),
    ],
)
def test_derivatives_of_sigmoids_are_right_where_the_result_is_rounded_to_1(name, order, dtype, exact_derivatives):
    x = np.array([700, 40, 12, 5, 0.5, -0.5, -5, -12, -40, -700], dtype)
    context, tapes = executor(), [Tape(persistent=True) for _ in range(order + 1)]
    value = context.constant(x)
    for tape in tapes:
        context.context.open(tape)
        context.context.watch(tape, [value])
    derivatives = []
    with context.backend.quiet():
        y = context.apply(CATALOGUE[name], [value])
        for tape in reversed(tapes):
            [y] = gradient(context, GradientQuery(tape, [y], [value]))
            derivatives.append(y.array)
    exact_values = exact_derivatives(x.astype("f8"))
    limits = np.finfo(dtype)
    for result, exact in zip(derivatives[order - 1 :], exact_values, strict=False):
        exact = exact.astype(dtype)
        np.testing.assert_allclose(result, exact, rtol=16 * limits.eps, atol=8 * limits.smallest_subnormal)
