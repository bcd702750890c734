"""PyTorch's own checkers on functions whose derivatives Teletape computes, and the requests that they cost."""

from __future__ import annotations

import numpy as np
import pytest
from ways import NUMBER, VECTOR, Counted, Formula, Way

import teletape as tf

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make adapters)")

from teletape.adapters.torch import Function  # noqa: E402  # it needs PyTorch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's own forward mode uses it


def inputs(*shapes: tuple[int, ...]) -> list:
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(shape, dtype=torch.double, generator=generator, requires_grad=True) for shape in shapes]


@pytest.fixture
def at() -> list:
    """Values of x and w."""
    return inputs((3,), (2, 3))


@pytest.mark.parametrize("formula", [NUMBER, VECTOR], ids=["number", "vector"])
def test_first_derivatives_pass_gradcheck_both_ways(way: Way, at: list, formula: Formula) -> None:
    f = Function(way.function(formula))
    assert torch.autograd.gradcheck(f, at, check_forward_ad=True)


@pytest.mark.parametrize("formula", [NUMBER, VECTOR], ids=["number", "vector"])
def test_second_derivatives_pass_gradgradcheck_both_ways(way: Way, at: list, formula: Formula) -> None:
    f = Function(way.function(formula))
    assert torch.autograd.gradgradcheck(f, at, check_fwd_over_rev=True)


def test_value_and_gradient_of_a_number_are_one_request(way: Way, at: list) -> None:
    f = Function(way.function(NUMBER))
    f(*at)
    with way.requests() as requests:
        f(*at).backward()
    assert requests.count == way.is_remote
    x, w = (value.detach().numpy() for value in at)
    np.testing.assert_allclose(f(*at).item(), np.sum(np.tanh(w @ x) ** 2 * x[0]))


def test_without_gradients_there_are_none(at: list) -> None:
    counted = Counted(NUMBER.program)
    f = Function(counted)
    with torch.no_grad():
        f(*at)
    f(*[value.detach() for value in at])
    assert counted.questions == [("call", None), ("call", None)]


def test_rows_are_one_question(at: list) -> None:
    counted = Counted(VECTOR.program)
    f, (x, w) = Function(counted), [value.detach() for value in at]
    xs = torch.stack([x, 2 * x, 3 * x, 4 * x])
    batch = torch.func.vmap(f, (0, None))(xs, w)
    torch.testing.assert_close(batch, torch.tanh(xs @ w.T))
    assert counted.questions == [("call", 4)]
    jacobian = torch.func.jacrev(f)(x, w)
    torch.testing.assert_close(jacobian, torch.func.jacrev(lambda x: torch.tanh(w @ x))(x))
    assert ("vjp", 2) in counted.questions[1:]
    assert len(counted.questions) <= 4  # value and gradient of a function that proves to be no number; its value


def test_rows_of_rows_are_rows(at: list) -> None:
    counted = Counted(NUMBER.program)
    f, (x, w) = Function(counted, n_max=5), [value.detach() for value in at]
    xs = torch.stack([x * number for number in range(1, 7)]).reshape(2, 3, 3)
    gradients = torch.func.vmap(torch.func.vmap(torch.func.grad(f), (0, None)), (0, None))(xs, w)
    reference = torch.func.grad(lambda x: (torch.tanh(w @ x) ** 2 * x[0]).sum())
    torch.testing.assert_close(gradients, torch.func.vmap(torch.func.vmap(reference))(xs))
    assert {rows for _, rows in counted.questions} == {5, 1}  # six rows, at most five in a question


def test_hessians_come_in_both_orders(at: list) -> None:
    f, (x, w) = Function(NUMBER.program), [value.detach() for value in at]
    expected = torch.func.hessian(lambda x: (torch.tanh(w @ x) ** 2 * x[0]).sum())(x)
    for first in (torch.func.jacfwd, torch.func.jacrev):
        for second in (torch.func.jacfwd, torch.func.jacrev):
            torch.testing.assert_close(second(first(f))(x, w), expected)


def test_inputs_have_names_and_whole_numbers_no_gradient() -> None:
    f = Function(lambda table, rows, scale: tf.reduce_sum(tf.gather(table, rows) ** 2) * scale, scale=0.5)
    table, rows = torch.arange(4.0, requires_grad=True), torch.tensor([1, 3, 3])
    f(rows=rows, table=table).backward()
    torch.testing.assert_close(table.grad, torch.tensor([0.0, 1.0, 0.0, 6.0]))
    with pytest.raises(TypeError, match="the function takes table, rows; found 1 in order and none by name"):
        f(table)


def test_several_results_are_a_tuple() -> None:
    f = Function(lambda x: (tf.reduce_sum(x), x * x))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    total, squares = f(x)
    (total + squares[1]).backward()
    torch.testing.assert_close(x.grad, torch.tensor([1.0, 5.0]))


def test_a_third_derivative_is_refused(at: list) -> None:
    f, (x, w) = Function(NUMBER.program), [value.detach() for value in at]
    with pytest.raises(tf.errors.UnimplementedError, match="a third derivative: compute one inside the function"):
        torch.func.jacrev(torch.func.hessian(f))(x, w)
