"""Saved functions: what is checked when one is defined, and what when it is called."""

import numpy as np
import pytest

from teletape_engine.commands import Call
from teletape_engine.errors import BadAttributeError, InvalidArgumentError, UnknownOpError
from teletape_engine.graph import Literal
from teletape_engine.program import Program
from teletape_engine.session import Session

X = np.array([1.0, 2.0], np.float32)
SQUARE = Call("mul", ("a", "a"), ("s",))


@pytest.fixture
def context():
    return Session().context("main")


def test_steps_run_in_order_on_arguments_numbers_and_constants(context):
    program = Program(
        ("a", "b"), (SQUARE, Call("add", ("s", Literal(1.0)), ("t",)), Call("sub", ("t", X), ("u",))), ("u", "b", "s")
    )
    a, b = context.constant(X), context.constant(X + 1)
    u, same, s = program.run(context, [a, b])
    assert u.array.tolist() == [1.0, 3.0]
    assert same is b
    assert s.array.tolist() == [1.0, 4.0]


def test_attributes_are_those_of_the_op(context):
    program = Program(("a",), (Call("reduce_sum", ("a",), ("s",), {"axis": 0}),), ("s",))
    (found,) = program.run(context, [context.constant(X)])
    assert found.array == 3.0


@pytest.mark.parametrize(
    ("inputs", "calls", "results", "error", "words"),
    [
        (("a", "a"), (), (), InvalidArgumentError, r"\['a', 'a'\] name one twice"),
        (("a",), (Call("neg", ("b",), ("c",)),), (), InvalidArgumentError, r"call 0 \(neg\): input 'b' is neither"),
        (
            ("a",),
            (Call("neg", ("s",), ("n",)), SQUARE),
            (),
            InvalidArgumentError,
            "'s' is neither a program input nor made",
        ),
        (("a",), (SQUARE, SQUARE), (), InvalidArgumentError, r"call 1 \(mul\): the name 's' is taken"),
        (("a", "s"), (SQUARE,), (), InvalidArgumentError, "the name 's' is taken"),
        (("a",), (Call("neg", ("a",), ("b", "c")),), (), InvalidArgumentError, "one output, found 2"),
        (("a",), (SQUARE,), ("t",), InvalidArgumentError, "output 't' is never made"),
        (("a",), (Call("negg", ("a",), ("b",)),), (), UnknownOpError, "did you mean 'neg'"),
        (("a",), (Call("neg", ("a",), ("b",), {"axis": 1}),), (), BadAttributeError, "axis"),
        (("a",), (Call("mul", ("a",), ("b",)),), (), InvalidArgumentError, r"takes 2 inputs \(.*\), found 1"),
    ],
)
def test_what_cannot_be_a_program(inputs, calls, results, error, words):
    with pytest.raises(error, match=words):
        Program(inputs, calls, results)


def test_a_wrong_count_of_arguments(context):
    with pytest.raises(InvalidArgumentError, match=r"the program takes 2 inputs \(a, b\), found 1"):
        Program(("a", "b"), (), ("a",)).run(context, [context.constant(X)])


def test_shapes_are_known_only_when_it_is_called(context):
    program = Program(("a", "b"), (Call("add", ("a", "b"), ("s",)),), ("s",))
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]"):
        program.run(context, [context.constant(X), context.constant(np.ones(3, np.float32))])
