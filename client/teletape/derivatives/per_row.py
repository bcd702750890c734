"""One backward pass a row: Jacobians and stacks of gradients if a gradient function on the way needs real values."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from teletape import logs
from teletape.ops import dispatch
from teletape.sessions.session import Session
from teletape.tensors.indexed_slices import wrap
from teletape.tensors.tensor import EagerTensor, Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import UnimplementedError
from teletape_engine.spec import Spec


class NotBatchable(Exception):
    """There is no form over rows; the message says why. Without a message: none is wanted."""


def refuse(name: str, owner: Session, query: GradientQuery, reason: NotBatchable) -> Any:
    """Raises that the question `name` needs what cannot be traced."""
    raise UnimplementedError(f"{name}: {reason}; or differentiate a gradient with an outer tape") from None


def by_element(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """The Jacobians [*target.shape, *source.shape], one pass for each element of the target."""
    [target] = query.targets
    rows, unit = _units(target.spec)
    stacks = _stacks(owner, query, unit, rows, reason)
    return [
        _shaped(owner, stack, (*target.spec.shape, *source.spec.shape), source.spec if query.zeros else None)
        for stack, source in zip(stacks, query.sources, strict=True)
    ]


def by_example(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """The Jacobian of each example [b, *y, *x], one pass for each element of an example's target."""
    [target], [source] = query.targets, query.sources
    rows, unit = _units(target.spec, 1)
    [stack] = _stacks(owner, query, unit, rows, reason)
    if stack is not None:  # [rows, b, *x]
        rest = range(2, stack.spec.ndim)
        stack = dispatch.call(ops.transpose, (EagerTensor(stack, owner),), perm=(1, 0, *rest)).operand()
    shape = (*target.spec.shape, *source.spec.shape[1:])
    return [_shaped(owner, stack, shape, source.spec if query.zeros else target.spec)]


def by_cotangent(owner: Session, query: GradientQuery, reason: NotBatchable) -> list[Any]:
    """The gradients [k, *source.shape] for k cotangents, one pass for each."""
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
    """A stack in its final shape; if there is none, zeros of that spec's dtype, or None."""
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
    """For each source the stack [rows, *source.shape] of its gradients, or None: one backward pass for each row."""
    query = replace(query, output_gradients=None, zeros=False)
    if not rows:  # one pass says which sources are connected
        gradients = owner.gradient(query)
        return [
            None
            if gradient is None
            else dispatch.constant(np.zeros((0, *source.spec.shape), source.spec.dtype)).operand()
            for gradient, source in zip(gradients, query.sources, strict=True)
        ]
    if reason.args:
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
    """The number of elements of a target after its first `axes`, and the cotangent that is 1 at the i-th of them."""
    size = math.prod(spec.shape[axes:])

    def unit(i: int) -> list[Tensor]:
        array = np.zeros((*spec.shape[:axes], size), spec.dtype)
        array[..., i] = 1
        return [dispatch.constant(array.reshape(spec.shape))]

    return size, unit
