"""`teletape.adapters.scipy`: the functions that SciPy's optimizers and solvers ask for, by one request for a point.

Value and first derivatives of a point come together and are remembered, so the next method that is called at the same
point costs no request. All of it is float64 for SciPy; a function that declares another dtype gets that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape.adapters.questions import Array
from teletape.adapters.wrapping import N_MAX, Function, wrapped

__all__ = ["Objective", "Residuals", "RightHandSide"]


class _OfPoints:
    """A function of one flat vector x: the answers at the last point are remembered."""

    def __init__(
        self,
        function: Function,
        *,
        shape: Sequence[int] | None = None,
        targets: Sequence[str] | None = None,
        n_max: int = N_MAX,
        **fixed: Any,
    ) -> None:
        self._function, self._shape = wrapped(function, fixed, n_max, targets), shape
        if len(self._function.inputs) > 1:
            names = ", ".join(self._function.inputs)
            raise TypeError(f"SciPy varies one input, and the function takes {names}: give all but one by name")
        self._point = np.empty(0)
        self._answers: dict[str, Any] = {}

    def _at(self, x: Any) -> tuple[Array, dict[str, Any]]:
        """Returns a point, and what is known there."""
        point = np.asarray(x, np.float64)
        if point.shape != self._point.shape or not np.array_equal(point, self._point):
            self._point, self._answers = point.copy(), {}  # optimizers move x in place
        return self._point if self._shape is None else self._point.reshape(self._shape), self._answers


class Objective(_OfPoints):
    """A function to minimize: `scipy.optimize.minimize(f.fun, x0, jac=f.jac, hess=f.hess)`, or `hessp=f.hessp`.

    A point costs one request: `fun` and `jac` share it. `hess` is one more, and `hessp` one for each vector.

    Args:
        function: Returns one number. A published function or a session's function of `teletape.service`, a
            `tf.function`, or a Python function of tensors.
        shape: The shape of the input that is varied; SciPy's x has its elements. None: [n].
        targets: The output of a service's function; None: the only one.
        n_max: Most rows in one request.
        **fixed: The function's other inputs, by name.
    """

    def fun(self, x: Any) -> float:
        """Returns the value at x [n]."""
        value, _ = self._value_and_gradient(x)
        if value.size != 1:
            raise ValueError(
                f"an objective is one number, and the function returns the shape {value.shape}: minimize a sum of it, "
                "or use Residuals for least squares and constraints"
            )
        return float(value.reshape(()))

    def jac(self, x: Any) -> Array:
        """Returns the gradient at x [n], float64 [n]."""
        return self._value_and_gradient(x)[1]

    def hess(self, x: Any) -> Array:
        """Returns the Hessian at x [n], float64 [n, n]."""
        point, answers = self._at(x)
        if "hess" not in answers:
            [block] = self._function.ask("hessian", [point])
            answers["hess"] = np.asarray(block, np.float64).reshape(point.size, point.size)
        hessian: Array = answers["hess"]
        return hessian

    def hessp(self, x: Any, p: Any) -> Array:
        """Returns the Hessian at x [n] times the vector p [n], float64 [n]."""
        point, _ = self._at(x)
        vector = np.asarray(p, np.float64).reshape(point.shape)
        [product] = self._function.ask("hvp", [point], [np.ones(()), vector])
        return np.asarray(product, np.float64).reshape(-1)

    def _value_and_gradient(self, x: Any) -> tuple[Array, Array]:
        point, answers = self._at(x)
        if "first" not in answers:
            value, gradient = self._function.ask("value_and_gradient", [point])
            answers["first"] = value, np.asarray(gradient, np.float64).reshape(-1)
        first: tuple[Array, Array] = answers["first"]
        return first


class Residuals(_OfPoints):
    """A function with several results: `scipy.optimize.least_squares(f.fun, x0, jac=f.jac)`, or a constraint's.

    A point costs one request: `fun` and `jac` share it. A constraint of SLSQP is `{"type": "ineq", "fun": f.fun, "jac":
    f.jac}`, others are `NonlinearConstraint(f.fun, lower, upper, jac=f.jac, hess=f.hess)`.

    Args:
        function: Returns a vector [m], or an array of m elements; see `Objective`.
        shape, targets, n_max, **fixed: As for `Objective`.
    """

    def fun(self, x: Any) -> Array:
        """Returns the results at x [n], float64 [m]."""
        return self._value_and_jacobian(x)[0]

    def jac(self, x: Any) -> Array:
        """Returns the Jacobian at x [n], float64 [m, n]."""
        return self._value_and_jacobian(x)[1]

    def hess(self, x: Any, v: Any) -> Array:
        """Returns the Hessian at x [n] of the results times v [m], added, float64 [n, n]: a question about n rows."""
        point, _ = self._at(x)
        size = point.size
        weights = np.asarray(v, np.float64).reshape(self._first(x)[0].shape)
        vectors = np.eye(size).reshape(size, *point.shape)
        [rows] = self._function.ask("hvp", [_repeated(point, size)], [_repeated(weights, size), vectors], rows=True)
        return np.asarray(rows, np.float64).reshape(size, size)

    def _value_and_jacobian(self, x: Any) -> tuple[Array, Array]:
        value, jacobian = self._first(x)
        return value.reshape(-1), jacobian

    def _first(self, x: Any) -> tuple[Array, Array]:
        point, answers = self._at(x)
        if "first" not in answers:
            value, jacobian = self._function.ask("value_and_jacobian", [point])
            value = np.asarray(value, np.float64)
            answers["first"] = value, np.asarray(jacobian, np.float64).reshape(value.size, point.size)
        first: tuple[Array, Array] = answers["first"]
        return first


class RightHandSide:
    """The right-hand side of y' = f(t, y, p): `scipy.integrate.solve_ivp(f.fun, span, y0, jac=f.jac)`.

    With its forward sensitivities dy/dp, the derivatives of the solution by parameters and initial values, it is a
    larger system: `solve_ivp(f.fun_with_sensitivities, span, f.start(y0))`, and `f.split` of a solution. One call of
    `fun_with_sensitivities` is one question about rows, one for each parameter.

    Args:
        function: Of the time [], the state [n] and the parameters, to the derivative [n]; see `Objective`. It need not
            depend on the time.
        by: Parameters to differentiate by, with their values.
        initial: Whether the initial values are parameters too, after those of `by`.
        time, state: The names of these inputs.
        targets: As for `Objective`.
        n_max: Most parameters in one request; more take several.
        **fixed: The function's other inputs, by name.
    """

    def __init__(
        self,
        function: Function,
        by: Mapping[str, Any] | None = None,
        *,
        initial: bool = False,
        time: str = "t",
        state: str = "y",
        targets: Sequence[str] | None = None,
        n_max: int = N_MAX,
        **fixed: Any,
    ) -> None:
        self._function = wrapped(function, fixed, n_max, targets)
        self._values = {name: np.asarray(value, np.float64) for name, value in (by or {}).items()}
        self._names = [*self._function.inputs] or [time, state, *self._values]
        expected = {state, *self._values} | ({time} & set(self._names))
        if set(self._names) != expected:
            raise TypeError(
                f"the function takes {', '.join(self._names)}; found the time {time!r}, the state {state!r} and values "
                f"of {', '.join(self._values) or 'nothing'}: name the time and the state, and give all others"
            )
        self._time, self._state, self._initial = time, state, initial
        self._width = sum(value.size for value in self._values.values())

    def fun(self, t: float, y: Any) -> Array:
        """Returns the derivative of the state y [n] at the time t, float64 [n]."""
        [value] = self._function.ask("call", self._inputs(t, np.asarray(y, np.float64)))
        return np.asarray(value, np.float64)

    def jac(self, t: float, y: Any) -> Array:
        """Returns the Jacobian of `fun` by y, float64 [n, n]."""
        _, *jacobians = self._function.ask("value_and_jacobian", self._inputs(t, np.asarray(y, np.float64)))
        return np.asarray(jacobians[self._names.index(self._state)], np.float64)

    def start(self, y0: Any) -> Array:
        """Returns the initial value of the larger system, float64 [n + n * parameters], from y0 [n]."""
        state = np.asarray(y0, np.float64)
        rows = np.zeros((self._width, state.size))
        return np.concatenate([state, rows.ravel(), np.eye(state.size).ravel() if self._initial else []])

    def split(self, solution: Any) -> tuple[Array, Array]:
        """Returns the state and its derivatives by the parameters: from [n + n * parameters, …] to [n, …], [p, n, …].

        Args:
            solution: As `solve_ivp` has it in `y`, or one column of it.
        """
        solution = np.asarray(solution)
        size = self._states(len(solution))
        return solution[:size], solution[size:].reshape(-1, size, *solution.shape[1:])

    def fun_with_sensitivities(self, t: float, y: Any) -> Array:
        """Returns the derivative of the larger system, float64 [n + n * parameters], in one request.

        Each parameter is a row: the state's tangent is its sensitivity, and its own tangent is one.
        """
        state, tangents = self.split(np.asarray(y, np.float64))
        if not len(tangents):
            return self.fun(t, state)
        count = len(tangents)
        directions = {self._time: np.zeros(count), self._state: tangents}
        start = 0
        for name, value in self._values.items():
            part = np.eye(count, value.size, -start)
            directions[name], start = part.reshape(count, *value.shape), start + value.size
        inputs = [_repeated(array, count) for array in self._inputs(t, state)]
        values, slopes = self._function.ask(
            "value_and_jvp", inputs, [directions[name] for name in self._names], rows=True
        )
        return np.concatenate([np.asarray(values[0], np.float64), np.asarray(slopes, np.float64).ravel()])

    def _states(self, size: int) -> int:
        """Returns the number of states in a vector of the larger system: n with n + n p + n n elements, or n + n p."""
        others = 1 + self._width
        return round((math.sqrt(others**2 + 4 * size) - others) / 2) if self._initial else size // others

    def _inputs(self, t: float, state: Array) -> list[Array]:
        arrays = {self._time: np.asarray(t, np.float64), self._state: state, **self._values}
        return [arrays[name] for name in self._names]


def _repeated(array: Array, count: int) -> Array:
    """Returns a stack of an array with itself."""
    return np.broadcast_to(array, (count, *array.shape))
