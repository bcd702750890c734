"""The protocol between a function and an adapter: one method, which answers a question at some inputs.

Arrays in, arrays out. A question about rows is a stack of the same question: each array has a leading axis more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: What an adapter asks: at some inputs, with no, one or two further lists of arrays, `first` and `second`. Sources are
#: the inputs of floats. Cotangents have the shapes of the outputs, tangents and vectors those of the sources.
#:
#: question             first       second   answer
#: call                                      outputs
#: value_and_gradient                        outputs; for each source the gradient of their sum
#: value_and_jacobian                        the only output; for each source its Jacobian
#: vjp                  cotangents           for each source the cotangents times the Jacobian
#: jvp                  tangents             for each output the Jacobian times the tangents
#: value_and_jvp        tangents             outputs; the same
#: hvp                  cotangents  vectors  for each source the derivative of vjp along the vectors
#: second_jvp           tangents    vectors  for each output the derivative of jvp along the vectors
#: hessian                                   the Hessian of the outputs' sum by the only source
Question: TypeAlias = Literal[
    "call",
    "value_and_gradient",
    "value_and_jacobian",
    "vjp",
    "jvp",
    "value_and_jvp",
    "hvp",
    "second_jvp",
    "hessian",
]


@runtime_checkable
class Differentiable(Protocol):
    """A function of arrays, and its derivatives.

    Attributes:
        inputs: The names of its inputs, in order; empty: only their order is known.
    """

    inputs: Sequence[str]

    def ask(
        self,
        question: Question,
        inputs: Sequence[Array],
        first: Sequence[Array] = (),
        second: Sequence[Array] = (),
        *,
        rows: bool = False,
    ) -> list[Array]:
        """Returns the answer to a question, in one request where it can.

        Args:
            question: What is asked.
            inputs: All inputs, in order.
            first: Cotangents or tangents; see `Question`.
            second: Vectors.
            rows: Whether every array has a leading axis, along which it stacks the arrays of several questions. So
                have the answers.
        """
        ...


def sources_of(inputs: Sequence[Array]) -> list[int]:
    """Returns the positions of the inputs of floats."""
    return [position for position, array in enumerate(inputs) if array.dtype.kind == "f"]


def repeated(array: Array, count: int) -> Array:
    """Returns a stack of an array with itself: `count` rows."""
    return np.broadcast_to(array, (count, *array.shape))
