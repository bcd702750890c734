"""A table of the questions over many cotangents: how each is computed, sent to a server, and computed row by row.

`jacobians.py` has the methods that ask them. The same engine function answers a question here and on the server.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from teletape.core.calls import dispatch
from teletape.core.derivatives.traced_gradients import NotBatchable, TracedGradients
from teletape.core.program import logs
from teletape.core.sessions.recorder import id_of
from teletape.core.sessions.session import Session
from teletape.core.tensors.indexed_slices import wrap
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.commands import Command, schema
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.walks import has_stops
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.spec import Spec

Derivatives: TypeAlias = list[Any]  # a recorded value or None each


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question.

    Attributes:
        command: The command for a server.
        compute: The engine's function; it takes a recorder with arrays or without.
        per_row: Computes the answer with one backward pass a row; raises if that is not possible.
    """

    command: type[Command]
    compute: Callable[[Recorder, GradientQuery], Derivatives]
    per_row: Callable[[Session, GradientQuery, NotBatchable], Derivatives]


# --------------------------------------------------------------------------------------------------------- row by row
def _refuse(name: str, owner: Session, query: GradientQuery, reason: NotBatchable) -> Any:
    """Raises: the question `name` needs a function that cannot be traced."""
    raise UnimplementedError(f"{name}: {reason}; or differentiate a gradient with an outer tape") from None


