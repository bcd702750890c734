"""Questions to tapes: gradients, Jacobians, second derivatives.

Each handler looks up the ids of its command, computes, and names what it computed by the command's output ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts, Kinds
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.gradient import gradient as compute_gradient
from teletape_engine.derivatives.query import GradientQuery, wants_zeros
from teletape_engine.derivatives.reports.estimate import estimate
from teletape_engine.derivatives.reports.speed import measured
from teletape_engine.derivatives.reports.statistics import statistics_of_recorded
from teletape_engine.derivatives.sparsity import sparse
from teletape_engine.derivatives.walks import peak_bytes
from teletape_engine.errors import InvalidArgumentError, StructureMismatchError
from teletape_engine.functions.batched import Replacement, over_rows, over_values
from teletape_engine.recording.custom import CustomTapeCall, FunctionGradient
from teletape_engine.recording.memory import footprint
from teletape_engine.recording.values import Value, Variable, kind_of
from teletape_engine.session.entries import Entry, TapeEntry
from teletape_engine.session.handlers.explain import Reasons, SecondOrderReasons, reasons_of_nulls
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@handles(commands.Gradient)
def gradient(state: State, command: commands.Gradient) -> None:
    """Computes the sources' cotangents."""
    _check_outputs(command.outputs, len(command.sources))
    query = gradient_query(state, command)
    answer(state, command, query, compute_gradient(state.current, query))


@handles(commands.GradientStatistics)
def gradient_statistics(state: State, command: commands.GradientStatistics) -> None:
    """Answers the statistics of the sources' cotangents, and why there is none; nothing is kept."""
    query = gradient_query(state, command)
    gradients = compute_gradient(state.current, query)
    why = reasons_of_nulls(state, query.tape, query.targets, query.sources, gradients)
    facts: list[dict[str, Any]] = [
        {"kind": GradientKind.NONE.value} if entry is None else entry.facts()
        for entry in statistics_of_recorded(state.backend, gradients)
    ]
    for entry, reason in zip(facts, why, strict=False):  # empty: nothing is explained
        if reason is not None:
            entry["why"] = reason
    state.results.append(Facts(state.index, {"statistics": facts}))


@handles(commands.Estimate)
def estimate_of_question(state: State, command: commands.Estimate) -> None:
    """Answers what a derivative would take; the tape stays as it is."""
    _check_bounds(command)
    query = replace(_query(state, command), max_bytes=command.max_bytes, chunk_size=command.chunk_size)
    # The speed of a GPU is not measured.
    speed = measured(state.clock) if state.clock is not None and state.backend.xp is np else None
    state.results.append(Facts(state.index, estimate(query, command.question, speed).facts()))


@handles(commands.Jacobian)
def jacobian_of_target(state: State, command: commands.Jacobian) -> None:
    """Computes the Jacobian of one target, for each source."""
    _check_outputs(command.outputs, len(command.sources))
    _check_single(command.targets, "target")
    query = _stacked_query(state, command)
    answer(state, command, query, jacobian.jacobian(state.current, query))


@handles(commands.BatchJacobian)
def batch_jacobian(state: State, command: commands.BatchJacobian) -> None:
    """Computes the Jacobian of each example."""
    _check_single(command.targets, "target")
    _check_single(command.sources, "source")
    _check_outputs(command.outputs, 1)
    query = _stacked_query(state, command)
    answer(state, command, query, [jacobian.batch_jacobian(state.current, query)])


@handles(commands.Vjps)
def vjps(state: State, command: commands.Vjps) -> None:
    """Computes the gradients for many cotangents."""
    _check_outputs(command.outputs, len(command.sources))
    query = _weighted(state, command, _stacked_query(state, command))
    answer(state, command, query, jacobian.vjps(state.current, query))


@handles(commands.Hessian)
def hessian(state: State, command: commands.Hessian) -> None:
    """Computes the second derivatives by pairs of sources."""
    _check_outputs(command.outputs, len(command.sources) ** 2, "pairs of sources")
    query = _stacked_query(state, command)
    query.observer = reasons = SecondOrderReasons(state, query)
    blocks = [block for row in second_order.hessian(state.current, query) for block in row]
    answer_under(state, command.outputs, blocks, command.targets, command.predicted, why=reasons.why)


