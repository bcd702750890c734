"""Bodies of /tapes/{tape}/explain."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.explain.reasons import Outcome, Reason
from teletape_server.models.base import Answer, Body, Id, examples


class ExplainQuestion(Body):
    """Asks why the gradient of the targets' sum is what it is for each source."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"]})

    targets: Annotated[list[Id], Field(min_length=1, max_length=MAX_ITEMS)]
    sources: Annotated[list[Id], Field(min_length=1, max_length=MAX_ITEMS)]


class Why(Answer):
    """Why a derivative is null: an explanation in short."""

    code: Reason
    message: Annotated[str, Field(description="The reason")]
    op: Annotated[str | None, Field(description="The op that causes it, if an op does")]
    advice: Annotated[str, Field(description="What to do")]
    where: Annotated[str | None, Field(description="Your source line of that op, if you sent one")] = None


class ExplanationStep(Answer):
    """One step on the path from the target back to the source."""

    op: Annotated[str, Field(description="The op, or what happened in its place")]
    where: Annotated[str | None, Field(description="Your source line of it")]
    cut: Annotated[bool, Field(description="Whether the gradient stops here")]


class Explanation(Answer):
    """Why one gradient is what it is."""

    source: str | int
    code: Reason
    outcome: Annotated[Outcome, Field(description="What the tape returns; error: the question is refused")]
    message: Annotated[str, Field(description="The reason")]
    advice: Annotated[str, Field(description="What to do; empty if there is nothing to do")]
    op: Annotated[str | None, Field(description="The op that causes it, if an op does")]
    where: Annotated[str | None, Field(description="Your source line of that op")]
    node: Annotated[int | None, Field(description="That op's position on the tape")]
    path: Annotated[
        list[ExplanationStep], Field(description="From the target back to the source; only both ends of a long path")
    ]
    length: Annotated[int, Field(description="Steps of the whole path")]
    certain: Annotated[bool, Field(description="false: the most likely reason, not a proven one")]
    notes: list[str]


class Explanations(Answer):
    """An explanation for each source, in their order."""

    explanations: list[Explanation]
