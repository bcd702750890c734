"""Computes a call's jvp from its gradient function, which is linear in the cotangents: the jvp is its transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded


def transposed_tangents(
    recorder: Recorder,
    primals: Sequence[Recorded],
    tangents: Sequence[Recorded | None],
    outputs: Sequence[Recorded],
    *,
    full: Callable[[Recorded, int], Recorded],
    record: Callable[[Sequence[Recorded]], tuple[Tape, Sequence[Any]]],
    gradient: Callable[[GradientQuery], Sequence[Any]],
) -> list[Recorded | None]:
    """The tangents of a call's outputs: the gradient of ⟨tangents, f(cts)⟩ with respect to the cts of its gradient f.

    Args:
        recorder: The context where this is computed.
        primals: The call's inputs.
        tangents: Those of the inputs; None: zeros.
        outputs: The call's results.
        full: An array like a value, full of 0 or 1.
        record: Runs f on a cotangent for each output, on a tape of its own which watches them. Returns the tape and the
            cotangents of the inputs.
        gradient: Computes the gradient of that tape.

    Returns:
        A tangent for each output, dense; None for one that depends on no input with a tangent.
    """
    cts = [full(output, 1) for output in outputs]
    tape, gradients = record(cts)
    targets, weights = [], []
    for cotangent, tangent, primal in zip(gradients, tangents, primals, strict=True):
        if cotangent is not None:
            targets.append(densify(cotangent, recorder))
            weights.append(full(primal, 0) if tangent is None else tangent)
    query = GradientQuery(tape, targets, cts, output_gradients=weights)
    return [densify(tangent, recorder) for tangent in gradient(query)]
