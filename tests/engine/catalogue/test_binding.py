"""Binding: what is decided once for an op on inputs of certain specs, and the rules that a tape runs."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue import binding
from teletape_engine.catalogue.attributes import NO_ATTRS
from teletape_engine.catalogue.binding import bind, by_name
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
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
    ("array", "number", "dtype"),
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
def test_a_number_takes_the_dtype_of_the_array_in_the_same_call(array, number, dtype):
    specs = (WEAK[type(number)], array or WEAK[type(number)])
    assert CATALOGUE["add"].number_dtypes(specs)[0] is DTYPES[dtype]


def test_among_numbers_the_widest_decides():
    assert CATALOGUE["add"].number_dtypes((WEAK[int], WEAK[float]))[0] is DTYPES["float32"]


@pytest.mark.parametrize(("array", "number"), [(INTS, 2.5), (VECTOR, 2j), (VECTOR, True)])
def test_a_number_that_the_dtype_of_the_array_cannot_hold(array, number):
    with pytest.raises(InvalidArgumentError, match=r"op 'add', input .*: a Python \w+ cannot take the dtype"):
        CATALOGUE["add"].number_dtypes((array, WEAK[type(number)]))


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


def test_full_tables_lose_a_part_and_not_everything(monkeypatch):
    monkeypatch.setattr(binding, "_MAX_BOUND", 64)
    op = CATALOGUE["neg"]
    specs = [Spec.of((1000 + n,), DTYPES["float32"]) for n in range(80)]
    for spec in specs:
        bind(op, (spec,))
    remembered = [(spec, NO_ATTRS) in op.bound for spec in specs]
    assert len(op.bound) <= 64
    assert remembered[-1]
    assert sum(remembered) > 40


def test_all_bound_calls_together_are_bounded(monkeypatch):
    monkeypatch.setattr(binding, "_MAX_RULES", 2000)
    monkeypatch.setattr(binding, "_rules", 0)
    names = ("neg", "exp", "tanh", "sin", "cos")
    for n in range(300):
        for name in names:
            bind(CATALOGUE[name], (Spec.of((2000 + n,), DTYPES["float32"]),)).plan(1)
    assert sum(len(op.bound) for op in CATALOGUE.values()) < 2000 // 3
    many = tuple([Spec.of((n,), DTYPES["float32"]) for n in range(1, 1500)])
    op = CATALOGUE["concat"]
    for mask in (1, 2, 4):
        bind(op, many, op.attrs({"axis": 0})).plan(mask)
    assert binding._rules <= 2000 + 1502
