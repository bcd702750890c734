"""Requests without a session that come again with other numbers: their commands as the engine repeats them.

Such a session has nothing before and after, so what has a value alone may be anything that has it: variables that are
not assigned to are tensors that the tape watches, and nothing stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.commands import (
    Batch,
    Call,
    Command,
    Constant,
    Fetch,
    FieldKind,
    Gradient,
    Id,
    MakeVariable,
    OnFailure,
    TapeOpen,
    TapeWatch,
    schema,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.spec import DIFFERENTIABLE
from teletape_server.handlers.forms.skeletons import Place


def places(fields: Any) -> list[Place]:
    """Returns the places of inputs in the fields of a body of commands."""
    if not isinstance(fields, dict):
        return []
    tensors, commands = fields.get("tensors"), fields.get("commands")
    places: list[Place] = [(tensors, name) for name in tensors] if isinstance(tensors, dict) else []
    for command in commands if isinstance(commands, list) else ():
        verb = command.get("do") if isinstance(command, dict) else None
        known = schema.FIELDS.get("constant" if verb == "tensor" else verb, {}) if isinstance(verb, str) else {}
        for name, field in known.items():
            if name not in command or field.kind not in (FieldKind.INPUT, FieldKind.TENSOR):
                continue
            members = command[name]
            if not field.is_list:
                places.append((command, name))
            elif isinstance(members, list):
                places += [(members, number) for number in range(len(members))]
    return places


class Repeated(NamedTuple):
    """Commands that answer the same.

    Attributes:
        batch: The commands.
        inputs: The tensors and numbers of the caller's commands.
        typed: The same as they are in these.
    """

    batch: Batch
    inputs: Sequence[Any]
    typed: Sequence[Any]

    def questions(self) -> list[Command | None]:
        """Returns the commands that may be answered with a null, each in its position, and None for the others."""
        return [command if isinstance(command, Gradient) else None for command in self.batch.commands]


def repeated(commands: Iterable[Command]) -> Repeated | None:
    """Returns the commands as the engine repeats them; None: some may do more than to give values.

    Args:
        commands: Of a request without a session, with the server's own.
    """
    inputs: list[Any] = []
    typed: list[Any] = []
    written: list[Command] = []
    watched: list[Id] = []
    tape: Id | None = None
    for command in commands:
        if isinstance(command, Constant | MakeVariable):
            value = command.value
            if not isinstance(value, Literal | np.ndarray):
                return None
            array: Any = value
            if isinstance(value, Literal) and value.spec.untyped:
                array = typed_array(value, value.spec.alone)
            inputs.append(value)
            typed.append(array)
            written.append(Constant(command.id, array))
            if isinstance(command, MakeVariable) and command.trainable:
                if not isinstance(array, np.ndarray) or array.dtype not in DIFFERENTIABLE:
                    return None
                watched.append(command.id)
                if tape is not None:
                    written.append(TapeWatch(tape, (command.id,)))
        elif isinstance(command, TapeOpen):
            if tape is not None or not command.watch_accessed or command.replayable or command.parents:
                return None
            tape = command.id
            written.append(command)
            if watched:
                written.append(TapeWatch(tape, tuple(watched)))
        elif isinstance(command, Call | Fetch | Gradient):
            values = [value for value in getattr(command, "inputs", ()) if isinstance(value, Literal | np.ndarray)]
            inputs += values
            typed += values
            written.append(command)
        else:
            return None
    created = tuple([id for command in written for id in created_ids(command)])
    batch = Batch(tuple(written), temporaries=created, on_failure=OnFailure.ROLLBACK)
    return Repeated(batch, inputs, typed)
