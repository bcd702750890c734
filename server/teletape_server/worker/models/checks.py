"""The bodies of check_gradients."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from teletape_server.worker.models.models import Answer, Body, Id, Input
from teletape_server.worker.models.questions import examples


class CheckSettings(Body):
    """How automatic derivatives are compared with differences."""

    entries: Annotated[int | None, Field(ge=1, description="Of each input, at random from a larger one; 64")] = None
    seed: Annotated[int | None, Field(ge=0, description="Of that choice, and of the weights of the results; 0")] = None
    step: Annotated[float | None, Field(gt=0, description="Of the differences; left out: by the dtype")] = None
    rtol: Annotated[float | None, Field(ge=0, description="Relative tolerance; left out: by the dtype")] = None
    atol: Annotated[float | None, Field(ge=0, description="Absolute tolerance; left out: by the dtype")] = None


class FunctionCheck(Body):
    """A question to a function: are its derivatives right here?"""

    model_config = examples({"inputs": [[0.5, 1.5], [2.5, 0.25]], "settings": {"entries": 10}})

    inputs: list[Input]
    settings: CheckSettings = CheckSettings()


class TapeCheck(Body):
    """A question to a replayable tape: are its gradients right?"""

    model_config = examples({"targets": ["loss"], "sources": ["w"]})

    targets: Annotated[list[Id], Field(min_length=1)]
    sources: Annotated[list[Id], Field(min_length=1)]
    settings: CheckSettings = CheckSettings()


class CheckedEntry(Answer):
    """One element of a gradient, both ways. Numbers that are not finite are words, complex ones pairs."""

    output: Annotated[int, Field(description="Number of the result, or target")]
    input: Annotated[int, Field(description="Number of the argument, or source")]
    index: list[int]
    automatic: Annotated[Any, Field(description="null: there is no gradient")]
    numerical: Any
    error: Any
    tolerance: Any
    sides: Annotated[list[Any] | None, Field(description="The slopes to its two sides, if there is a kink or a jump")]


class CheckReport(Answer):
    """How automatic derivatives compare with differences."""

    agrees: bool
    dtype: Annotated[str, Field(description="In which it was computed: float64 where that is possible")]
    checked: Annotated[int, Field(description="Entries that were compared")]
    entries: Annotated[int, Field(description="That there are")]
    seed: int
    message: str
    worst: Annotated[CheckedEntry | None, Field(description="The entry furthest apart")]
