"""Functions to minimize, and functions with several results: value and first derivatives of a point come together.

They are remembered, so the next method that is called at the same point costs no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.adapters.questions import Array, repeated
from teletape.adapters.wrapping import N_MAX, Function, wrapped


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
        [product] = self._function.ask("hvp", [point], [np.ones(())], [vector])
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
        [rows] = self._function.ask("hvp", [repeated(point, size)], [repeated(weights, size)], [vectors], rows=True)
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
