"""Questions over many cotangents at once, as a table: how each is computed, sent to a server, and computed row by row.

`jacobians.py` has the methods that ask them. A question is asked here and on the server by the same engine function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from teletape.derivatives import per_row
from teletape.derivatives.per_row import NotBatchable, Query
from teletape.derivatives.traced_gradients import TracedGradients, has_stops
from teletape.sessions.recorder import id_of
from teletape.sessions.session import Session
from teletape_engine import commands
from teletape_engine.commands import Command, schema
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.recording.recorder import Recorder

Derivatives: TypeAlias = list[Any]  # a recorded value or None each


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question.

    Attributes:
        command: What asks a server.
        compute: The engine's function, on a recorder with arrays or without.
        per_row: Computes it with one backward pass a row, or raises why it cannot.
    """

    command: type[Command]
    compute: Callable[[Recorder, Query], Derivatives]
    per_row: Callable[[Session, Query, NotBatchable], Derivatives]


def _jacobian(recorder: Recorder, query: Query) -> Derivatives:
    return jacobian.jacobian(recorder, query.tape, query.targets[0], query.sources, query.options)


def _batch_jacobian(recorder: Recorder, query: Query) -> Derivatives:
    return [jacobian.batch_jacobian(recorder, query.tape, query.targets[0], query.sources[0], query.options)]


def _vjps(recorder: Recorder, query: Query) -> Derivatives:
    return jacobian.vjps(recorder, query.tape, query.targets, query.sources, query.vectors, query.options)


def _hessian(recorder: Recorder, query: Query) -> Derivatives:
    blocks = second_order.hessian(recorder, query.tape, query.targets, query.sources, query.options)
    return [block for row in blocks for block in row]


def _hvp(recorder: Recorder, query: Query) -> Derivatives:
    return second_order.hvp(recorder, query.tape, query.targets, query.sources, query.vectors, query.options)


JACOBIAN: Final = Question(commands.Jacobian, _jacobian, per_row.by_element)
BATCH_JACOBIAN: Final = Question(commands.BatchJacobian, _batch_jacobian, per_row.by_example)
VJPS: Final = Question(commands.Vjps, _vjps, per_row.by_cotangent)
HESSIAN: Final = Question(commands.Hessian, _hessian, partial(per_row.refuse, "hessian"))
HVP: Final = Question(commands.Hvp, _hvp, partial(per_row.refuse, "hvp"))


def ask(owner: Session, question: Question, query: Query, *, vectorize: bool = True) -> Derivatives:
    """The derivatives, flat, whatever gradient functions of the program lie on the way.

    Args:
        owner: The tape's session.
        question: From the table.
        query: To which tape, about what.
        vectorize: Whether gradient functions may be traced and run over all rows at once; otherwise they are called
            for each row, with real values.
    """
    if not vectorize and has_stops(query.tape, owner.gradients):
        return question.per_row(owner, query, NotBatchable())
    try:
        traced = TracedGradients(owner, query.tape, query.targets, query.sources)
    except NotBatchable as reason:
        return question.per_row(owner, query, reason)
    if traced.any:
        options = replace(
            query.options,
            registered=frozenset(owner.gradients),
            custom=traced.over_rows,
            answer=traced.over_values,
        )
        query = replace(query, options=options)

    def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> Command:
        return _command(question.command, query, outputs, kinds, traced.names)

    return owner.question(lambda recorder: question.compute(recorder, query), command)


def _command(
    command: type[Command],
    query: Query,
    outputs: Sequence[int | None],
    kinds: Sequence[str],
    custom_gradients: tuple[int, ...],
) -> Command:
    """The command that asks a server: of these fields those that it has."""
    vectors = tuple([None if vector is None else id_of(vector) for vector in query.vectors])
    fields = {
        "tape": query.tape.name.id,
        "targets": tuple([id_of(target) for target in query.targets]),
        "sources": tuple([id_of(source) for source in query.sources]),
        "outputs": tuple(outputs),
        "output_gradients": vectors,
        "vectors": vectors,
        "unconnected": "zero" if query.options.zeros else "none",
        "max_bytes": query.options.max_bytes,
        "chunk_size": query.options.chunk_size,
        "predicted": tuple(kinds),
        "custom_gradients": custom_gradients,
    }
    return command(**{name: fields[name] for name in schema.fields(command.verb) if name in fields})
