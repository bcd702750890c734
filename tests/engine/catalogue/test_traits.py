"""Each trait of an op is held by a law, so that no op can have it wrongly, or lack it unseen."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammainc

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case, LawError
from op_laws.laws import check_op
from teletape_engine.catalogue.binding import bind, trace_spec
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NoGradient
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DIFFERENTIABLE, DTYPES, Spec

VECTOR = Spec.of((3,), DTYPES["float64"])
#: Traits that say why elements of a gradient may be exactly zero.
ZEROS = {Trait.SELECTS, Trait.SATURATES, Trait.MULTIPLIES, Trait.JOINS, Trait.EDGES}


def having(trait):
    return sorted(name for name, op in CATALOGUE.items() if trait in op.traits)


def cases(name):
    return [Case(CATALOGUE[name], sample) for sample in CATALOGUE[name].samples()]


def vjp(case, inputs=None):
    """The gradients by all inputs, from a cotangent without zeros."""
    result = np.asarray(case.run(inputs))
    ct = np.random.default_rng(1).uniform(0.5, 1.5, result.shape) * (1 + 1j if np.iscomplexobj(result) else 1)
    return case.vjp(ct.astype(result.dtype), inputs)


@pytest.mark.parametrize("name", having(Trait.TRUTHS))
def test_what_takes_truths_takes_nothing_else(name):
    op = CATALOGUE[name]
    assert bind(op, (Spec.of((3,), DTYPES["bool"]),) * len(op.inputs), op.attrs({})).spec.dtype == DTYPES["bool"]
    for dtype in DTYPES.values():
        if dtype != DTYPES["bool"]:
            with pytest.raises(InvalidArgumentError):
                bind(op, (Spec.of((3,), dtype),) * len(op.inputs), op.attrs({}))


@pytest.mark.parametrize("trait", Trait)
def test_every_trait_is_used(trait):
    assert having(trait)


# -------------------------------------------------------------------------------------------------- a zero is explained
def _has_rules(op):
    return op.expand is None and op.registered and not all(isinstance(rule, NoGradient) for rule in op.vjp)


@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if _has_rules(op)))
def test_zeros_in_a_gradient_have_a_trait_or_a_rule_that_explains_them(name):
    for case in cases(name):
        if case.bound().spec.dtype not in DIFFERENTIABLE or not case.bound().spec.size:
            continue
        for i, gradient in enumerate(vjp(case)):
            if gradient is not None and np.any(np.asarray(gradient) == 0):
                assert CATALOGUE[name].traits & ZEROS or case.bound().zero_derivative(i), (case.attrs, i)


@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if _has_rules(op)))
def test_a_derivative_said_to_be_zero_everywhere_is(name):
    for case in cases(name):
        for i, gradient in enumerate(vjp(case) if case.bound().spec.dtype in DIFFERENTIABLE else ()):
            if gradient is not None and case.bound().zero_derivative(i):
                assert not np.any(gradient), (case.attrs, i)


# ----------------------------------------------------------------------------------------------------------- by trait
@pytest.mark.parametrize("name", having(Trait.ALIASES))
def test_aliases_pass_a_cotangent_on_as_it_is(name):
    op, x = CATALOGUE[name], np.ones(3)
    sparse = SparseGradient(np.ones((1,)), np.zeros(1, np.int32), VECTOR)
    assert op(x) is x
    assert bind(op, (VECTOR,)).plan(1).rules[0][1](sparse, ()) is sparse


def test_what_takes_a_message_to_fail_with_asserts():
    """An op with a message for an index that it refuses is none: it computes what others need."""
    assert having(Trait.ASSERTS) == sorted(
        name
        for name, op in CATALOGUE.items()
        if any(attr.name == "message" for attr in op.schema.attrs) and not op.refuses
    )


@pytest.mark.parametrize("name", having(Trait.COMPARES))
def test_on_a_tie_the_gradient_goes_to_the_first_input(name):
    case = cases(name)[0]
    first, second = vjp(case, (case.inputs[0], case.inputs[0]))
    assert np.all(first)
    assert not np.any(second)


@pytest.mark.parametrize("name", having(Trait.CONVERTS))
def test_a_conversion_keeps_the_numbers(name):
    integers = np.array([0, 1, 5])
    converted = CATALOGUE[name](integers, dtype=DTYPES["float32"])
    assert converted.dtype == np.float32
    assert converted.tolist() == integers.tolist()


def test_the_plus_of_tensorflow_alone_converts_its_arguments_apart():
    assert [CATALOGUE[name].op_type for name in having(Trait.CONVERTS_APART)] == ["AddV2"]


@pytest.mark.parametrize("name", having(Trait.EDGES))
def test_of_edges_only_the_first_input_has_an_effect(name):
    x = np.ones(3)
    assert CATALOGUE[name](x, np.zeros(2), np.full(2, np.nan)) is x


@pytest.mark.parametrize("name", having(Trait.JOINS))
def test_a_join_holds_all_elements_of_all_inputs(name):
    for case in cases(name):
        parts = np.concatenate([np.ravel(value) for value in case.inputs])
        assert sorted(np.ravel(case.run())) == sorted(parts)


@pytest.mark.parametrize("name", having(Trait.MULTIPLIES))
def test_a_product_with_zeros_has_zeros_in_a_gradient(name):
    case = cases(name)[0]
    zeros = tuple(np.zeros_like(value) for value in case.inputs)
    with np.errstate(all="ignore"):
        gradients = [vjp(case, (*zeros[:i], value, *zeros[i + 1 :])) for i, value in enumerate(case.inputs)]
        gradients.append(vjp(case, zeros))
    assert any(gradient is not None and not np.all(gradient) for result in gradients for gradient in result)


def test_what_draws_from_a_state_is_random():
    drawing = [name for name, op in CATALOGUE.items() if op.inputs[:1] == ("state",) and name != "philox_skip"]
    assert having(Trait.RANDOM) == sorted(drawing)
    for name in having(Trait.RANDOM):
        for case in cases(name):
            np.testing.assert_array_equal(case.run(), case.run())


@pytest.mark.parametrize("name", having(Trait.SATURATES))
def test_where_an_op_saturates_an_element_of_the_result_has_no_derivative_by_its_own(name):
    case = cases(name)[0]
    inputs = (np.array([-1000.0, 1000.0]), *[np.full(2, 2000.0) for _ in case.inputs[1:]])
    flat = case.attrs.get("alpha", 0.0)  # the derivative of a leaky one, where it is flat
    own = [gradient[k] for k in range(2) for gradient in case.vjp(np.eye(2)[k], inputs) if gradient is not None]
    assert any(abs(value) <= flat for value in own)


@pytest.mark.parametrize("name", having(Trait.SELECTS))
def test_a_selection_leaves_elements_out(name):
    results = [np.asarray(gradient) for case in cases(name) for gradient in vjp(case) if gradient is not None]
    assert any(np.any(gradient == 0) for gradient in results) or name == "pad"


def test_a_padded_border_gets_no_element():
    assert np.all(CATALOGUE["pad"](np.ones(2), paddings=((1, 1),)) == [0, 1, 1, 0])


@pytest.mark.parametrize("name", having(Trait.SHAPE_ONLY))
def test_a_result_of_the_shape_alone_is_the_same_for_all_elements(name):
    op = CATALOGUE[name]
    np.testing.assert_array_equal(op(np.zeros((2, 3))), op(np.full((2, 3), 7.0)))


@pytest.mark.parametrize("name", having(Trait.STOPS_GRADIENT))
def test_what_stops_a_gradient_is_a_constant_for_tapes(name):
    op, x = CATALOGUE[name], np.ones(3)
    assert op(x) is x
    assert not bind(op, (VECTOR,)).trackable
    assert set(op.vjp) == {NON_DIFFERENTIABLE}


# -------------------------------------------------------------------------------------------- vectors with free phases
def _without_phases(op):
    """The op followed by what phases do not change: the values, and Y D Yᴴ of all vectors Y below each other."""

    def expand(x, **attrs):
        values, *parts = op(x, **attrs)
        width = max(part.shape[-1] for part in parts)
        lead = [(0, 0)] * (len(x.shape) - 1)
        vectors = ops.concat(*[ops.pad(each, paddings=(*lead, (0, width - each.shape[-1]))) for each in parts], axis=-2)
        weights = ops.cumsum(ops.ones_like(vectors), axis=-1)  # 1, 2, 3, … in each row
        products = ops.matmul(vectors * weights, vectors, adjoint_b=True)
        both = (ops.cast(values, dtype=vectors.dtype), products)
        return ops.concat(*[ops.reshape(part, shape=(math.prod(part.shape),)) for part in both], axis=0)

    def infer(x, **attrs):
        return trace_spec(expand, (x,), attrs)

    return replace(op, expand=expand, infer=infer, results=("y",), bound={}, traits=op.traits - {Trait.PHASES})


@pytest.mark.parametrize("law", ["vjp", "second_order"])
@pytest.mark.parametrize("name", having(Trait.PHASES))
def test_what_free_phases_do_not_change_has_numeric_derivatives(name, law):
    op = _without_phases(CATALOGUE[name])
    for sample in op.samples():
        if np.size(sample.inputs[0]):
            check_op(op, sample, law=law)


@pytest.mark.parametrize("name", having(Trait.PHASES))
def test_only_complex_results_have_phases(name):
    assert all(case.bound().spec.dtype in DIFFERENTIABLE for case in cases(name))


# ------------------------------------------------------------------------------------------- implicit derivatives
@pytest.mark.parametrize("name", having(Trait.FIRST_ORDER))
def test_an_op_without_second_derivatives_has_a_gradient_that_has_none(name):
    op = CATALOGUE[name]
    check_op(op, law="second_order")
    with pytest.raises(LawError, match="gradient registry has no entry for"):
        check_op(replace(op, bound={}, traits=op.traits - {Trait.FIRST_ORDER}), law="second_order")


@pytest.mark.parametrize("name", having(Trait.IMPLICIT))
def test_an_implicit_derivative_leaves_the_value_of_the_distribution_function_as_it_is(name):
    (parameters,) = (case.inputs[1] for case in cases(name)[:1])
    numbers, shape = CATALOGUE[name](cases(name)[0].inputs[0], parameters, shape=(5, 2)), parameters + np.zeros((5, 2))
    step = 1e-6
    moved = [gammainc(shape + sign * step, numbers + sign * step * slopes(name, shape, numbers)) for sign in (1, -1)]
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-10)


def slopes(name, shape, numbers):
    """The derivative by each parameter, as the gradient of an op says."""
    assert name == "philox_gamma"
    return CATALOGUE["random_gamma_grad"](shape, numbers)
