"""The protocol between a function and an adapter: one method, which answers a question at some inputs.

Arrays in, arrays out. A question about rows is a stack of the same question: each array has a leading axis more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: What an adapter asks. Arrays follow the inputs: for each output a cotangent, for each source a tangent or vector.
#: Sources are the inputs of floats; derivatives by others do not exist.
#:
#: call                 outputs
#: value_and_gradient   outputs; for each source the gradient of their sum
#: value_and_jacobian   the only output; for each source its Jacobian
#: vjp                  cotangents: for each source the cotangents times the Jacobian
#: jvp, value_and_jvp   tangents: the Jacobian times the tangents for each output; after the outputs
#: hvp                  cotangents, vectors: for each source the derivative of vjp along the vectors
#: second_jvp           tangents, vectors: for each output the derivative of jvp along the vectors
#: hessian              the Hessian of the outputs' sum by the only source
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
        dtypes: The dtype of each input that it declares; empty: it takes what it gets.
    """

    inputs: Sequence[str]
    dtypes: Sequence[np.dtype[Any]]

    def ask(self, question: Question, inputs: Sequence[Array], others: Sequence[Array], *, rows: bool) -> list[Array]:
        """Returns the answer to a question, in one request where it can.

        Args:
            question: What is asked.
            inputs: All inputs, in order.
            others: What follows them.
            rows: Whether every array has a leading axis, along which it stacks the arrays of several questions. So
                have the answers.
        """
        ...


def sources_of(inputs: Sequence[Array]) -> list[int]:
    """Returns the positions of the inputs of floats."""
    return [position for position, array in enumerate(inputs) if array.dtype.kind == "f"]


def split(question: Question, others: Sequence[Array], sources: int) -> tuple[Sequence[Array], Sequence[Array]]:
    """Returns what follows the inputs in two parts: what belongs to the outputs, or tangents, and the vectors."""
    if question == "vjp":
        return others, ()
    if question in ("jvp", "value_and_jvp"):
        return (), others
    return others[: len(others) - sources], others[len(others) - sources :]
