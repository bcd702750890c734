"""Kinds of derivatives: predicted here, except for ops whose records differ on the server: then the server answers.

This process predicts whether a derivative is None, dense or sparse from the records of the ops on the tape. If the
records are the same on both sides, so is the prediction. If they differ, the SDK waits for the server's answer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from teletape.core.sessions.recorder import RemoteRecorder
from teletape_engine.errors import StructureMismatchError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, kind_of
from teletape_engine.spec import Spec


def passes(tape: Tape, ops: Collection[str]) -> bool:
    """Returns whether any of these ops was recorded on a tape."""
    return bool(ops) and any(node[0].bound.name in ops for node in tape.nodes)


def as_answered(
    recorder: RemoteRecorder, predicted: Recorded | None, spec: Spec | None, kind: str, name: Any
) -> Recorded | None:
    """Returns a derivative in the server's form.

    Args:
        recorder: Makes the derivative, if it was not predicted.
        predicted: This process's prediction.
        spec: The spec of a dense derivative; None: that of the prediction.
        kind: The server's kind: none, dense or slices.
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
