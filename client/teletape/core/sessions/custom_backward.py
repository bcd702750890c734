"""A server's backward pass that stops at the program's gradient functions, which run in this process.

The recorder runs the same pass on specs, so it knows the stops and their cotangents without a round trip. The functions
compute with handles, and their ops join the batch like any other.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from teletape.core.sessions.recorder import RemoteRecorder, id_of, query_fields
from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.values import Literal, Recorded, kind_of


def run(
    recorder: RemoteRecorder,
    walk: Generator[Stop, InputCotangents, list[Recorded | None]],
    stop: Stop,
    query: GradientQuery,
) -> list[Recorded | None]:
    """Emits the commands of a pass with stops, and returns the gradient of each source.

    Args:
        recorder: The context.
        walk: This side's pass, at its first stop.
        stop: The first stop.
        query: The question.
    """
    name = recorder.new_name()
    recorder.emit(commands.BackwardBegin(name.id, *query_fields(query)))
    current: Stop | None = stop
    gradients: list[Recorded | None] = []
    try:
        while current is not None:
            tag = current.bound.tag if isinstance(current.bound, CustomTapeCall) else None
            op_values = () if tag is not None else _new_ids(recorder, current.residuals)
            recorder.emit(commands.BackwardCotangents(name.id, _new_ids(recorder, current.cts), tag, op_values))
            cotangents = query.declarations.gradient_at(current)
            try:
                current = walk.send(cotangents)
            except StopIteration as end:
                current, gradients = None, end.value
            ids = tuple([_sent_id(recorder, cotangent) for cotangent in cotangents])
            recorder.emit(commands.BackwardResume(name.id, ids))
    finally:
        walk.close()
    outputs = name_all(recorder, gradients)
    kinds = tuple([kind_of(gradient).value for gradient in gradients])
    recorder.emit(commands.BackwardEnd(name.id, outputs, kinds))
    return gradients


def name_all(recorder: RemoteRecorder, values: Sequence[Recorded | None]) -> tuple[Id | None, ...]:
    """Gives each value a new name, and returns the ids; None stays None."""
    for value in values:
        if value is not None:
            value.name = recorder.new_name()
    return tuple([None if value is None else id_of(value) for value in values])


def _new_ids(recorder: RemoteRecorder, values: Sequence[Any]) -> tuple[Id | None, ...]:
    """Gives a name to each value without one, and returns the new ids; None for the other values."""
    unnamed = [None if isinstance(value, Literal) or value.name is not None else value for value in values]
    return name_all(recorder, unnamed)


def _sent_id(recorder: RemoteRecorder, cotangent: Any) -> Id | None:
    """Returns a cotangent's id on the server; slices that the function has built are sent first."""
    if cotangent is None:
        return None
    if isinstance(cotangent, SlicesValue) and cotangent.name is None:
        cotangent.name = recorder.new_name()
        parts = id_of(cotangent.values), id_of(cotangent.indices)
        recorder.emit(commands.MakeSlices(cotangent.name.id, *parts, cotangent.dense.shape[0]))
    return id_of(cotangent)
