"""What a session has as plain data, from which an equal session begins: all that follows is answered bit for bit alike.

Buffers are there once, arrays are views of them, so that memory is shared as before and strides, on which the last bits
of a product may depend, are the same. Tapes are there with what they keep, and go on to record. What only makes work
faster (plans, what is known of calls) is left out. A backward pass between two of its stops keeps a session from being
written down (`obstacle`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.commands import DefineFunction
from teletape_engine.commands.results import Answer
from teletape_engine.recording.values import Variable
from teletape_engine.session.handlers.custom import BackwardPassEntry
from teletape_engine.session.state import State


@dataclass(frozen=True)
class Snapshot:
    """What a session has.

    Attributes:
        buffers: Arrays on the host, row-major. They are the session's own, and change with it.
        functions: The commands that define its functions, each after those that it calls, as f0, f1, ….
        answers: Clients' last answers, as far as they are kept, by client; without arrays, which are among the buffers.
        facts: Everything else, JSON-able: rows that name buffers, functions and each other by their positions.
    """

    buffers: tuple[HostArray, ...]
    functions: tuple[DefineFunction, ...]
    answers: Mapping[int, Answer]
    facts: Mapping[str, Any]


def obstacle(state: State) -> str:
    """Why a session cannot be written down now: a backward pass is alive in it; empty: it can."""
    for name, entry in state.entries.items():
        if isinstance(entry, BackwardPassEntry):
            return f"{entry.word} {name!r} is alive"
    return ""


def digest(state: State, most: int) -> int | None:
    """A checksum of the variables' values, in the order of their ids; None: they have more bytes than `most`."""
    variables = [entry for entry in state.entries.values() if isinstance(entry, Variable)]
    if sum([variable.spec.nbytes for variable in variables]) > most:
        return None
    checksum = 0
    for variable in variables:
        checksum = crc32(state.host(variable.value).reshape(-1).view(np.uint8).data, checksum)
    return checksum