def _by_element(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """Returns the Jacobians [*target.shape, *source.shape], one pass for each element of the target."""
    [target] = query.targets
    rows, unit = _units(target.spec)
    stacks = _stacks(owner, query, unit, rows, reason)
    return [
        _shaped(owner, stack, (*target.spec.shape, *source.spec.shape), source.spec if query.zeros else None)
        for stack, source in zip(stacks, query.sources, strict=True)
    ]


def _by_example(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """Returns the Jacobian of each example [b, *y, *x], one pass for each element of an example's target."""
    [target], [source] = query.targets, query.sources
    rows, unit = _units(target.spec, 1)
    [stack] = _stacks(owner, query, unit, rows, reason)
    if stack is not None:  # [rows, b, *x]
        rest = range(2, stack.spec.ndim)
        stack = dispatch.call(ops.transpose, (EagerTensor(stack, owner),), perm=(1, 0, *rest)).operand()
    shape = (*target.spec.shape, *source.spec.shape[1:])
    return [_shaped(owner, stack, shape, source.spec if query.zeros else target.spec)]


def _by_cotangent(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """Returns the gradients [k, *source.shape] for k cotangents, one pass for each."""
    cotangents = query.output_gradients or ()
    rows = next(stack.spec.shape[0] for stack in cotangents if stack is not None)

    def row(i: int) -> list[Any]:
        return [None if stack is None else EagerTensor(stack, owner)[i] for stack in cotangents]

    stacks = _stacks(owner, query, row, rows, reason)
    return [
        _shaped(owner, stack, (rows, *source.spec.shape), source.spec if query.zeros else None)
        for stack, source in zip(stacks, query.sources, strict=True)
    ]


def _shaped(owner: Session, stack: Any, shape: tuple[int, ...], zeros: Spec | None) -> Any:
    """Returns a stack in its final shape; without one zeros of the spec's dtype, or None."""
    if stack is None:
        return None if zeros is None else dispatch.constant(0, zeros.dtype.name, shape).operand()
    return dispatch.call(ops.reshape, (EagerTensor(stack, owner),), shape=shape).operand()


def _stacks(
    owner: Session,
    query: GradientQuery,
    cotangents: Callable[[int], Sequence[Tensor | None]],
    rows: int,
    reason: NotBatchable,
) -> list[Any]:
    """Returns for each source the stack [rows, *source.shape] of its gradients, or None: one backward pass a row."""
    query = replace(query, output_gradients=None, zeros=False)
    if not rows:  # one pass says which sources are connected
        gradients = owner.gradient(query)
        return [
            None
            if gradient is None
            else dispatch.constant(np.zeros((0, *source.spec.shape), source.spec.dtype)).operand()
            for gradient, source in zip(gradients, query.sources, strict=True)
        ]
    if reason.args and rows > 1:
        logs.log_first_n(logging.WARNING, f"One backward pass for each of {rows} rows: {reason}", 1, f"rows: {reason}")
    passes: list[list[Any]] = []
    for i in range(rows):
        operands = [None if ct is None else ct.operand() for ct in cotangents(i)]
        gradients = owner.gradient(replace(query, output_gradients=operands, retain_tape=i < rows - 1))
        passes.append(
            [None if gradient is None else dispatch.as_tensor(wrap(gradient, owner)) for gradient in gradients]
        )
    return [
        None if any(gradient is None for gradient in column) else dispatch.call(ops.stack, column, axis=0).operand()
        for column in zip(*passes, strict=True)
    ]


def _units(spec: Spec, axes: int = 0) -> tuple[int, Callable[[int], list[Tensor]]]:
    """Returns how many elements a target has after its first `axes`, and for each i the cotangent that is 1 there."""
    size = math.prod(spec.shape[axes:])

    def unit(i: int) -> list[Tensor]:
        array = np.zeros((*spec.shape[:axes], size), spec.dtype)
        array[..., i] = 1
        return [dispatch.constant(array.reshape(spec.shape))]

    return size, unit


# ----------------------------------------------------------------------------------------------------------- the table
def _batch_jacobian(recorder: Recorder, query: GradientQuery) -> Derivatives:
    return [jacobian.batch_jacobian(recorder, query)]


def _hessian(recorder: Recorder, query: GradientQuery) -> Derivatives:
    return [block for row in second_order.hessian(recorder, query) for block in row]


JACOBIAN: Final = Question(commands.Jacobian, jacobian.jacobian, _by_element)
BATCH_JACOBIAN: Final = Question(commands.BatchJacobian, _batch_jacobian, _by_example)
VJPS: Final = Question(commands.Vjps, jacobian.vjps, _by_cotangent)
HESSIAN: Final = Question(commands.Hessian, _hessian, partial(_refuse, "hessian"))
HVP: Final = Question(commands.Hvp, second_order.hvp, partial(_refuse, "hvp"))


def ask(owner: Session, question: Question, query: GradientQuery, *, vectorize: bool = True) -> Derivatives:
    """Returns the derivatives, flat, also through gradient functions of the program.

    Args:
        owner: The tape's session.
        question: An entry of the table.
        query: The tape, the targets and the sources.
        vectorize: Whether gradient functions may be traced and run over all rows at once; otherwise they are called
            for each row, with real values.
    """
    if not vectorize and has_stops(query.tape, owner.declarations):
        return question.per_row(owner, query, NotBatchable())
    try:
        traced = TracedGradients(owner, query)
    except NotBatchable as reason:
        return question.per_row(owner, query, reason)
    if traced.any:
        query = replace(query, at_stacked_stop=traced.over_rows, at_stop=traced.over_values)

    def command(outputs: tuple[Any, ...], kinds: tuple[str, ...] | None) -> Command:
        return _command(question.command, query, outputs, kinds, traced.names)

    return owner.run_question(query.tape, lambda recorder: question.compute(recorder, query), command)


def _command(
    command: type[Command],
    query: GradientQuery,
    outputs: tuple[Any, ...],
    kinds: tuple[str, ...] | None,
    custom_gradients: tuple[int, ...],
) -> Command:
    """Returns the command for a server, with those of the fields that it has."""
    weights = query.output_gradients
    fields = {
        "tape": query.tape.name.id,
        "targets": tuple([id_of(target) for target in query.targets]),
        "sources": tuple([id_of(source) for source in query.sources]),
        "outputs": outputs,
        "output_gradients": weights
        if weights is None
        else tuple([None if weight is None else id_of(weight) for weight in weights]),
        "vectors": tuple([id_of(vector) for vector in query.vectors]),
        "unconnected": "zero" if query.zeros else "none",
        "max_bytes": query.max_bytes,
        "chunk_size": query.chunk_size,
        "predicted": kinds,
        "custom_gradients": custom_gradients,
    }
    return command(**{name: fields[name] for name in schema.fields(command.verb) if name in fields})
