"""Bodies of /tapes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Id, Name, Replace, examples
from teletape_server.models.listings import Listing


class NewTape(Body):
    """A tape to create. It records the ops that are posted to its /ops."""

    model_config = examples({"id": "tape", "persistent": True, "replayable": True})

    id: Name | None = None
    replace: Replace = False
    persistent: Annotated[bool, Field(description="Whether it answers more than one question")] = False
    watch_accessed: Annotated[bool, Field(description="Whether it watches trainable variables that ops read")] = True
    replayable: Annotated[bool, Field(description="Whether it keeps every input, which check_gradients needs")] = False
    parents: list[Id] = Field(
        default=[], description="Outer tapes that record this tape's ops and gradients too, for second derivatives"
    )


class Tape(Answer):
    """A tape."""

    id: str | int
    kind: Literal["tape"]
    persistent: bool
    watch_accessed: bool
    parents: list[str | int]
    recording: Annotated[
        bool, Field(description="Whether a client records on it now; between REST requests a tape is paused")
    ]
    consumed: Annotated[bool, Field(description="Whether it is not persistent and has answered")]
    ops: Annotated[int, Field(description="Ops that it has recorded")]
    watched_variables: list[str]
    bytes: Annotated[int | None, Field(description="Bytes that it keeps for gradients")] = None
    frees: Annotated[int | None, Field(description="Bytes of those that its deletion would free")] = None


class TapeList(Listing):
    """The session's tapes, oldest first."""

    tapes: list[Tape]


class ResetTape(Body):
    """How to reset a tape; no body is the same as {}."""

    model_config = examples({"release_outputs": True})

    release_outputs: Annotated[
        bool,
        Field(
            description="Whether tensors that requests on this tape left in the session end too: results of ops, calls "
            "and loops, and derivatives. Their ids are free again"
        ),
    ] = False


class WatchTensors(Body):
    """Tensors and variables for a tape to watch."""

    model_config = examples({"tensors": ["x"]})

    tensors: Annotated[list[Id], Field(max_length=MAX_ITEMS)]
