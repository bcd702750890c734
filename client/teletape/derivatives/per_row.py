"""One backward pass a row: Jacobians and stacks of gradients where a gradient function needs the real values."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape import logs
from teletape.ops import dispatch
from teletape.sessions import session
from teletape.tensors.indexed_slices import wrap
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import Spec


class RowByRow(Exception):
    """There is no form over rows; the message says why. Without one: none is wanted."""


def refused(name: str, why: RowByRow) -> Any:
    """Raises that `name` needs what cannot be traced."""
    raise UnimplementedError(f"{name}: {why}; or differentiate a gradient with an outer tape") from None


def by_element(
    owner: session.Session, tape: Tape, target: Any, sources: Sequence[Any], zeros: bool, why: RowByRow
) -> list[Any]:
    """As `jacobian`."""
    rows, unit = _units(target.spec)
    found = _row_by_row(owner, tape, [target], sources, unit, rows, why)
    return [
        _shaped(owner, one, (*target.spec.shape, *source.spec.shape), source.spec if zeros else None)
        for one, source in zip(found, sources, strict=True)
    ]


def by_example(owner: session.Session, tape: Tape, target: Any, source: Any, zeros: bool, why: RowByRow) -> Any:
    """As `batch_jacobian`."""
    rows, unit = _units(target.spec, 1)
    [found] = _row_by_row(owner, tape, [target], [source], unit, rows, why)
    if found is not None:
        behind = range(2, found.spec.ndim)
        found = dispatch.call(CATALOGUE["transpose"], (EagerTensor(found, owner),), perm=(1, 0, *behind)).operand()
    shape = (*target.spec.shape, *source.spec.shape[1:])
    return _shaped(owner, found, shape, source.spec if zeros else target.spec)


def by_seed(
    owner: session.Session,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    stacks: Sequence[Any],
    zeros: bool,
    why: RowByRow,
) -> list[Any]:
    """As `vjps`."""
    rows = next(one.spec.shape[0] for one in stacks if one is not None)

    def row(i: int) -> list[Any]:
        return [None if one is None else EagerTensor(one, owner)[i] for one in stacks]

    found = _row_by_row(owner, tape, targets, sources, row, rows, why)
    return [
        _shaped(owner, one, (rows, *source.spec.shape), source.spec if zeros else None)
        for one, source in zip(found, sources, strict=True)
    ]


def _shaped(owner: session.Session, found: Any, shape: tuple[int, ...], zeros: Any) -> Any:
    """A stack in its final shape; zeros of that spec's dtype where there is none."""
    if found is None:
        return None if zeros is None else dispatch.constant(0, zeros.dtype.name, shape).operand()
    return dispatch.call(CATALOGUE["reshape"], (EagerTensor(found, owner),), shape=shape).operand()


def _row_by_row(
    owner: session.Session,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    seeds: Callable[[int], Sequence[EagerTensor | None]],
    rows: int,
    why: RowByRow,
) -> list[Any]:
    """For each source the stack [rows, *source] of its gradients, or None; as many backward passes as rows."""
    if not rows:  # which there are, one pass tells
        answers = owner.gradient(tape, targets, sources, None, zeros=False)
        return [
            None if one is None else dispatch.constant(np.zeros((0, *source.spec.shape), source.spec.dtype)).operand()
            for one, source in zip(answers, sources, strict=True)
        ]
    if why.args:
        logs.log_first_n(logging.WARNING, f"One backward pass for each of {rows} rows: {why}", 1, f"rows: {why}")
    found: list[list[Any]] = []
    for i in range(rows):
        given = [None if one is None else one.operand() for one in seeds(i)]
        answers = owner.gradient(tape, targets, sources, given, zeros=False, retain_tape=i < rows - 1)
        found.append([None if one is None else dispatch.as_tensor(wrap(one, owner)) for one in answers])
    return [
        None if any(one is None for one in column) else dispatch.call(CATALOGUE["stack"], column, axis=0).operand()
        for column in zip(*found, strict=True)
    ]


def _units(spec: Spec, part: int = 0) -> tuple[int, Callable[[int], list[EagerTensor]]]:
    """How many elements a target has behind its first `part` axes, and the cotangent that is one at the i-th."""
    size = math.prod(spec.shape[part:])

    def unit(i: int) -> list[EagerTensor]:
        made = np.zeros((*spec.shape[:part], size), spec.dtype)
        made[..., i] = 1
        return [dispatch.constant(made.reshape(spec.shape))]

    return size, unit
