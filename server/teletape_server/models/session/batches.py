"""Bodies of /batch and /run: commands, and their answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from teletape_engine.commands import OnFailure
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import (
    Answer,
    Body,
    Id,
    Name,
    NumbersBody,
    Results,
    Tensor,
    TensorValue,
    component,
    examples,
)
from teletape_server.models.explanations import Why

#: A command in JSON; `teletape_wire` reads it.
CommandJson = Annotated[dict[str, Any], WithJsonSchema(component("Command"))]


class Batch(Body):
    """Commands in order, and ids to release after their last use."""

    model_config = examples(
        {
            "commands": [
                {"do": "op", "op": "mul", "inputs": ["w", 2], "outputs": ["doubled"]},
                {"do": "fetch", "id": "doubled"},
            ],
            "release": ["doubled"],
        }
    )

    commands: list[CommandJson]
    release: list[Id] = Field(default=[], description="Ids to release after their last use")
    client: Annotated[int, Field(ge=0, description="The number from /attach; 0: no client and no sequence")] = 0
    seq: Annotated[int, Field(ge=0, description="The batch's number in the client's sequence")] = 0
    nonce: Annotated[str, Field(pattern="^([0-9a-fA-F]{32})?$", description="Identifies retries")] = ""
    temporaries: list[Id] = Field(default=[], description="Ids that end with the batch, and are free again")
    on_failure: Annotated[
        OnFailure,
        Field(
            description="What a failure does: poison (later commands are skipped, using their ids fails), strand (so, "
            "and other strands go on), free (the skipped ids are free), or rollback (also those that earlier commands "
            "created are free)"
        ),
    ] = OnFailure.POISON
    replace: Annotated[
        bool, Field(description="Whether new ids may be in use or released: they then name the new thing")
    ] = False


class SpecAnswer(Answer):
    """The dtype and shape of an output."""

    dtype: str
    shape: list[int]


class BatchResult(Answer):
    """The result of one command: a tensor, the kinds of derivatives, the specs of outputs, or facts."""

    command: Annotated[int, Field(description="The command's position in the batch, from 0")]
    id: Annotated[str | int | None, Field(description="Of a fetched tensor")] = None
    value: Annotated[TensorValue | None, Field(description="Of a fetched tensor")] = None
    kinds: Annotated[list[str] | None, Field(description="none, dense or slices for each derivative")] = None
    why: Annotated[
        list[Why | None] | None,
        Field(description="If a derivative is none: for each the reason, null for one that exists"),
    ] = None
    specs: Annotated[list[SpecAnswer] | None, Field(description="Of outputs whose shape depends on values")] = None
    facts: Annotated[dict[str, Any] | None, Field(description="Of tape.describe, tape.graph, explain, …")] = None


class BatchFailure(Answer):
    """The first command of a batch, or of a strand in it, that failed."""

    command: Annotated[int, Field(description="The command's position in the batch, from 0")]
    code: str
    message: str
    op: str | None
    where: Annotated[str | None, Field(description="Your source line of it")]
    details: dict[str, Any]


class BatchAnswer(Answer):
    """The results of a batch, and its first failure."""

    results: list[BatchResult]
    failure: BatchFailure | None
    further_failures: Annotated[
        list[BatchFailure] | None,
        Field(description="With on_failure `strand`: the first failure in each other strand; absent: there is none"),
    ] = None
    bytes_in_use: int
    expires_at: Annotated[str | float | None, Field(description="When the session ends if no further request comes")]
    queue_seconds: Annotated[float, Field(description="Seconds before the batch started")]
    compute_seconds: Annotated[float, Field(description="Seconds that it took")]


class Run(NumbersBody):
    """Commands for a session that exists for this request only."""

    model_config = examples(
        gradient={
            "commands": [
                {"do": "variable", "id": "x", "value": 0.5},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "sin", "inputs": ["x"], "outputs": ["s"]},
                {"do": "op", "op": "mul", "inputs": ["s", "x"], "outputs": ["y"]},
                {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
            ],
            "fetch": ["y", "dx"],
        },
        explained_none={  # the gradient is null, since round has none
            "commands": [
                {"do": "variable", "id": "x", "value": 2.7},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "round", "inputs": ["x"], "outputs": ["y"]},
                {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
                {"do": "explain", "tape": "t", "targets": ["y"], "sources": ["x"]},
            ],
            "fetch": ["dx"],
        },
        hessian_vector_product={  # forward over reverse
            "commands": [
                {"do": "variable", "id": "x", "value": [1.5, 2.5]},
                {"do": "accumulator.open", "id": "a", "primals": ["x"], "tangents": [[0.5, 0.0]]},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "mul", "inputs": ["x", "x"], "outputs": ["xx"]},
                {"do": "op", "op": "mul", "inputs": ["xx", "x"], "outputs": ["y"]},
                {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["g"]},
                {"do": "jvp", "accumulator": "a", "targets": ["y", "g"], "outputs": ["jvp", "hvp"]},
            ],
            "fetch": ["jvp", "hvp"],
        },
        custom_gradient={  # the backward pass stops, and the commands in between compute the gradient
            "commands": [
                {"do": "variable", "id": "x", "value": [3.5, 4.5]},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "identity", "inputs": ["x"], "outputs": ["y"]},
                {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "clipped"},
                {"do": "op", "op": "square", "inputs": ["y"], "outputs": ["loss"]},
                {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["loss"], "sources": ["x"]},
                {"do": "backward.cotangents", "id": "b", "outputs": ["dy"]},
                {"do": "op", "op": "clip_by_value", "inputs": ["dy", -7.5, 7.5], "outputs": ["dx"]},
                {"do": "backward.resume", "id": "b", "cotangents": ["dx"]},
                {"do": "backward.end", "id": "b", "outputs": ["gradient"]},
            ],
            "fetch": ["gradient"],
        },
    )

    tensors: dict[Name, Tensor] = Field(
        default={}, max_length=MAX_ITEMS, description="Tensors to create before the commands, by id"
    )
    commands: list[CommandJson]
    fetch: list[Id] = Field(default=[], description="Ids to return in `values`")


class SessionRun(NumbersBody, Results):
    """Commands for a session that goes on."""

    model_config = examples(
        {
            "commands": [
                {"do": "tape.open", "id": "step"},
                {"do": "op", "op": "square", "inputs": ["w"], "outputs": ["step_squares"]},
                {"do": "op", "op": "reduce_sum", "inputs": ["step_squares"], "outputs": ["step_error"]},
                {
                    "do": "gradient",
                    "tape": "step",
                    "targets": ["step_error"],
                    "sources": ["w"],
                    "outputs": ["step_dw"],
                },
                {"do": "op", "op": "mul", "inputs": ["step_dw", 0.125], "outputs": ["step_change"]},
                {"do": "assign", "variable": "w", "value": "step_change", "mode": "sub"},
            ],
            "fetch": ["step_error"],
            "scratch": True,
        }
    )

    tensors: dict[Name, Tensor] = Field(
        default={}, max_length=MAX_ITEMS, description="Tensors to create before the commands, by id"
    )
    commands: list[CommandJson]
    fetch: list[Id] = Field(default=[], description="Ids to return in `values`")


class RunAnswer(Answer):
    """The values of the ids in `fetch`, and the answers of questions."""

    values: Annotated[
        dict[str, TensorValue | None], Field(description="By id; null: a derivative that does not exist, see `why`")
    ]
    why: Annotated[
        dict[str, Why] | None,
        Field(description="By id: the reason of each null; without nulls there is no such member"),
    ] = None
    results: Annotated[
        dict[str, dict[str, Any]] | None,
        Field(
            description="The answers of commands that ask (explain, tape.graph, tape.describe, check_gradients, "
            "describe, …), by the command's position from 0; `specs` of outputs whose shape depends on values"
        ),
    ] = None


class SessionRunAnswer(RunAnswer):
    """The values of the ids in `fetch`, and the answers of questions."""

    bytes_in_use: int
