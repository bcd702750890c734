"""Ops of several results: on tapes, in functions, in explanations and pictures. The laws check their rules."""

import numpy as np
import pytest
from driving import attach, failing, run, state_of, value

from teletape_engine.commands import (
    Call,
    CallFunction,
    Constant,
    DefineFunction,
    Explain,
    Gradient,
    Jacobian,
    Map,
    TapeCheckGradients,
    TapeGraph,
    TapeOpen,
    TapePause,
    TapeWatch,
    ValueAndGradient,
)
from teletape_engine.recording.recorder import summed
from teletape_engine.session.handlers.nodes import describe_node, node_gradient
from teletape_engine.session.session import Session

A = np.array([[2.0, 0.5], [0.5, 1.0]])
VALUES, VECTORS = np.linalg.eigh(A)
EIGH = Call("eigh", ("a",), ("e", "v"))


@pytest.fixture
def session():
    """One with a tape that has recorded the call, on a matrix that it watches."""
    session = Session()
    attach(session)
    opened = TapeOpen("t", persistent=True, replayable=True)
    run(session, Constant("a", A), opened, TapeWatch("t", ("a",)), EIGH)
    return session


def gradient(session, *todo, of):
    """The gradient by the matrix of values that commands compute."""
    run(session, *todo, TapePause("t"), Gradient("t", of, ("a",), ("g",)))
    return value(session, "g")


def test_each_result_has_an_id_and_its_own_gradient(session):
    np.testing.assert_allclose(value(session, "e"), VALUES)
    np.testing.assert_allclose(np.abs(value(session, "v")), np.abs(VECTORS))
    of_values = gradient(session, of=("e",))
    np.testing.assert_allclose(of_values, np.eye(2), atol=1e-12)  # the sum of the eigenvalues is the trace
    run(session, Gradient("t", ("v",), ("a",), ("of vectors",)), Gradient("t", ("e", "v"), ("a",), ("of both",)))
    both = of_values + value(session, "of vectors")
    np.testing.assert_allclose(value(session, "of both"), both, atol=1e-12)


def test_a_gradient_that_nothing_asks_for_computes_nothing(session):
    """Only the values have a cotangent: the rule of the vectors, which divides by differences, does not run."""
    run(session, Constant("same", np.eye(2)), TapeWatch("t", ("same",)), Call("eigh", ("same",), ("ones", "any")))
    run(session, TapePause("t"), Gradient("t", ("ones",), ("same",), ("g",)))
    np.testing.assert_array_equal(value(session, "g"), np.eye(2))


@pytest.mark.parametrize("outputs", [(), ("e",), ("e", "v", "w")])
def test_the_number_of_ids_must_be_that_of_the_results(outputs):
    session = Session()
    attach(session)
    run(session, Constant("a", A))
    wanted = f"op 'eigh' has 2 outputs (values, vectors), found {len(outputs)} ids"
    assert failing(session, Call("eigh", ("a",), outputs)).message == wanted
    function = DefineFunction("f", ("a",), (Call("eigh", ("a",), outputs),), ())
    assert wanted in failing(session, function).message


def test_what_a_tape_keeps_and_where_a_gradient_goes_can_be_seen(session):
    (facts,) = run(session, TapeGraph("t", targets=("e",), sources=("a",)))
    nodes = {node["label"]: node for node in facts.facts["nodes"]}
    assert nodes["eigh"]["keeps"] == ["x", "values", "vectors"]
    assert (nodes["eigh.values"]["shape"], nodes["eigh.vectors"]["shape"]) == ([2], [2, 2])
    assert ["path" in nodes[f"eigh.{name}"]["marks"] for name in ("values", "vectors")] == [True, False]
    assert ["target" in nodes[f"eigh.{name}"]["marks"] for name in ("values", "vectors")] == [True, False]
    state = state_of(session)
    for label, result in (("eigh.values", VALUES), ("eigh", VALUES)):
        described = describe_node(state, "t", nodes[label]["id"], bins=1)
        assert (described["shape"], described["value"]["maximum"]) == ([2], pytest.approx(result.max()))
    run(session, releases=("v",))
    assert describe_node(state, "t", nodes["eigh.vectors"]["id"], bins=1)["value"]["maximum"] == pytest.approx(
        VECTORS.max()
    )
    (answer,) = node_gradient(state, "t", nodes["eigh"]["id"], (), bins=1)
    assert answer["kind"] == "dense"


def test_ops_without_a_gradient_elsewhere_on_the_tape_do_not_matter(session):
    run(session, Call("truncatemod", ("e", "e"), ("next",)))
    np.testing.assert_allclose(gradient(session, of=("e",)), np.eye(2), atol=1e-12)
    assert failing(session, Gradient("t", ("next",), ("a",), ("h",))).code == "no_gradient_registered"


