"""Explanations: why a gradient is None, zero or not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.explain.explain import explain, explain_numbers
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site

#: For each derivative the reason why it is none, None for one that exists; empty: nothing is explained.
Reasons: TypeAlias = tuple[dict[str, Any] | None, ...]


@handles(commands.Explain)
def explain_gradient(state: State, command: commands.Explain) -> None:
    """Answers an explanation for each source, from structure and from the tape's numbers."""
    tape = state.find(command.tape, TapeEntry).tape
    targets = [differentiable(state, name) for name in command.targets]
    sources = [differentiable(state, name) for name in command.sources]
    explanations = structural_explanations(state, tape, targets, sources)
    explanations = explain_numbers(state.current, tape, targets, sources, explanations, declarations=state.declarations)
    facts = [explanation.with_call_sites(sent_call_site).facts() for explanation in explanations]
    state.results.append(Facts(state.index, {"explanations": facts}))


def reasons_of_nulls(
    state: State, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], derivatives: Sequence[Any]
) -> Reasons:
    """Why derivatives of the targets' sum are none, one reason for each source; empty if there is none.

    Args:
        state: Of the session; `explains` says whether the batch's nulls are explained.
        tape: May have answered already: its structure is enough.
        targets: Recorded values or variables.
        sources: Recorded values or variables.
        derivatives: For each source; None is a null.
    """
    if not state.explains or all(derivative is not None for derivative in derivatives):
        return ()
    missing = [source for source, derivative in zip(sources, derivatives, strict=True) if derivative is None]
    explanations = iter(structural_explanations(state, tape, targets, missing))
    return tuple([None if derivative is not None else _brief(next(explanations)) for derivative in derivatives])


class SecondOrderReasons:
    """Why second derivatives are none: the observer of a query, which it looks at before the tape forgets.

    Args:
        state: Of the session.
        query: The question.

    Attributes:
        why: A reason for each answer that is none, None for the others; empty if none is.
    """

    def __init__(self, state: State, query: GradientQuery) -> None:
        self._state, self._query = state, query
        self.why: Reasons = ()

    def __call__(self, first: Sequence[Any], answers: Sequence[Any]) -> None:
        """Notes the reasons: the answers are products, one for each source, or blocks, one for each pair of sources."""
        if all(answer is not None for answer in answers):
            return
        query, state = self._query, self._state
        count = len(query.sources)
        missing = reasons_of_nulls(state, query.tape, query.targets, query.sources, first) or (None,) * count
        if len(answers) == count:  # products; or the one block of a Hessian by one source, which is explained alike
            targets = [derivative for derivative in first if derivative is not None]
            self.why = self._row(targets, missing, answers)
            return
        whys: list[Any] = []
        for row, derivative in enumerate(first):
            blocks = answers[row * count : (row + 1) * count]
            if derivative is None:
                whys += [None if block is not None else missing[row] for block in blocks]
            else:
                whys += self._row([derivative], missing, blocks)
        self.why = tuple(whys)

    def _row(self, targets: Sequence[Any], missing: Reasons, answers: Sequence[Any]) -> Reasons:
        """The reasons of answers that are derivatives of these first derivatives, for each source."""
        query = self._query
        sources = [
            source
            for source, reason, answer in zip(query.sources, missing, answers, strict=True)
            if answer is None and reason is None
        ]
        explanations = iter(structural_explanations(self._state, query.tape, targets, sources) if sources else ())
        return tuple(
            [
                None if answer is not None else reason or _brief(_of_first_derivative(next(explanations)))
                for reason, answer in zip(missing, answers, strict=True)
            ]
        )


def _of_first_derivative(explanation: Explanation) -> Explanation:
    if explanation.code is Reason.UNCONNECTED:
        return replace(explanation, message="the first derivative does not depend on the source")
    return replace(explanation, message=f"in the first derivative: {explanation.message}")


def _brief(explanation: Explanation) -> dict[str, Any]:
    return explanation.with_call_sites(sent_call_site).brief()


def differentiable(state: State, name: Id) -> Any:
    """A target or source by its id: a variable stays a variable, of a sparse gradient the values count."""
    entry = state.find(name, (Value, Variable, SlicesValue))
    return entry.values if isinstance(entry, SlicesValue) else entry


def structural_explanations(
    state: State, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]
) -> list[Explanation]:
    """What structure alone says, with the session's provenance logs, reads and declarations."""
    return explain(
        tape,
        targets,
        sources,
        logs=state.provenance_logs(),
        value_reads=state.value_reads,
        declarations=state.declarations,
        format_where=sent_call_site,
        check_cancelled=state.current.check_cancelled,
    )