@handles(commands.Hvp)
def hvp(state: State, command: commands.Hvp) -> None:
    """Computes the Hessian times a vector."""
    _check_outputs(command.outputs, len(command.sources))
    query = replace(
        _query(state, command),
        at_stop=partial(over_values, state.current, _stand_in(state, command)),
    )
    vectors = [
        state.value(vector, like=source.spec) for vector, source in zip(command.vectors, query.sources, strict=False)
    ]  # second_order.hvp refuses another count
    query = replace(_weighted(state, command, query), vectors=vectors)
    query.observer = reasons = SecondOrderReasons(state, query)
    products = second_order.hvp(state.current, query)
    answer_under(state, command.outputs, products, command.targets, command.predicted, why=reasons.why)


@handles(commands.SparseJacobian)
def sparse_jacobian(state: State, command: commands.SparseJacobian) -> None:
    """Computes the entries of a Jacobian."""
    query = _sparse_query(state, command)
    matrix = sparse.sparse_jacobian(state.current, query)
    why = reasons_of_nulls(state, query.tape, query.targets, query.sources, [matrix])
    _answer_sparse(state, command, matrix, why)


@handles(commands.SparseHessian)
def sparse_hessian(state: State, command: commands.SparseHessian) -> None:
    """Computes the entries of a Hessian."""
    query = _sparse_query(state, command)
    query.observer = reasons = SecondOrderReasons(state, query)
    matrix = sparse.sparse_hessian(state.current, query)
    _answer_sparse(state, command, matrix, reasons.why)


def _sparse_query(state: State, command: Any) -> GradientQuery:
    _check_outputs(command.outputs, 3, "parts of a sparse matrix")
    sparse.check_format(command.format)
    return _stacked_query(state, command)


def _answer_sparse(state: State, command: Any, matrix: sparse.SparseMatrix | None, why: Reasons) -> None:
    """Names the parts of a matrix, and answers what it is like."""
    if matrix is None:
        for name in command.outputs:
            if name is not None:
                state.end_replaced(name)
        reason: dict[str, Any] = {"why": why[0]} if why else {}
        state.results.append(Facts(state.index, {"kind": "none", **reason}))
        return
    for name, part in zip(command.outputs, (*matrix.numbers(command.format), None), strict=True):
        if name is not None:
            state.name(name, matrix.values if part is None else state.current.constant(part))
    state.results.append(Facts(state.index, matrix.facts(command.format)))


# ------------------------------------------------------------------------------------------------------------- queries
def gradient_query(
    state: State, command: commands.Gradient | commands.GradientStatistics | commands.BackwardBegin
) -> GradientQuery:
    """The question of a command, its ids looked up and its answer's memory admitted."""
    query = _weighted(state, command, _query(state, command))
    state.memory.spend(_price(state, query), "the gradient")
    return query


def _query(state: State, command: Any) -> GradientQuery:
    """What every question has; a variable among targets and sources stays itself."""
    tape = state.find(command.tape, TapeEntry).tape
    return GradientQuery(
        tape,
        [state.find(name, (Value, Variable)) for name in command.targets],
        [state.find(name, (Value, Variable)) for name in command.sources],
        zeros=wants_zeros(getattr(command, "unconnected", "none")),
        retain_tape=getattr(command, "retain_tape", True),
        declarations=state.declarations,
    )


def _stacked_query(state: State, command: Any) -> GradientQuery:
    """A question over stacks of cotangents."""
    _check_bounds(command)
    state.monitor.loops(state.index)  # its chunks are reported as iterations
    stand_in = _stand_in(state, command)
    return replace(
        _query(state, command),
        max_bytes=command.max_bytes,
        chunk_size=command.chunk_size,
        examples=getattr(command, "examples", False),
        at_stop=partial(over_values, state.current, stand_in),
        at_stacked_stop=partial(over_rows, state.current, stand_in),
    )


def _check_bounds(command: Any) -> None:
    for name in ("max_bytes", "chunk_size"):
        if getattr(command, name) == 0:
            raise InvalidArgumentError(f"{name} must be 1 or more, or null")


