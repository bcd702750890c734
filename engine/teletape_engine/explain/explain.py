"""Why a gradient is what it is: from structure, and from numbers if the arrays are at hand.

`explain` needs no arrays, so the SDK runs it too; `explain_numbers` completes its answers with `numerics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from teletape_engine.derivatives.query import Declarations
from teletape_engine.errors import CancelledError, DeadlineExceededError, TeletapeError
from teletape_engine.explain.cuts import Cuts
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.numerics import CallersGradient, NumericDiagnosis
from teletape_engine.explain.provenance_graph import ProvenanceGraph
from teletape_engine.explain.reasons import Outcome, Reason
from teletape_engine.explain.structural import StructuralExplainer
from teletape_engine.recording.progress import never_cancelled
from teletape_engine.recording.provenance import Records, ValueReads
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Variable


def explain(
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    *,
    logs: Iterable[Records] = (),
    value_reads: ValueReads | None = None,
    declarations: Declarations,
    format_where: Callable[[Any], str | None] = str,
    check_cancelled: Callable[[], None] = never_cancelled,
) -> list[Explanation]:
    """Explains from structure alone why the gradient of the targets' sum is what it is for each source.

    Args:
        tape: Stays as it is; it may have answered already.
        targets: Recorded values or variables.
        sources: Recorded values or variables.
        logs: The provenance logs of the session's contexts.
        value_reads: The values that the program has read.
        declarations: Those of the session.
        format_where: Turns a call site into text, for messages.
        check_cancelled: Called before each source and inside the pass; what it raises ends the explanation.

    Returns:
        An explanation for each source. If the outcome is `gradient`, `explain_numbers` may find more.
    """
    distinct = list({id(log): log for log in (*tape.logs, *logs)}.values())
    cuts = Cuts(ProvenanceGraph(tape, distinct), declarations, check_cancelled)
    explainer = StructuralExplainer(cuts, targets, value_reads, format_where)
    explanations = []
    for source in sources:
        check_cancelled()
        explanations.append(explainer.explain(source))
    return explanations


def explain_numbers(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    explanations: Sequence[Explanation],
    *,
    declarations: Declarations,
) -> list[Explanation]:
    """Completes explanations by the tape's numbers: why a gradient that exists is zero or not finite.

    Args:
        recorder: One with arrays.
        tape: As in `explain`.
        targets: As in `explain`.
        sources: As in `explain`.
        explanations: What `explain` returned.
        declarations: Those of the session.

    Raises:
        ResourceExhaustedError: The gradients that it looks at would pass the memory limit.
    """
    recorder.admit(sum([source.spec.nbytes for source in sources]), "the explanation")
    existing = {
        source.uid
        for source, explanation in zip(sources, explanations, strict=True)
        if explanation.outcome is Outcome.GRADIENT
    }
    if not existing or tape.consumed:
        return [explanation.without_numbers() for explanation in explanations]
    starts = [
        (target.uid, recorder.ct(recorder.full(target.spec, 1)))
        for target in targets
        if target.spec.differentiable and not (isinstance(target, Variable) and target.uid not in tape.variables)
    ]
    try:
        diagnosis = NumericDiagnosis(tape, starts, existing, declarations, recorder.check_cancelled)
    except (CancelledError, DeadlineExceededError):
        raise
    except (TeletapeError, ArithmeticError, ValueError) as error:  # from the arrays, for example a singular matrix
        note = f"its numbers cannot be examined: the backward pass fails: {error}"
        return [
            explanation.with_note(note) if explanation.outcome is Outcome.GRADIENT else explanation
            for explanation in explanations
        ]
    return [
        _diagnosed(diagnosis, source, explanation) if source.uid in existing else explanation
        for source, explanation in zip(sources, explanations, strict=True)
    ]


def _diagnosed(diagnosis: NumericDiagnosis, source: Any, explanation: Explanation) -> Explanation:
    try:
        fault = diagnosis.fault(source.uid)
    except CallersGradient:
        return explanation.with_note("its numbers are not examined: that would call a gradient function of the program")
    if fault is None:
        return explanation
    if explanation.code is Reason.PARTLY_CUT:
        explanation = explanation.with_note(explanation.message)
    where = None if fault.node is None else diagnosis.nodes[fault.node][4]
    return replace(explanation, where=where, **fault._asdict())