def test_tangents_of_several_inputs_add_up_result_by_result():
    assert summed([(1, None, 2), (10, None, None), (100, 5, 200)]) == (111, 5, 202)


def test_explanations_lead_through_the_call(session):
    steps = (Call("sign", ("e",), ("s",)), Call("neg", ("v",), ("n",)))
    run(session, *steps, TapePause("t"), Constant("b", A), Call("eigh", ("b",), ("f", "w")))
    (zero,) = run(session, Explain("t", ("s",), ("a",)))
    assert zero.facts["explanations"][0]["code"] == "zero_derivative"
    (connected,) = run(session, Explain("t", ("n",), ("a",)))
    (connected,) = connected.facts["explanations"]
    assert [step["op"] for step in connected["path"]] == ["neg", "eigh.vectors", "eigh"]
    (late,) = run(session, Explain("t", ("f",), ("b",)))
    assert late.facts["explanations"][0]["code"] == "computed_after_tape"


def test_a_result_of_integers_has_no_gradient_and_says_why(session):
    run(session, Call("top_k", ("e",), ("largest", "places")), Call("cast", ("places",), ("p",), {"dtype": "float64"}))
    np.testing.assert_array_equal(value(session, "places"), [1])
    (answer,) = run(session, Explain("t", ("p",), ("a",)))
    (explanation,) = answer.facts["explanations"]
    assert (explanation["code"], explanation["op"]) == ("integer_or_bool", "top_k.indices")
    assert explanation["message"] == "op 'top_k.indices' turns float64 into int32, which has no gradient"
    along = VECTORS[:, 1]
    np.testing.assert_allclose(np.diag(gradient(session, of=("largest",))), along**2, atol=1e-12)


def test_shapes_that_values_decide_are_answered_for_each_result():
    session = Session()
    attach(session)
    numbers = Constant("x", np.array([3, 1, 3, 3], np.int32))
    (specs,) = run(session, numbers, Call("unique", ("x",), ("y", "i", "n"), {"index_type": "int64"}))
    assert [spec.shape for spec in specs.specs] == [(2,), (4,), (2,)]
    assert [value(session, name).tolist() for name in "yin"] == [[3, 1], [0, 1, 0, 0], [3, 1]]


def test_numbers_that_are_not_finite_are_explained(session):
    infinite = Constant("i", np.array([np.inf, 1.0]))
    run(session, infinite, Call("mul", ("e", "i"), ("m",)), TapePause("t"))
    (answer,) = run(session, Explain("t", ("m",), ("a",)))
    assert answer.facts["explanations"][0]["code"] == "value_not_finite"


def test_the_calls_of_a_tape_can_be_run_again(session):
    steps = (Call("square", ("v",), ("w",)), Call("reduce_max", ("e",), ("m",)), Call("mul", ("w", "m"), ("s",)))
    (report,) = run(session, *steps, TapePause("t"), TapeCheckGradients("t", ("s",), ("a",)))
    assert report.facts["agrees"], report.facts


def test_functions_have_such_steps():
    session = Session()
    attach(session)
    steps = (EIGH, Call("mul", ("v", "e"), ("scaled",)))
    run(session, DefineFunction("f", ("a",), steps, ("e", "scaled")), Constant("a", A))
    expected = VECTORS * VALUES
    for number in range(4):  # the first by the interpreter, others by a plan
        run(session, CallFunction("f", ("a",), (f"e{number}", f"s{number}")))
        np.testing.assert_allclose(np.abs(value(session, f"s{number}")), np.abs(expected))
    run(session, Constant("stack", np.stack([A, 2 * A])), Map("f", ("stack",), (True,), ("es", "ss")))
    np.testing.assert_allclose(value(session, "es"), np.stack([VALUES, 2 * VALUES]))
    run(session, DefineFunction("sum", ("a",), (EIGH, Call("reduce_sum", ("e",), ("s",))), ("s",)))
    run(session, ValueAndGradient("sum", ("a",), outputs=("trace", "d")))
    np.testing.assert_allclose(value(session, "d"), np.eye(2), atol=1e-12)


def test_jacobians_take_all_rows_at_once(session):
    run(session, TapePause("t"), Jacobian("t", ("e",), ("a",), ("j",)))
    jacobian = value(session, "j")
    by_hand = np.stack([np.outer(VECTORS[:, k], VECTORS[:, k]) for k in range(2)])
    np.testing.assert_allclose(jacobian + np.swapaxes(jacobian, 1, 2), by_hand + np.swapaxes(by_hand, 1, 2), atol=1e-12)