def _weighted(state: State, command: Any, query: GradientQuery) -> GradientQuery:
    """The question with the output gradients of its command, if it has some."""
    weights, targets = command.output_gradients, query.targets
    if weights is None:
        return query
    if len(weights) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets, but {len(weights)} output gradients: one for each, null for ones"
        )
    values = [
        None if weight is None else state.value(weight, like=target.spec)
        for weight, target in zip(weights, targets, strict=True)
    ]
    return replace(query, output_gradients=values)


def _check_single(ids: Sequence[Id], what: str) -> None:
    if len(ids) != 1:
        raise InvalidArgumentError(f"{what}s: this question takes one {what}, found {len(ids)}")


def _price(state: State, query: GradientQuery) -> int:
    """Bytes that a gradient takes at the most, in addition to what its pass frees on the way."""
    answer: int = sum([source.spec.nbytes for source in query.sources])
    context = state.current.context
    recorded = context.accumulators or any(tape is not query.tape or tape.persistent for tape in context.tapes)
    # To follow the tape takes a tenth of the pass: not worth while if memory is plentiful. What is recorded is priced
    # op by op.
    if recorded or not state.memory.scarce:
        return answer
    cotangents = peak_bytes(query.tape, [target.uid for target in query.targets], query.source_uids)
    freed = footprint(query.tape, state.backend.base).freed if query.release else 0
    return max(answer, cotangents - freed)


def _check_outputs(outputs: Sequence[Id | None], count: int, what: str = "sources") -> None:
    if len(outputs) != count:
        raise InvalidArgumentError(f"{count} {what}, but {len(outputs)} output ids")


@dataclass
class CustomGradientEntry(Entry):
    """A function in place of the caller's gradient function of a custom call, for questions that do not stop.

    Attributes:
        tag: The call's tag.
        gradient: The function.
        others: What the function takes after the cotangents.
    """

    word = "a custom gradient"
    kind = "gradient"
    tag: Id
    gradient: FunctionGradient
    others: Sequence[Any]

    def facts(self) -> dict[str, Any]:
        """The call's tag."""
        return {"tag": self.tag}

    def values(self) -> Iterator[Any]:
        """What else the function takes."""
        for value in self.others:
            yield value.value if isinstance(value, Variable) else value


def _stand_in(state: State, command: Any) -> Replacement:
    gradients = [state.find(name, CustomGradientEntry) for name in command.custom_gradients]
    by_tag = {gradient.tag: (gradient.gradient, gradient.others) for gradient in gradients}
    return lambda stop: by_tag.get(stop.bound.tag) if isinstance(stop.bound, CustomTapeCall) else None


# ------------------------------------------------------------------------------------------------------------- answers
def answer(state: State, command: Any, query: GradientQuery, derivatives: Sequence[Any]) -> None:
    """Names the derivatives by the command's outputs, and answers their structure, with reasons for what is none.

    Raises:
        StructureMismatchError: The structure is not what the caller predicted.
    """
    predicted = getattr(command, "predicted", None)  # not of a batch Jacobian, which is always there
    why = reasons_of_nulls(state, query.tape, query.targets, query.sources, derivatives)
    answer_under(state, command.outputs, derivatives, command.targets, predicted, why=why)


def answer_under(
    state: State,
    outputs: Sequence[Id | None],
    derivatives: Sequence[Any],
    targets: Sequence[Id],
    predicted: Sequence[str] | None,
    *,
    why: Reasons = (),
    what: str = "gradients",
) -> None:
    """Names derivatives, and answers their structure.

    Args:
        state: Of the session.
        outputs: An id for each; None: it is not kept.
        derivatives: Values; None for one that does not exist.
        targets: Ids, for messages.
        predicted: The kinds that the caller expects, if it does.
        why: The reasons of those that are none.
        what: The derivatives' name in messages.

    Raises:
        StructureMismatchError: The structure is not what the caller predicted.
    """
    kinds = tuple([kind_of(derivative).value for derivative in derivatives])
    if predicted is not None and kinds != predicted:
        raise StructureMismatchError(
            f"the {what} of {list(targets)} are {list(kinds)}, predicted was {list(predicted)}: the catalogue, tape or "
            "accumulator of the caller differs from the server's",
            kinds=list(kinds),
        )
    for name, value in zip(outputs, derivatives, strict=True):
        if name is not None and value is not None:
            state.name(name, value)
        elif name is not None:
            state.end_replaced(name)
    state.results.append(Kinds(state.index, kinds, why))
