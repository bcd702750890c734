"""What a derivative is like: predicted here, and for ops whose records differ on the server, as the server answers.

This process predicts whether a derivative is None, dense or sparse from the records of the ops on the tape. Where they
are the same on both sides, so is the prediction. Where they differ, the server is asked, and waited for.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from teletape.sessions.recorder import RemoteRecorder
from teletape_engine.errors import StructureMismatchError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, kind_of
from teletape_engine.spec import Spec


def passes(tape: Tape, ops: Collection[str]) -> bool:
    """Returns whether one of these ops was recorded on a tape."""
    return bool(ops) and any(node[0].bound.name in ops for node in tape.nodes)


def as_answered(
    recorder: RemoteRecorder, predicted: Recorded | None, spec: Spec | None, kind: str, name: Any
) -> Recorded | None:
    """Returns a derivative as the server has it.

    Args:
        recorder: Makes it, if it was not predicted.
        predicted: As this process has predicted it.
        spec: Of a dense one; None: that follows from the prediction alone.
        kind: As the server has it: none, dense or slices.
        name: Its name on the server.

    Raises:
        StructureMismatchError: This process cannot know its spec.
    """
    if kind == "none":
        return None
    if kind_of(predicted).value != kind:
        if kind != "dense" or spec is None:
            raise StructureMismatchError(
                f"a derivative is {kind} on the server, and {kind_of(predicted).value} by the records of this SDK: the "
                "two are of different versions, install the server's"
            )
        predicted = recorder.silent.new_value(spec)
    assert predicted is not None
    predicted.name = name
    return predicted
