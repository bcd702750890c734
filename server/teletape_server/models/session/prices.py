"""Bodies of /price: what commands would need and answer, before anything is run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Id, Name, NumbersBody, TensorOrSpec, examples
from teletape_server.models.waiting import Wait

#: A command in JSON; `teletape_wire` reads it.
PricedCommand = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "required": ["do"],
            "properties": {"do": {"type": "string"}},
            "additionalProperties": True,
            "description": "A command, as in POST /run; a tensor in it may be {dtype, shape} without data",
        }
    ),
]
Verdict = Literal["fits", "waits", "refused", "unknown"]


class PriceRequest(NumbersBody):
    """Commands, whose tensors may be {dtype, shape} without data."""

    model_config = examples(
        {
            "tensors": {
                "images": {"dtype": "float32", "shape": [512, 784]},
                "labels": {"dtype": "int32", "shape": [512]},
            },
            "commands": [
                {"do": "variable", "id": "w", "value": {"dtype": "float32", "shape": [784, 10]}},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "matmul", "inputs": ["images", "w"], "outputs": ["logits"]},
                {
                    "do": "op",
                    "op": "sparse_softmax_cross_entropy_with_logits",
                    "inputs": ["labels", "logits"],
                    "outputs": ["losses"],
                },
                {"do": "op", "op": "reduce_mean", "inputs": ["losses"], "outputs": ["loss"]},
                {"do": "gradient", "tape": "t", "targets": ["loss"], "sources": ["w"], "outputs": ["dw"]},
            ],
            "fetch": ["loss", "dw"],
        }
    )

    session: Annotated[
        str | None,
        Field(description="A session of yours in which the commands would run; null: none, as in POST /run"),
    ] = None
    tensors: dict[Name, TensorOrSpec] = Field(
        default={}, max_length=MAX_ITEMS, description="Tensors to create before the commands, by id; data may be absent"
    )
    commands: list[PricedCommand]
    fetch: list[Id] = Field(default=[], description="Ids whose values would be returned")
    release: list[Id] = Field(default=[], description="Ids to release after their last use")
    replace: Annotated[bool, Field(description="Whether new ids may be in use or released")] = False


class Cost(Answer):
    """Bytes, work and seconds that the commands would take."""

    peak_bytes: Annotated[
        int,
        Field(
            description="The most bytes of arrays at a time, in addition to what the session has: results, what tapes "
            "keep, what ops need while they run. An upper bound"
        ),
    ]
    bytes_in_use: Annotated[int, Field(description="By the session before the commands")]
    bytes_after: Annotated[int, Field(description="By the session after them")]
    memory_limit: Annotated[int | None, Field(description="Bytes that may be in use; null: there is no limit")]
    ops: Annotated[int, Field(description="Ops that run, those of gradients and loops too")]
    multiply_adds: Annotated[int, Field(description="Of products of matrices, convolutions, decompositions")]
    elements: Annotated[int, Field(description="That the other ops compute")]
    seconds: Annotated[
        float | None, Field(description="About how long they compute on this machine's CPU; null: on a GPU, not known")
    ]
    bytes_up: Annotated[int, Field(description="Of the tensors that the commands have, as bytes")]
    bytes_down: Annotated[int, Field(description="Of the values that are fetched, as bytes")]


class PricedResult(Answer):
    """A result that a command would have."""

    command: Annotated[int | None, Field(description="The command's position, from 0; null: one of `tensors`")]
    id: str | int
    kind: Annotated[Literal["tensor", "variable", "slices"], Field(description="slices: a sparse gradient")]
    dtype: str
    shape: list[int]
    rows: Annotated[int | None, Field(description="Of a sparse gradient, else null")]
    exact: Annotated[bool, Field(description="false: the shape depends on values, and this is the largest")]


class Dependence(Answer):
    """Something that depends on values that were not given."""

    command: Annotated[int | None, Field(description="The command's position, from 0; null: one of `tensors`")]
    on: Annotated[str, Field(description="The id of the value: give its numbers to learn more")]
    what: Annotated[str, Field(description="What depends on it, and how it was counted")]


class PriceProblem(Answer):
    """The problem that the commands would be refused with."""

    status: int
    title: str
    code: str
    detail: str
    details: dict[str, Any]


class PriceAnswer(Answer):
    """The verdict on commands, and their cost. Nothing has run."""

    verdict: Annotated[
        Verdict,
        Field(
            description="fits: they would run now; waits: `wait` says for whom and how long; refused: `problem` says "
            "why; unknown: that depends on values, see `depends`"
        ),
    ]
    reason: Annotated[str, Field(description="One sentence, for people")]
    problem: Annotated[PriceProblem | None, Field(description="If they would be refused, or perhaps")] = None
    wait: Annotated[Wait | None, Field(description="Of waits: who is ahead, and what the keys have")] = None
    cost: Annotated[Cost | None, Field(description="null: the session computes, and is looked at after that")] = None
    results: Annotated[list[PricedResult], Field(default=[], description="In the order of the commands")]
    depends: Annotated[list[Dependence], Field(default=[], description="What depends on values that are not known")]
