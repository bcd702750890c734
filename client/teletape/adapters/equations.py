"""The right-hand side of a differential equation, with forward sensitivities, for `scipy.integrate.solve_ivp`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape.adapters.questions import Array, repeated
from teletape.adapters.wrapping import N_MAX, Function, wrapped


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
        inputs = [repeated(array, count) for array in self._inputs(t, state)]
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
