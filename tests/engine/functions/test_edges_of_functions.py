"""What a function's results are connected to: TensorFlow's rule for calls of functions, measured on it."""

import numpy as np
import pytest
from driving import executor

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Call, CallFunction
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.edges import edges_of
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec

F32 = np.dtype(np.float32)
SCALAR = Spec.of((), F32)

#: Two results, each of one argument; a sum; a product; a result that is cut off.
TWO = compile_function(("a", "b"), (Call("mul", ("a", Literal(2.0)), ("x",)), Call("neg", ("b",), ("y",))), ("x", "y"))
SUM = compile_function(("a", "b"), (Call("add", ("a", "b"), ("s",)),), ("s",))
PRODUCT = compile_function(("a", "b"), (Call("mul", ("a", "b"), ("p",)),), ("p",))
CUT = compile_function(("a", "b"), (Call("round", ("b",), ("r",)), Call("neg", ("a",), ("n",))), ("n", "r"))
NESTED = compile_function(("a", "b"), (CallFunction(TWO, ("a", "b"), ("x", "y")), Call("neg", ("x",), ("z",))), ("z",))


def of(program, specs=(SCALAR, SCALAR)):
    return edges_of(lambda recorder, inputs: program.run(recorder, inputs, tie=False), specs)


def test_zeros_for_what_another_result_depends_on():
    assert of(TWO).ties == ((1,), (0,))
    assert of(CUT).ties == ((), (0,))
    assert of(NESTED).ties == ((),)
    assert not of(SUM)


def test_gradients_are_connected_once_going_back_needs_anything():
    assert of(TWO).anchors == ((0, 1), (0, 1))
    assert of(PRODUCT).anchors == ((0, 1),)
    assert of(SUM).anchors == ((),)
    assert of(CUT).anchors == ((), ())


def test_integers_are_connected_to_nothing():
    assert not of(SUM, (Spec.of((), np.dtype(np.int32)),) * 2)


def test_slices_stay_slices():
    table = Spec.of((4, 2), F32)
    lookup = compile_function(
        ("table", "rows", "b"),
        (Call("gather", ("table", "rows"), ("g",), {"axis": 0}), Call("neg", ("b",), ("n",))),
        ("g", "n"),
    )
    result = of(lookup, (table, Spec.of((2,), np.dtype(np.int32)), SCALAR))
    assert result.ties == ((2,), ())  # the result of b gives the table no zeros, which would make its slices dense


@pytest.mark.parametrize(
    ("program", "first", "second"),
    [
        (TWO, [2.0, 0.0], [0.0, 0.0]),
        (SUM, [1.0, 1.0], [None, None]),
        (PRODUCT, [4.0, 3.0], [0.0, 1.0]),
    ],
)
def test_first_and_second_order_of_the_first_result(program, first, second):
    context = executor()
    a, b = context.constant(np.array(3.0, np.float32)), context.constant(np.array(4.0, np.float32))
    outer, inner = Tape(), Tape()
    for tape in (outer, inner):
        context.context.open(tape)
        context.context.watch(tape, [a, b])
    result = program.run(context, [a, b])[0]
    gradients = gradient(context, GradientQuery(inner, [result], [a, b]))
    assert [item.array for item in gradients] == first
    again = gradient(context, GradientQuery(outer, [gradients[0]], [a, b]))
    assert [None if item is None else float(item.array) for item in again] == second


def test_only_arguments_that_a_tape_follows_are_tied():
    context = executor()
    a, b = context.constant(np.array(3.0, np.float32)), context.constant(np.array(4.0, np.float32))
    tape = Tape()
    context.context.open(tape)
    context.context.watch(tape, [a])
    _, y = TWO.run(context, [a, b])
    assert [float(item.array) if item else item for item in gradient(context, GradientQuery(tape, [y], [a, b]))] == [
        0.0,
        None,
    ]


def test_the_ops_are_identities():
    x, other = np.ones(2), np.zeros(3)
    assert CATALOGUE["zeros_edge"](x, other) is x
    assert CATALOGUE["dependency"](x, other) is x
