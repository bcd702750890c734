"""Forward mode through a custom gradient: its function is linear in the cotangents, and its transpose is the jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from teletape.derivatives.tape import GradientTape
from teletape.ops import dispatch
from teletape.sessions.session import Session
from teletape.tensors.indexed_slices import wrap
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.namespace import ops


def set_tangents(
    owner: Session,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    function: Callable[[Sequence[Any]], Sequence[Any]],
) -> None:
    """Gives each accumulator the tangents of the results of a custom gradient.

    As in TensorFlow, a result that has a tangent by the ops that made it keeps that.

    Args:
        owner: The session.
        inputs: Recorded values: the call's arguments and variables.
        outputs: Recorded values: the call's results.
        function: From a cotangent of each result to one, or None, for each input.
    """
    for accumulator in tuple(owner.recorder().accumulators):
        if not accumulator.mask(inputs):
            continue
        tangents = owner.jvp(accumulator, inputs)
        opened = owner.recorder().opened()
        pairs: list[tuple[Any, Any]] = []
        with owner.paused(opened[opened.index(accumulator) :], {accumulator: pairs}):
            transposed = _transposed(owner, inputs, tangents, outputs, function)
            for value, tangent in zip(outputs, transposed, strict=True):
                if tangent is not None and accumulator.tangent(value) is None:
                    pairs.append((value, dispatch.as_tensor(tangent).operand()))


def _transposed(
    owner: Session,
    inputs: Sequence[Any],
    tangents: Sequence[Any],
    outputs: Sequence[Any],
    function: Callable[[Sequence[Any]], Sequence[Any]],
) -> list[Any]:
    """The tangent, or None, of each output: the gradient of ⟨tangents, function(cts)⟩ with respect to the cts."""
    cts = [dispatch.call(ops.ones_like, (EagerTensor(output, owner),)) for output in outputs]
    with GradientTape() as tape:
        tape.watch([ct for ct in cts if ct.recorded.spec.differentiable])
        gradients = [wrap(gradient, owner) for gradient in function([ct.operand() for ct in cts])]
    targets, weights = [], []
    for gradient, tangent, primal in zip(gradients, tangents, inputs, strict=True):
        if gradient is None:
            continue
        targets.append(dispatch.as_tensor(gradient))
        if tangent is None:
            weights.append(dispatch.call(ops.zeros_like, (EagerTensor(primal, owner),)))
        else:
            weights.append(EagerTensor(tangent, owner))
    return tape.gradient(targets, cts, output_gradients=weights)
