"""Fields of questions for gradients: of examples, parts, sums over many requests, differences."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import NAME_PATTERN, Answer, Body, TensorValue
from teletape_server.models.parameters import Elements

MOST_BATCH: Final = 2**53 - 1  #: The largest number of a batch: JSON's integers are exact up to it.


class PerExample(Body):
    """How the gradients of examples are clipped and summed."""

    axis: Annotated[
        int | None,
        Field(
            description="The axis of the examples in all inputs that are no sources: the function takes batches, and "
            "each example is a batch of 1. Without it `map` names the axes, or it is 0"
        ),
    ] = None
    clip: Annotated[
        float | None,
        Field(gt=0, strict=False, description="The bound of the norm of an example's gradient over all sources"),
    ] = None
    returns: Annotated[
        Literal["sum", "norms", "statistics"],
        Field(
            alias="return",
            description="sum: of the clipped gradients; norms: of each example; statistics: mean, median, smallest and "
            "largest norm",
        ),
    ] = "sum"


class GradientPart(Body):
    """The part of each gradient that is answered: exactly one of the fields."""

    top: Annotated[
        int | None,
        Field(ge=1, description="This many elements of the largest magnitude, or all"),
    ] = None
    rows: Annotated[
        list[Annotated[int, Field(ge=0)]] | None,
        Field(min_length=1, max_length=MAX_ITEMS, description="Numbers of rows along axis 0, each once"),
    ] = None
    dtype: Annotated[Literal["bfloat16", "float16"] | None, Field(description="All elements, with fewer bits")] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        chosen = [name for name in ("top", "rows", "dtype") if getattr(self, name) is not None]
        if len(chosen) != 1:
            raise ValueError(f"has exactly one of top, rows and dtype; found {', '.join(chosen) or 'none'}")
        if self.rows is not None and len(set(self.rows)) != len(self.rows):
            raise ValueError("rows: each is there once")
        return self


class Accumulate(Body):
    """The accumulator that gradients are added to, and which batch they are of."""

    into: Annotated[
        str,
        Field(
            pattern=NAME_PATTERN.replace(".", ""),
            description="The accumulator's id, which has no dot; its first batch creates it",
        ),
    ]
    batch: Annotated[
        int,
        Field(ge=0, le=MOST_BATCH, description="The batch's number: one that was added already is not added again"),
    ]
    weight: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            strict=False,
            description="What the gradients are multiplied by, such as the number of examples that they are a mean of",
        ),
    ] = 1.0
    gradients: Annotated[bool, Field(description="Answer the batch's own gradients too")] = False


class NumericSettings(Body):
    """How derivatives are computed by differences."""

    step: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            strict=False,
            description="By how much an element is moved to each side; default: by dtype and magnitude",
        ),
    ] = None


class AccumulatorQuery(Elements):
    """How an accumulator is read."""

    as_: Annotated[
        Literal["sum", "mean"],
        Field(alias="as", description="sum: of the gradients with their weights; mean: that divided by the weight"),
    ] = "sum"


# -------------------------------------------------------------------------------------------------------------- answers
class ExampleNorms(Answer):
    """The norms of the gradients of examples, before they were clipped."""

    size: Annotated[int, Field(description="Examples")]
    clipped: Annotated[int, Field(description="Examples whose norm was above the bound")]
    vectorized: Annotated[bool, Field(description="Whether examples run at once by the ops' batch rules")]
    norms: Annotated[list[float] | None, Field(description="With `return` norms: of each example")] = None
    mean: Annotated[float | None, Field(description="With `return` statistics")] = None
    median: float | None = None
    smallest: float | None = None
    largest: float | None = None


class PartOfGradient(Answer):
    """Some elements or rows of a gradient."""

    indices: Annotated[TensorValue, Field(description="Of elements in row-major order, or numbers of rows")]
    values: Annotated[TensorValue, Field(description="The elements, or the rows")]
    shape: Annotated[list[int], Field(description="Of the whole gradient")]


class AccumulatorState(Answer):
    """An accumulator without its sums."""

    id: str
    count: Annotated[int, Field(description="Batches that were added")]
    weight: Annotated[float, Field(description="Of all of them together")]


class AccumulatorList(Answer):
    """The session's accumulators."""

    accumulators: list[AccumulatorState]


class Accumulated(AccumulatorState):
    """An accumulator after a question."""

    added: Annotated[bool, Field(description="Whether this question has added its batch; false: it was there")]


class Accumulator(AccumulatorState):
    """An accumulator."""

    batches: Annotated[
        list[list[int]],
        Field(description="The numbers of the batches that were added, as ranges: the first and the last of each"),
    ]
    values: Annotated[dict[str, TensorValue], Field(description="The sum or the mean, by source")]


class NumericFacts(Answer):
    """How derivatives were computed by differences."""

    evaluations: Annotated[int, Field(description="Runs of the function: two for each element of a source")]
    chunks: Annotated[int, Field(description="The runs of a chunk go at once: as many as memory has room for")]
    vectorized: Annotated[
        bool, Field(description="Whether the runs of a chunk go by the ops' batch rules; false: one by one")
    ]
    why: Annotated[str | None, Field(description="Why they run one by one")] = None
