"""Explanations of a function's gradients from its steps and specs alone: nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape_engine.derivatives.query import Declarations
from teletape_engine.explain.explain import explain
from teletape_engine.explain.explanation import Explanation
from teletape_engine.functions.edges import spec_arguments
from teletape_engine.functions.function import Function
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape


def explain_call(
    function: Function,
    specs: Sequence[Any],
    targets: Sequence[int],
    sources: Sequence[int],
    declarations: Declarations,
) -> list[Explanation]:
    """Explains why the gradient of the targets' sum is what it is for each source, as far as structure decides it.

    Args:
        function: The function.
        specs: Of its inputs; a Python number's is weak.
        targets: Numbers of its outputs.
        sources: Numbers of its inputs, each of which has a `Spec`.
        declarations: Those of the session.

    Raises:
        InvalidArgumentError: The function does not take such inputs.
    """
    recorder, tape = SpecRecorder(), Tape(persistent=True)
    arguments = spec_arguments(specs, function.assigns)
    recorder.context.open(tape)
    recorder.context.watch(tape, [arguments[number] for number in sources])
    results = [recorder.as_value(result) for result in function.run(recorder, arguments)]
    recorder.context.pause(tape)
    return explain(
        tape,
        [results[number] for number in targets],
        [arguments[number] for number in sources],
        logs=[recorder.provenance.records],
        declarations=declarations,
    )
