"""Bodies of /check_gradients."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Id, examples


class CheckSettings(Body):
    """How to compare derivatives with finite differences."""

    entries: Annotated[
        int | None, Field(ge=1, description="Elements to check of each input, chosen at random; default 64")
    ] = None
    seed: Annotated[int | None, Field(ge=0, description="Seed of that choice and of the weights; default 0")] = None
    step: Annotated[float | None, Field(gt=0, description="Of the differences; default by dtype")] = None
    rtol: Annotated[float | None, Field(ge=0, description="Relative tolerance; default by dtype")] = None
    atol: Annotated[float | None, Field(ge=0, description="Absolute tolerance; default by dtype")] = None


class TapeCheck(Body):
    """Asks whether a replayable tape's gradients are right."""

    model_config = examples({"targets": ["loss"], "sources": ["w"]})

    targets: Annotated[list[Id], Field(min_length=1, max_length=MAX_ITEMS)]
    sources: Annotated[list[Id], Field(min_length=1, max_length=MAX_ITEMS)]
    settings: CheckSettings = CheckSettings()


class CheckedEntry(Answer):
    """One element of a gradient, computed both ways. NaN and infinities are strings, complex numbers pairs."""

    output: Annotated[int, Field(description="Number of the result or target, from 0")]
    input: Annotated[int, Field(description="Number of the argument or source, from 0")]
    index: list[int]
    automatic: Annotated[Any, Field(description="The automatic derivative; null: there is none")]
    numerical: Annotated[Any, Field(description="The finite difference")]
    error: Any
    tolerance: Any
    sides: Annotated[list[Any] | None, Field(description="One-sided differences, if there is a kink or a jump")]


class CheckReport(Answer):
    """How automatic derivatives compare with finite differences."""

    agrees: bool
    dtype: Annotated[str, Field(description="Of the computation: float64 if possible")]
    checked: Annotated[int, Field(description="Elements compared")]
    entries: Annotated[int, Field(description="Elements in all")]
    seed: int
    message: str
    worst: Annotated[CheckedEntry | None, Field(description="The element with the largest error")]
