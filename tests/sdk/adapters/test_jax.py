"""JAX's own checker on functions whose derivatives Teletape computes, and the requests that they cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from ways import NUMBER, VECTOR, Counted, Formula, Way

import teletape as tf

jax = pytest.importorskip("jax", reason="JAX is not installed (make adapters)")

import jax.numpy as jnp  # noqa: E402  # it may be absent
from jax.test_util import check_grads  # noqa: E402

from teletape.adapters.jax import Function  # noqa: E402


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    """The tests need float64, which JAX has on demand."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def at() -> tuple:
    """Values of x and w."""
    rng = np.random.default_rng(7)
    return jnp.asarray(rng.normal(size=3)), jnp.asarray(rng.normal(size=(2, 3)))


def number(x, w):
    return jnp.sum(jnp.tanh(w @ x) ** 2 * x[0])


@pytest.mark.parametrize("formula", [NUMBER, VECTOR], ids=["number", "vector"])
def test_derivatives_of_both_orders_pass_check_grads_both_ways(way: Way, at: tuple, formula: Formula) -> None:
    check_grads(Function(way.function(formula)), at, order=2)


@pytest.mark.parametrize("formula", [NUMBER, VECTOR], ids=["number", "vector"])
def test_they_pass_under_jit_and_vmap(at: tuple, formula: Formula) -> None:
    x, w = at
    f = Function(formula.program)
    check_grads(jax.jit(f), (x, w), order=2)
    check_grads(jax.jit(jax.vmap(f, (0, None))), (jnp.stack([x, -x]), w), order=2)


def test_value_and_gradient_of_a_number_are_one_request(way: Way, at: tuple) -> None:
    both = jax.jit(jax.value_and_grad(Function(way.function(NUMBER)), argnums=(0, 1)))
    both(*at)
    with way.requests() as requests:
        value, gradients = both(*at)
        value.block_until_ready()
    assert requests.count == way.is_remote
    expected = jax.value_and_grad(number, argnums=(0, 1))(*at)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b), (value, gradients), expected)


def test_chains_are_one_request(way: Way, at: tuple) -> None:
    x, w = at
    chains = jnp.stack([x * scale for scale in range(1, 9)])
    gradient = jax.jit(jax.vmap(jax.grad(Function(way.function(NUMBER))), (0, None)))
    gradient(chains, w)
    with way.requests() as requests:
        gradients = gradient(chains, w).block_until_ready()
    assert requests.count == way.is_remote
    np.testing.assert_allclose(gradients, jax.vmap(jax.grad(number), (0, None))(chains, w))


def test_a_request_has_at_most_n_max_rows(at: tuple) -> None:
    counted, (x, w) = Counted(NUMBER.program), at
    f = Function(counted, n_max=4, results=[jax.ShapeDtypeStruct((), np.float64)])
    xs = jnp.stack([x * scale for scale in range(1, 7)]).reshape(2, 3, 3)
    jax.vmap(jax.vmap(f, (0, None)), (0, None))(xs, w)
    assert counted.questions == [("call", 4), ("call", 2)]


def test_hessians_come_in_all_orders(at: tuple) -> None:
    f = Function(NUMBER.program)
    expected = jax.hessian(number)(*at)
    for first in (jax.jacfwd, jax.jacrev):
        for second in (jax.jacfwd, jax.jacrev):
            np.testing.assert_allclose(second(first(f))(*at), expected)
    with pytest.raises(tf.errors.UnimplementedError, match="a third derivative: compute one inside the function"):
        jax.jacfwd(jax.hessian(f))(*at)


def test_several_results_whole_numbers_and_names() -> None:
    f = Function(lambda table, rows, scale: (tf.gather(table, rows) * scale, tf.reduce_sum(table)), scale=2.0)
    table, rows = jnp.arange(4.0), jnp.array([1, 3, 3])
    picked, total = f(rows=rows, table=table)
    np.testing.assert_array_equal(picked, [2.0, 6.0, 6.0])
    assert total == 6.0
    gradient = jax.grad(lambda table: f(table, rows)[0].sum())(table)
    np.testing.assert_array_equal(gradient, [0.0, 2.0, 0.0, 4.0])
