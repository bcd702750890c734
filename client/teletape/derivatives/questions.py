"""Questions over many cotangents at once, as a table: how each is computed, sent to a server, and computed row by row.

`jacobians.py` has the methods that ask them. A question is asked here and on the server by the same engine function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from teletape.derivatives import per_row
from teletape.derivatives.per_row import NotBatchable
from teletape.derivatives.traced_gradients import TracedGradients
from teletape.sessions.recorder import id_of
from teletape.sessions.session import Session
from teletape_engine import commands
from teletape_engine.commands import Command, schema
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.walks import has_stops
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
    compute: Callable[[Recorder, GradientQuery], Derivatives]
    per_row: Callable[[Session, GradientQuery, NotBatchable], Derivatives]


def _batch_jacobian(recorder: Recorder, query: GradientQuery) -> Derivatives:
    return [jacobian.batch_jacobian(recorder, query)]


def _hessian(recorder: Recorder, query: GradientQuery) -> Derivatives:
    return [block for row in second_order.hessian(recorder, query) for block in row]


JACOBIAN: Final = Question(commands.Jacobian, jacobian.jacobian, per_row.by_element)
BATCH_JACOBIAN: Final = Question(commands.BatchJacobian, _batch_jacobian, per_row.by_example)
VJPS: Final = Question(commands.Vjps, jacobian.vjps, per_row.by_cotangent)
HESSIAN: Final = Question(commands.Hessian, _hessian, partial(per_row.refuse, "hessian"))
HVP: Final = Question(commands.Hvp, second_order.hvp, partial(per_row.refuse, "hvp"))


def ask(owner: Session, question: Question, query: GradientQuery, *, vectorize: bool = True) -> Derivatives:
    """The derivatives, flat, whatever gradient functions of the program lie on the way.

    Args:
        owner: The tape's session.
        question: From the table.
        query: To which tape, about what.
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

    def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> Command:
        return _command(question.command, query, outputs, kinds, traced.names)

    return owner.run_question(lambda recorder: question.compute(recorder, query), command)


def _command(
    command: type[Command],
    query: GradientQuery,
    outputs: Sequence[int | None],
    kinds: Sequence[str],
    custom_gradients: tuple[int, ...],
) -> Command:
    """The command that asks a server: of these fields those that it has."""
    weights = query.output_gradients or ()
    fields = {
        "tape": query.tape.name.id,
        "targets": tuple([id_of(target) for target in query.targets]),
        "sources": tuple([id_of(source) for source in query.sources]),
        "outputs": tuple(outputs),
        "output_gradients": tuple([None if weight is None else id_of(weight) for weight in weights]),
        "vectors": tuple([id_of(vector) for vector in query.vectors]),
        "unconnected": "zero" if query.zeros else "none",
        "max_bytes": query.max_bytes,
        "chunk_size": query.chunk_size,
        "predicted": tuple(kinds),
        "custom_gradients": custom_gradients,
    }
    return command(**{name: fields[name] for name in schema.fields(command.verb) if name in fields})
