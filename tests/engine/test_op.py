"""Binding: what an op decides once for the specs and attributes of a call; plans; the catalogue and its names."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import bind, by_name, trace_spec
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import BadAttributeError, InvalidArgumentError, UnknownOpError
from teletape_engine.spec import DTYPES, WEAK, Spec

VECTOR = Spec.of((3,), DTYPES["float32"])
MATRIX = Spec.of((2, 3), DTYPES["float32"])
INTS = Spec.of((3,), DTYPES["int32"])


def bound(name, *specs, **attrs):
    return bind(CATALOGUE[name], specs, CATALOGUE[name].attrs(attrs))


# -------------------------------------------------------------------------------------------------------------- binding
def test_a_call_is_bound_once():
    assert bound("add", VECTOR, MATRIX) is bound("add", VECTOR, MATRIX)
    assert bound("reduce_sum", MATRIX, axis=0) is not bound("reduce_sum", MATRIX, axis=1)
    assert bound("add", VECTOR, WEAK[float]) is not bound("add", VECTOR, WEAK[int])


def test_the_result_and_the_price_are_known_before_anything_runs():
    call = bound("add", VECTOR, MATRIX)
    assert (call.spec, call.price) == (MATRIX, 24)
    assert bound("fill", WEAK[float], shape=(10**6, 10**6)).price == 4 * 10**12


def test_a_call_that_cannot_be_names_the_op_and_is_not_remembered():
    before = len(CATALOGUE["add"].bound)
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[3\] vs. \[4\]") as caught:
        bound("add", VECTOR, Spec.of((4,), DTYPES["float32"]))
    assert caught.value.details["op"] == "add"
    assert len(CATALOGUE["add"].bound) == before


def test_the_table_of_calls_is_bounded():
    op = CATALOGUE["sin"]
    for n in range(5000):
        bind(op, (Spec.of((n,), DTYPES["float32"]),))
    assert len(op.bound) <= 4096
    op.bound.clear()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_count_of_inputs(count):
    with pytest.raises(InvalidArgumentError, match=rf"op 'add' takes 2 inputs \(.*\), found {count}"):
        CATALOGUE["add"].check_count(count)


@pytest.mark.parametrize(
    ("beside", "number", "dtype"),
    [
        (VECTOR, 2, "float32"),
        (VECTOR, 2.5, "float32"),
        (INTS, 2, "int32"),
        (None, 2, "int32"),
        (None, 2.5, "float32"),
        (None, True, "bool"),
        (None, 2j, "complex128"),
    ],
)
def test_a_number_takes_the_dtype_of_the_array_beside_it(beside, number, dtype):
    specs = (WEAK[type(number)], beside or WEAK[type(number)])
    assert CATALOGUE["add"].number_dtype(0, specs) is DTYPES[dtype]


def test_among_numbers_the_widest_decides():
    assert CATALOGUE["add"].number_dtype(0, (WEAK[int], WEAK[float])) is DTYPES["float32"]


@pytest.mark.parametrize(("beside", "number"), [(INTS, 2.5), (VECTOR, 2j), (VECTOR, True)])
def test_a_number_that_the_dtype_beside_cannot_hold(beside, number):
    with pytest.raises(InvalidArgumentError, match=r"op 'add', input .*: a Python \w+ cannot take the dtype"):
        CATALOGUE["add"].number_dtype(1, (beside, WEAK[type(number)]))


# ---------------------------------------------------------------------------------------------------------------- plans
def test_a_plan_per_set_of_tracked_inputs():
    call = bound("mul", VECTOR, MATRIX)
    assert call.plan(1) is call.plan(1)
    mapping = {mask: call.plan(mask).picks for mask in (1, 2, 3)}
    assert mapping == {1: (1,), 2: (0,), 3: (0, 1)}
    assert [[i for i, _ in call.plan(mask).rules] for mask in (1, 2, 3)] == [[0], [1], [0, 1]]


def test_a_plan_runs_the_rules_on_what_it_kept():
    a, b = np.array([1.0, 2, 3], np.float32), np.full((2, 3), 2, np.float32)
    plan = bound("mul", VECTOR, MATRIX).plan(3)
    retained = plan.keep((a, b, a * b))
    shares = {i: rule(np.ones((2, 3), np.float32), retained) for i, rule in plan.rules}
    assert shares[0].tolist() == [4, 4, 4]
    assert shares[1].tolist() == [[1, 2, 3], [1, 2, 3]]


def test_an_input_without_a_gradient_has_no_rule():
    assert bound("gather", MATRIX, INTS).plan(3).rules[0][0] == 0
    assert len(bound("gather", MATRIX, INTS).plan(3).rules) == 1
    assert bound("floor", VECTOR).plan(1).rules == ()
    assert not bound("floor", VECTOR).plan(1).unregistered


def test_no_gradient_registered_and_declared_non_differentiable_are_two_things():
    assert CATALOGUE["adjust_contrast"].vjp[0] is NOT_REGISTERED
    assert CATALOGUE["floor"].vjp[0] is NON_DIFFERENTIABLE
    assert [CATALOGUE[name].registered for name in ("adjust_contrast", "floor", "add")] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "i", "saved"),
    [("tanh", 0, ("y",)), ("mul", 0, "other"), ("add", 0, ()), ("floor", 0, ())],
)
def test_what_a_gradient_keeps_is_read_off_its_rule(name, i, saved):
    op = CATALOGUE[name]
    assert op.saves(i) == ((op.inputs[1 - i],) if saved == "other" else saved)


def test_a_rule_that_asks_for_what_does_not_exist():
    call = bound("neg", VECTOR)
    with pytest.raises(TypeError, match="neg: a rule needs 'colour', which is no input, spec or attribute of the op"):
        by_name(lambda ct, colour: ct).bind(call, 0, {})


def test_a_rule_without_a_cotangent():
    with pytest.raises(TypeError, match="takes the cotangent `ct` or the tangent `t` first, found 'y'"):
        by_name(lambda y: y)


def test_a_rule_may_take_all_attributes_that_it_does_not_name():
    transpose = bound("transpose", MATRIX, perm=(1, 0))
    assert by_name(lambda ct, **attrs: attrs).bind(transpose, 0, {})(None, ()) == {"perm": (1, 0)}
    assert by_name(lambda ct, perm, **attrs: attrs).bind(transpose, 0, {})(None, ()) == {}


def test_the_needs_of_a_rule_are_its_parameters():
    assert by_name(lambda ct, x, y_spec: ct).needs == ("x", "y_spec")


# ------------------------------------------------------------------------------------------------------------- operands
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


# ------------------------------------------------------------------------------------------------------------ the names
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("matmull", "did you mean 'matmul'"),
        ("reduce_summ", "'reduce_sum'"),
        ("tf.nn.reluu", "'relu'"),
        ("__import__('os')", "GET /v1/ops lists the ops there are"),
        ("", "GET /v1/ops lists"),
    ],
)
def test_an_unknown_name_gets_the_nearest(wrong, words):
    with pytest.raises(UnknownOpError, match="unknown op ") as caught:
        CATALOGUE.named(wrong)
    assert words in str(caught.value)
    assert caught.value.details == {"op": wrong}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("add", "add"),
        ("AddV2", "add"),
        ("tf.add", "add"),
        ("math.add", "add"),
        ("tf.raw_ops.AddV2", "add"),
        ("tf.nn.relu", "relu"),
        ("negative", "neg"),
        ("math.log_softmax", "log_softmax"),
        ("sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy"),
    ],
)
def test_tensorflows_names_mean_our_ops(name, ours):
    assert CATALOGUE.named(name).name == ours


def test_a_name_of_several_ops_means_none_of_them():
    assert CATALOGUE["det_sign"].op_type == CATALOGUE["log_abs_det"].op_type == "LogMatrixDeterminant"
    with pytest.raises(UnknownOpError):
        CATALOGUE.named("LogMatrixDeterminant")


def test_no_synonym_is_the_name_of_another_op():
    assert not CATALOGUE.synonyms.keys() & CATALOGUE.keys()
    for op in CATALOGUE.values():
        assert all(CATALOGUE.named(name) is op for name in op.tf)


def test_a_wrong_attribute_lists_those_there_are():
    with pytest.raises(BadAttributeError, match="keepdims"):
        CATALOGUE["reduce_sum"].attrs({"keepdim": True})
