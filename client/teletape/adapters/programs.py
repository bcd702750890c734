"""Functions of the SDK: a `tf.function`, or a Python function of tensors, in this process or over HTTP.

A question is a traced function of its own, so it is one command and one request. Rows are the same question about the
function mapped over rows: row i of the outputs depends on row i of the inputs alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import teletape as tf
from teletape.adapters.questions import Array, Question

Tensors: TypeAlias = list[Any]
#: A function of a list of tensors.
Body: TypeAlias = Callable[[Tensors], Tensors]


class Program:
    """A function of the SDK. `inputs` are the parameters that are not fixed, if its signature names all of them.

    Args:
        function: Takes tensors in order, and returns a tensor or a structure of them.
        fixed: Arguments by name, for each call the same.
    """

    def __init__(self, function: Callable[..., Any], fixed: Mapping[str, Any]) -> None:
        arguments = {
            name: tf.constant(value) if isinstance(value, np.ndarray) else value for name, value in fixed.items()
        }
        self._function = partial(function, **arguments)
        self.inputs = _names(function, fixed)
        self._plans: dict[tuple[Question, bool], Callable[..., Any]] = {}

    def ask(
        self,
        question: Question,
        inputs: Sequence[Array],
        first: Sequence[Array] = (),
        second: Sequence[Array] = (),
        *,
        rows: bool = False,
    ) -> list[Array]:
        """Returns the answer to a question; see `Differentiable.ask`."""
        plan = self._plans.get((question, rows))
        if plan is None:
            body = self._rows if rows else self._outputs
            plan = self._plans[question, rows] = tf.function(partial(_answer, question, body))
        answer = plan(*[[tf.constant(array) for array in arrays] for arrays in (inputs, first, second)])
        return [np.asarray(value) for value in tf.fetch(list(answer))]

    def _outputs(self, inputs: Tensors) -> Tensors:
        return [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(self._function(*inputs))]

    def _rows(self, inputs: Tensors) -> Tensors:
        return list(tf.vectorized_map(self._outputs, inputs))


def _names(function: Callable[..., Any], fixed: Mapping[str, Any]) -> Sequence[str]:
    function = getattr(function, "python_function", function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return ()
    named = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    return [item.name for item in named if item.name not in fixed and item.default is item.empty]


def _answer(question: Question, function: Body, inputs: Tensors, first: Tensors, second: Tensors) -> Tensors:
    """Returns the answer as tensors."""
    sources = [tensor for tensor in inputs if tensor.dtype.is_floating]
    match question:
        case "call":
            return function(inputs)
        case "value_and_gradient":
            return _gradients(function, inputs, sources, None, with_outputs=True)
        case "value_and_jacobian":
            with tf.GradientTape() as tape:
                tape.watch(sources)
                [output] = function(inputs)
            return [output, *tape.jacobian(output, sources, unconnected_gradients="zero")]
        case "vjp":
            return _gradients(function, inputs, sources, first)
        case "jvp":
            return _tangents(function, inputs, sources, first)
        case "value_and_jvp":
            return _tangents(function, inputs, sources, first, with_outputs=True)
        case "hvp":
            with tf.autodiff.ForwardAccumulator(sources, second) as accumulator:
                gradients = _gradients(function, inputs, sources, first)
            return [accumulator.jvp(gradient, "zero") for gradient in gradients]
        case "second_jvp":
            with tf.autodiff.ForwardAccumulator(sources, second) as accumulator:
                tangents = _tangents(function, inputs, sources, first)
            return [accumulator.jvp(tangent, "zero") for tangent in tangents]
        case "hessian":
            with tf.GradientTape() as tape:
                tape.watch(sources)
                outputs = function(inputs)
            [[block]] = tape.hessian(outputs, sources, unconnected_gradients="zero")
            return [block]


def _gradients(
    function: Body, inputs: Tensors, sources: Tensors, cotangents: Any, *, with_outputs: bool = False
) -> Tensors:
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = function(inputs)
    gradients = tape.gradient(outputs, sources, output_gradients=cotangents, unconnected_gradients="zero")
    dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
    return [*outputs, *dense] if with_outputs else dense


def _tangents(
    function: Body, inputs: Tensors, sources: Tensors, tangents: Any, *, with_outputs: bool = False
) -> Tensors:
    with tf.autodiff.ForwardAccumulator(sources, list(tangents)) as accumulator:
        outputs = function(inputs)
    results = [accumulator.jvp(output, "zero") for output in outputs]
    return [*outputs, *results] if with_outputs else results
