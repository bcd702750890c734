"""SciPy's optimizers and solvers on functions whose derivatives Teletape computes: the same results, few requests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize
from ways import Counted, Formula, Way

import teletape as tf
from teletape.adapters.scipy import Objective, Residuals, RightHandSide

ROSENBROCK = Formula(
    lambda x: tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2),
    "loss = sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)",
    {"x": ["n"]},
)
DECAY = Formula(
    lambda p, t, y: p[0] * tf.exp(-p[1] * t) - y,
    "error = p[0] * exp(-p[1] * t) - y",
    {"p": [2], "t": ["n"], "y": ["n"]},
)
PREDATORS = Formula(
    lambda y, a, b: tf.stack([a * y[0] - b[0] * y[0] * y[1], y[0] * y[1] - b[1] * y[1]]),
    "slope = [a * y[0] - b[0] * y[0] * y[1], y[0] * y[1] - b[1] * y[1]]",
    {"y": [2], "a": [], "b": [2]},
)
START = np.array([1.3, 0.7, 0.8])
TIMES = np.linspace(0.0, 1.0, 20)


def test_a_point_costs_one_request(way: Way) -> None:
    f = Objective(way.function(ROSENBROCK))
    f.fun(START + 1)
    with way.requests() as requests:
        result = optimize.minimize(f.fun, START, jac=f.jac, method="L-BFGS-B")
    expected = optimize.minimize(optimize.rosen, START, jac=optimize.rosen_der, method="L-BFGS-B")
    assert result.nfev == expected.nfev
    np.testing.assert_allclose(result.x, expected.x, rtol=1e-7)
    assert requests.count == (result.nfev if way.is_remote else 0)


@pytest.mark.parametrize("method", ["trust-ncg", "Newton-CG", "trust-exact"])
def test_second_derivatives_are_exact(way: Way, method: str) -> None:
    f = Objective(way.function(ROSENBROCK))
    second = {"hess": f.hess} if method == "trust-exact" else {"hessp": f.hessp}
    exact = {"hess": optimize.rosen_hess} if method == "trust-exact" else {"hessp": optimize.rosen_hess_prod}
    result = optimize.minimize(f.fun, START, jac=f.jac, method=method, **second)
    expected = optimize.minimize(optimize.rosen, START, jac=optimize.rosen_der, method=method, **exact)
    assert result.nit == expected.nit
    np.testing.assert_allclose(result.x, expected.x, rtol=1e-7)
    vector = np.arange(3.0)
    np.testing.assert_allclose(f.hess(START), optimize.rosen_hess(START), rtol=1e-12)
    np.testing.assert_allclose(f.hessp(START, vector), optimize.rosen_hess_prod(START, vector), rtol=1e-12)


def test_what_is_known_at_a_point_is_not_asked_again() -> None:
    counted = Counted(ROSENBROCK.program)
    f, x = Objective(counted), START.copy()
    f.fun(x), f.jac(x), f.hess(x), f.hess(x), f.jac(x)
    assert counted.questions == [("value_and_gradient", None), ("hessian", None)]
    x[0] = 2.0  # optimizers move a point in place
    assert f.fun(x) == pytest.approx(optimize.rosen(x))
    assert len(counted.questions) == 3


def test_least_squares_has_residuals_and_jacobian_by_one_request(way: Way) -> None:
    f = Residuals(way.function(DECAY), t=TIMES, y=2.0 * np.exp(-3.0 * TIMES))
    f.fun(np.array([5.0, 5.0]))
    with way.requests() as requests:
        result = optimize.least_squares(f.fun, np.array([1.0, 1.0]), jac=f.jac)
    np.testing.assert_allclose(result.x, [2.0, 3.0])
    assert requests.count == (result.nfev if way.is_remote else 0)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_have_their_derivatives(method: str) -> None:
    f, disc = Objective(ROSENBROCK.program), Residuals(lambda x: tf.stack([1.0 - tf.reduce_sum(x * x)]))
    if method == "SLSQP":
        constraint, more = {"type": "ineq", "fun": disc.fun, "jac": disc.jac}, {}
    else:
        constraint = optimize.NonlinearConstraint(disc.fun, 0, np.inf, jac=disc.jac, hess=disc.hess)
        more = {"hess": f.hess}
    result = optimize.minimize(f.fun, [0.0, 0.0], jac=f.jac, method=method, constraints=[constraint], **more)
    np.testing.assert_allclose(result.x, [0.78641515, 0.61769831], rtol=1e-4)


def test_weighted_hessians_of_constraints_are_one_question() -> None:
    counted = Counted(lambda x: tf.stack([x[0] ** 2 * x[1], x[1] ** 3]))
    f = Residuals(counted)
    np.testing.assert_allclose(f.hess([1.0, 2.0], [0.5, 2.0]), [[2.0, 1.0], [1.0, 24.0]])
    assert counted.questions == [("value_and_jacobian", None), ("hvp", 2)]


@pytest.mark.parametrize("initial", [False, True])
def test_sensitivities_are_derivatives_of_the_solution(way: Way, initial: bool) -> None:
    y0, a, b = np.array([1.0, 2.0]), 1.1, np.array([0.4, 0.5])

    def solution(a: float, b: np.ndarray, y0: np.ndarray) -> np.ndarray:
        def slope(t: float, y: np.ndarray) -> list[float]:
            return [a * y[0] - b[0] * y[0] * y[1], y[0] * y[1] - b[1] * y[1]]

        return integrate.solve_ivp(slope, (0.0, 0.5), y0, rtol=1e-10, atol=1e-10).y[:, -1]

    f = RightHandSide(way.function(PREDATORS), {"a": a, "b": b}, initial=initial)
    result = integrate.solve_ivp(f.fun_with_sensitivities, (0.0, 0.5), f.start(y0), rtol=1e-6, atol=1e-6)
    state, sensitivities = f.split(result.y[:, -1])
    np.testing.assert_allclose(state, solution(a, b, y0), rtol=1e-5)
    h, unit = 1e-4, np.eye(2)
    numeric = [solution(a + h, b, y0) - solution(a - h, b, y0)]
    numeric += [solution(a, b + h * axis, y0) - solution(a, b - h * axis, y0) for axis in unit]
    numeric += [solution(a, b, y0 + h * axis) - solution(a, b, y0 - h * axis) for axis in unit if initial]
    np.testing.assert_allclose(sensitivities, np.array(numeric) / (2 * h), rtol=1e-4, atol=1e-5)


def test_all_sensitivities_are_one_request_unless_they_are_too_many(way: Way) -> None:
    parameters = {"a": 1.1, "b": [0.4, 0.5]}
    for n_max, requests_each in ((5, 1), (2, 3)):
        f = RightHandSide(way.function(PREDATORS), parameters, initial=True, n_max=n_max)
        start = f.start([1.0, 2.0])
        slopes = f.fun_with_sensitivities(0.0, start)
        with way.requests() as requests:
            np.testing.assert_allclose(f.fun_with_sensitivities(1.0, start), slopes)
        assert requests.count == (requests_each if way.is_remote else 0)
        assert slopes.shape == start.shape == (2 + 5 * 2,)


def test_a_stiff_solver_gets_the_jacobian_by_the_state(way: Way) -> None:
    f = RightHandSide(way.function(PREDATORS), {"a": 1.1, "b": [0.4, 0.5]})
    np.testing.assert_allclose(f.jac(0.0, [1.0, 2.0]), [[1.1 - 0.8, -0.4], [2.0, 1.0 - 0.5]])
    result = integrate.solve_ivp(f.fun, (0.0, 0.2), [1.0, 2.0], jac=f.jac, method="Radau")
    assert result.success


def test_a_function_of_another_dtype_gets_it(server_url: str) -> None:
    from teletape.service import Client

    with Client(server_url) as client:
        parabola = client.published["parabola"]
        parabola.publish({"text": "y = sum((x - 0.5)**2)"}, {"x": {"shape": [2, "n"]}})
        f = Objective(parabola, shape=(2, 3))
        result = optimize.minimize(f.fun, np.zeros(6), jac=f.jac)
        np.testing.assert_allclose(result.x, 0.5, rtol=1e-5)
        assert f.jac(result.x).dtype == np.float64
        np.testing.assert_allclose(f.hessp(result.x, np.arange(6.0)), 2 * np.arange(6.0))
        parabola.delete()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Objective(DECAY.program), "the function takes p, t, y: give all but one by name"),
        (lambda: Objective(lambda x: x).fun([1.0, 2.0]), r"an objective is one number, and .* shape \(2,\)"),
        (lambda: Objective(3), "an adapter takes a published function .* found 3"),
        (lambda: Objective(ROSENBROCK.program, n_max=0), "at least 1; found 0"),
        (lambda: Objective(ROSENBROCK.program, targets=["y"]), "targets are names of a service's outputs"),
        (lambda: RightHandSide(PREDATORS.program, {"a": 1.0}), "the function takes y, a, b; found the time 't'"),
    ],
)
def test_what_an_adapter_cannot_take_is_refused_with_a_remedy(make, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()
