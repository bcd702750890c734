"""A backward pass on a server that stops at the program's own gradient functions, which run here.

This side runs the same pass over structure: it knows where the pass stops, and with which cotangents. So nothing is
asked: the functions compute with handles, and what they do joins the batch like everything else.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from teletape.sessions.recorder import Follower, id_of, query_fields
from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.recording.custom import Custom
from teletape_engine.recording.values import Literal, Recorded, kind_of

if TYPE_CHECKING:
    from teletape.sessions.remote import RemoteSession


def run(
    session: RemoteSession,
    recorder: Follower,
    walk: Generator[Stop, InputCotangents, list[Recorded | None]],
    stop: Stop,
    query: GradientQuery,
) -> list[Recorded | None]:
    """What the pass computes.

    Args:
        session: Where it runs.
        recorder: The context.
        walk: This side's pass, at its first stop.
        stop: That stop.
        query: The question.
    """
    held = session.new_name()
    session.emit(recorder, commands.BackwardBegin(held.id, *query_fields(query)))
    at: Stop | None = stop
    found: list[Recorded | None] = []
    try:
        while at is not None:
            tag = at.bound.tag if isinstance(at.bound, Custom) else None
            kept = () if tag is not None else _named(session, at.residuals)
            session.emit(recorder, commands.BackwardCotangents(held.id, _named(session, at.cts), tag, kept))
            answers = query.declarations.gradient_at(at)
            with recorder.inside():
                try:
                    at = walk.send(answers)
                except StopIteration as done:
                    at, found = None, done.value
            session.emit(
                recorder, commands.BackwardResume(held.id, tuple([_given(session, recorder, one) for one in answers]))
            )
    finally:
        walk.close()
    outputs = [None if one is None else session.new_name() for one in found]
    for one, name in zip(found, outputs, strict=True):
        if one is not None:
            one.name = name
    names = tuple([None if one is None else one.id for one in outputs])
    session.emit(recorder, commands.BackwardEnd(held.id, names, tuple([kind_of(one).value for one in found])))
    return found


def _named(session: RemoteSession, values: Sequence[Any]) -> tuple[Id | None, ...]:
    """An id for each value that has none yet."""
    names: list[Id | None] = []
    for one in values:
        if isinstance(one, Literal) or one.name is not None:
            names.append(None)
        else:
            one.name = session.new_name()
            names.append(one.name.id)
    return tuple(names)


def _given(session: RemoteSession, recorder: Follower, value: Any) -> Id | None:
    if value is None:
        return None
    if isinstance(value, SlicesValue) and value.name is None:
        value.name = session.new_name()
        rows = value.dense.shape[0]
        session.emit(recorder, commands.MakeSlices(value.name.id, id_of(value.values), id_of(value.indices), rows))
    return id_of(value)
