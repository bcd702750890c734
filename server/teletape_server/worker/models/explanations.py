"""The bodies of the question why."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from teletape_engine.explain.reasons import Outcome, Reason
from teletape_server.worker.models.models import Answer, Body, Id
from teletape_server.worker.models.questions import examples


class Why(Body):
    """A question to a tape: why the gradient of the targets' sum is what it is for each source."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"]})

    targets: Annotated[list[Id], Field(min_length=1)]
    sources: Annotated[list[Id], Field(min_length=1)]


class Step(Answer):
    """One step of the way from the target back to the source."""

    op: Annotated[str, Field(description="The op, or what happened instead of one")]
    where: Annotated[str | None, Field(description="Your line, if the op had one")]
    cut: Annotated[bool, Field(description="Whether no gradient passes")]


class Explanation(Answer):
    """Why one gradient is what it is."""

    source: str | int
    code: Reason
    outcome: Annotated[Outcome, Field(description="What the tape gives; error: asking for the gradient is refused")]
    message: Annotated[str, Field(description="What was found")]
    advice: Annotated[str, Field(description="What to do; empty if there is nothing to do")]
    op: Annotated[str | None, Field(description="The op to blame, if one is")]
    where: Annotated[str | None, Field(description="Your line of that op, if you sent it")]
    node: Annotated[int | None, Field(description="That op's position on the tape")]
    path: Annotated[list[Step], Field(description="From the target back to the source; of a long way the two ends")]
    length: Annotated[int, Field(description="Steps of the way in all")]
    certain: Annotated[bool, Field(description="False: the likeliest reason, not proven")]
    notes: list[str]


class Explanations(Answer):
    """An explanation for each source, in their order."""

    explanations: list[Explanation]
