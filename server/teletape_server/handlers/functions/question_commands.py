"""The commands of a question about a function: the call on a tape or in forward mode, the question, what is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    Batch,
    Command,
    ContextSwitch,
    Id,
    Jvp,
    OnFailure,
    Repetition,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Answer, Kinds
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import fetches
from teletape_server.handlers.bodies import InvalidRequestError, new_id
from teletape_server.handlers.execution import error_of, executed
from teletape_server.handlers.functions.bound_calls import BoundCall, check_names
from teletape_server.handlers.methods import Request
from teletape_server.handlers.recording import CONTEXT


def chosen_targets(
    function: Id, outputs: Sequence[str], chosen: Sequence[str] | None, *, is_single: bool = False
) -> Sequence[str]:
    """Returns the names of the outputs to differentiate."""
    if chosen is None:
        if is_single and len(outputs) != 1:
            raise InvalidRequestError(
                f"targets: function {function!r} has the outputs {', '.join(outputs)}: name the one to differentiate"
            )
        return outputs
    check_names(function, outputs, chosen, "targets", outputs=True)
    return list(dict.fromkeys(chosen))


def chosen_outputs(call: BoundCall, chosen: Sequence[str] | None, *, all_of_them: bool = False) -> Sequence[str]:
    """Returns the names of the outputs to return."""
    if chosen is None:
        return list(call.outputs) if all_of_them else []
    check_names(call.function, list(call.outputs), chosen, "fetch", outputs=True)
    return list(dict.fromkeys(chosen))


def check_length(field: str, body: Any, kind: str, names: Sequence[str]) -> None:
    """Checks that a field has a member for each source or target."""
    members = getattr(body, field)
    if members is not None and len(members) != len(names):
        raise InvalidRequestError(
            f"{field}: one for each of the {len(names)} {kind}s ({', '.join(names)}); found {len(members)}"
        )


# --------------------------------------------------------------------------------------------------------- the commands
def recorded(call: BoundCall, tape: Id, question: Command) -> list[Command]:
    """Returns the commands that run a call on a new tape, and then a question on that tape."""
    return [
        ContextSwitch(CONTEXT),
        *call.constants,
        TapeOpen(tape),
        TapeWatch(tape, _watched(call)),
        *call.copies,
        call.command,
        TapePause(tape),
        question,
    ]


def _watched(call: BoundCall) -> tuple[Id, ...]:
    """Returns the ids that a tape watches: those of the sources, and those that sources are copies of."""
    copied: list[Any] = [id for copy in call.copies for id in copy.inputs]
    copies = {id for copy in call.copies for id in created_ids(copy)}
    return tuple(dict.fromkeys([*copied, *[id for id in call.source_ids if id not in copies]]))


def in_forward_mode(
    call: BoundCall,
    directions: Sequence[Sequence[Any]],
    targets: Sequence[Id],
    ids: Sequence[Id],
    unconnected: str,
) -> list[Command]:
    """Returns the commands that run a call in forward mode, and name the tangents of some results.

    Args:
        call: The call.
        directions: A tangent for each source; a second one for each, if the tangents' own tangents are asked for.
        targets: Results.
        ids: An id for the tangent of each.
        unconnected: Of those without one: none or zero.
    """
    ids, targets = tuple(ids), tuple(targets)
    run = forward_mode(call.command, directions, call.source_ids, targets, ids, unconnected)
    return [ContextSwitch(CONTEXT), *call.constants, *call.copies, *run]


def forward_mode(
    call: Command,
    directions: Sequence[Sequence[Any]],
    sources: tuple[Id, ...],
    targets: tuple[Id, ...],
    ids: tuple[Id, ...],
    unconnected: str,
) -> list[Command]:
    """Returns what runs a call inside an accumulator for each direction; see `in_forward_mode`."""
    inner, *outer = directions
    accumulator = new_id()
    watch = AccumulatorOpen(accumulator, sources, tuple(inner)), call, AccumulatorClose(accumulator)
    if not outer:
        return [*watch, Jvp(accumulator, targets, ids, unconnected)]
    around, first = new_id(), tuple([new_id() for _ in ids])
    return [
        AccumulatorOpen(around, sources, tuple(outer[0])),
        *watch,
        Jvp(accumulator, targets, first, "zero"),
        AccumulatorClose(around),
        Jvp(around, first, ids, unconnected),
    ]


def question_batch(
    request: Request,
    commands: Sequence[Command],
    names: Iterable[Id | None],
    fetched: Iterable[Id],
    *,
    replace: bool = False,
) -> Batch:
    """Returns a question's commands as one batch; only the ids in `names` stay."""
    created = [id for command in commands for id in created_ids(command)]
    lasting = set(names)
    return Batch(
        (*commands, *fetches(request, fetched, optional=True)),
        temporaries=tuple([id for id in created if id not in lasting]),
        on_failure=OnFailure.ROLLBACK,
        replace=replace,
    )


def run_question(session: Session, request: Request, batch: Batch | Repetition) -> Answer:
    """Runs a question's commands.

    Raises:
        TeletapeError: One of them failed.
    """
    answer = executed(session, request, batch)
    if answer.failure is not None:
        whole = batch.batch() if isinstance(batch, Repetition) else batch
        raise error_of(session, answer.failure, whole.commands)
    return answer


def kinds_of(answer: Answer) -> Kinds:
    """Returns the structure of the derivatives in an answer; those that they come from are named before them."""
    *_, kinds = [result for result in answer.results if isinstance(result, Kinds)]
    return kinds
