"""PyTensor's own checker on functions whose derivatives Teletape computes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ways import NUMBER, VECTOR, Counted, Way

import teletape as tf

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed (make adapters)")

import pytensor.tensor as pt  # noqa: E402  # it may be absent
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.gradient import verify_grad  # noqa: E402

from teletape.adapters.pytensor import Function  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTensor's, that it finds no BLAS for its C code
if hasattr(pytensor.gradient, "pushforward"):
    pushforward = functools.partial(pytensor.gradient.pushforward, use_op_pushforward=True)
else:  # PyTensor 2
    pushforward = pytensor.gradient.Rop
RNG = np.random.default_rng(7)
X, W = RNG.normal(size=3), RNG.normal(size=(2, 3))
PYTHON = Mode("py", None)  # compiles nothing
TWO = [pt.TensorType("float64", (2,))]


def test_first_and_second_derivatives_pass_verify_grad(way: Way) -> None:
    f = Function(way.function(NUMBER))
    verify_grad(f, [X, W], rng=RNG, mode=PYTHON)
    for which in (0, 1):
        verify_grad(lambda x, w, n=which: pt.grad(f(x, w), [x, w])[n], [X, W], rng=RNG, mode=PYTHON)


def test_functions_with_several_results_pass_too() -> None:
    f = Function(VECTOR.program, results=TWO)
    verify_grad(f, [X, W], rng=RNG, mode=PYTHON)
    verify_grad(lambda x, w: pt.grad((f(x, w) ** 2).sum(), x), [X, W], rng=RNG, mode=PYTHON)


def test_tangents_agree_with_the_jacobian() -> None:
    x, w, tangent = pt.vector("x", dtype="float64"), pt.as_tensor_variable(W), RNG.normal(size=3)
    f = Function(VECTOR.program, results=TWO)
    moved = pushforward(f(x, w), x, pt.as_tensor_variable(tangent))
    slope = 1 - np.tanh(W @ X) ** 2
    np.testing.assert_allclose(pytensor.function([x], moved, mode=PYTHON)(X), slope * (W @ tangent))


def test_value_and_gradient_of_a_number_are_one_question() -> None:
    counted = Counted(NUMBER.program)
    x = pt.vector("x", dtype="float64")
    value = Function(counted)(x, W)
    both = pytensor.function([x], [value, pt.grad(value, x)])
    both(X)
    assert counted.questions == [("value_and_gradient", None)]


def test_whole_numbers_have_no_gradient() -> None:
    f = Function(lambda table, rows: tf.reduce_sum(tf.gather(table, rows) ** 2))
    table = pt.vector("table", dtype="float64")
    gradient = pytensor.function([table], pt.grad(f(table, rows=np.array([1, 3, 3])), table), mode=PYTHON)
    np.testing.assert_allclose(gradient(np.arange(4.0)), [0.0, 2.0, 0.0, 12.0])
