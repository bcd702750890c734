"""`tf.numeric_gradient`: a function whose gradient comes from its values, by central differences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from teletape._generated.elementwise.arithmetic import maximum
from teletape._generated.elementwise.complex import abs
from teletape._generated.linalg.composites import tensor_diag, tensor_diag_part
from teletape._generated.reduce import reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import reshape
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.derivatives.custom_gradient import custom_gradient
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import Tensor
from teletape.tf.control_flow.maps import vectorized_map
from teletape.tf.ops.arrays.create import ones_like
from teletape_engine.derivatives.finite_differences import precision

__all__ = ["numeric_gradient"]

P = ParamSpec("P")
R = TypeVar("R")


def numeric_gradient(f: Callable[P, R], *, step: float | None = None) -> Callable[P, R]:
    """Returns `f` with a gradient from its values alone, by central differences: for functions whose ops have none.

    Of each element of the arguments there are two evaluations. All those of an argument run at once by the ops' batch
    rules, as with `tf.vectorized_map`; a function that cannot be traced is called for each.

    Args:
        f: A function of tensors, or nested structures of them, that returns a tensor or a structure of them: the same
            each time. Arguments of real floats get a gradient; keyword arguments and variables that `f` reads get none.
        step: By how much an element is moved to each side. None: the cube root of its dtype's precision, times its
            magnitude if that is above 1: 0.005 for float32, 0.000006 for float64.

    Returns:
        The function. In float32 about 4 digits of its gradient are right, in float64 10.

    Raises:
        teletape.errors.InvalidArgumentError: The step is not above 0.

    Example:
        tf.numeric_gradient(tf.floor, step=0.5)(tf.constant([0.25, 2.75]))
    """
    if step is not None and not step > 0:
        raise InvalidArgumentError(f"step is by how much an element is moved to each side, above 0; found {step}")

    @functools.wraps(f)
    def with_gradient(*args: P.args, **kwargs: P.kwargs) -> R:
        def of_tensors(*tensors: Tensor) -> Any:
            return f(*nest.pack_sequence_as(list(args), list(tensors)), **kwargs)

        def with_differences(*tensors: Tensor) -> Any:
            def grad(*upstream: Any, variables: Sequence[Any] | None = None) -> Any:
                gradients = _gradients(of_tensors, tensors, upstream, step)
                return gradients if variables is None else (gradients, [None] * len(variables))

            return of_tensors(*tensors), grad

        flat = [convert_to_tensor(leaf) for leaf in nest.flatten(list(args))]
        result: R = custom_gradient(with_differences)(*flat)
        return result

    return with_gradient


def _gradients(
    f: Callable[..., Any], tensors: Sequence[Tensor], weights: Sequence[Any], step: float | None
) -> list[Tensor | None]:
    """Returns for each tensor of real floats the gradient of the sum of f's results with their weights."""

    def weighted(*moved: Tensor) -> Tensor:
        total = constant(0.0, dtypes.float64)
        for result, weight in zip(nest.flatten(f(*moved)), weights, strict=True):
            if weight.dtype.is_floating:
                total = total + reduce_sum(cast(result, dtypes.float64) * cast(weight, dtypes.float64))
        return total

    gradients: list[Tensor | None] = []
    for position, tensor in enumerate(tensors):
        if not tensor.dtype.is_floating:
            gradients.append(None)
            continue
        flat = reshape(tensor, [-1])
        steps = _steps(flat, step)
        rows = [flat + tensor_diag(moves) for moves in (steps, -steps)]
        widths = cast(tensor_diag_part(rows[0]) - tensor_diag_part(rows[1]), dtypes.float64)
        slopes = widths
        if flat.shape.as_list() != [0]:
            sides = [reshape(moved, [-1, *tensor.shape.as_list()]) for moved in rows]

            def at(row: Tensor, position: int = position) -> Tensor:
                return weighted(*tensors[:position], row, *tensors[position + 1 :])

            slopes = (vectorized_map(at, sides[0]) - vectorized_map(at, sides[1])) / widths
        gradients.append(reshape(cast(slopes, tensor.dtype), tensor.shape.as_list()))
    return gradients


def _steps(flat: Tensor, step: float | None) -> Tensor:
    """Returns by how much each element [n] is moved."""
    magnitudes = maximum(abs(flat), 1.0)
    return ones_like(flat) * step if step is not None else magnitudes * float(np.cbrt(precision(flat.dtype.np)))
