"""Bodies of /functions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema

import teletape_wire as wire
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.worker.faults import BY_NAME, BY_POSITION
from teletape_server.worker.models.base import (
    GENERATED,
    Answer,
    Body,
    Id,
    Input,
    Name,
    Replace,
    Results,
    component,
    examples,
)
from teletape_server.worker.models.listings import Listing

_LAST_RESULT = GENERATED + "result{}"  # names a result inside a function whose step names none


def _read_steps(value: Any) -> Any:
    """Returns the steps as commands; an op without `outputs` gets a name for its result."""
    if not isinstance(value, list):
        raise ValueError("must be a list of steps")
    if len(value) > MAX_ITEMS:
        raise ValueError(f"has at most {MAX_ITEMS:,} members; found {len(value):,}")
    return [wire.step_from_json(_complete(position, step)) for position, step in enumerate(value)]


def _complete(position: int, step: Any) -> Any:
    if not isinstance(step, dict) or step.get("do", "op") != "op":
        return step
    sent = {name: value for name, value in step.items() if value is not None}
    return {"inputs": [], "outputs": [_LAST_RESULT.format(position)]} | sent


Steps = Annotated[
    Any,
    PlainValidator(_read_steps),
    WithJsonSchema({"type": "array", "items": component("Step"), "description": "In order"}),
]


Inputs = Annotated[
    Annotated[list[Input], Field(max_length=MAX_ITEMS), Tag(BY_POSITION)]
    | Annotated[dict[str, Input], Field(max_length=MAX_ITEMS), Tag(BY_NAME)],
    Discriminator(lambda value: BY_NAME if isinstance(value, dict) else BY_POSITION),
    Field(description="In the order of the function's inputs, or by their names"),
]


class NewFunction(Body):
    """A function to create: steps on named inputs."""

    model_config = examples(
        squared_error={
            "id": "squared_error",
            "inputs": ["a", "b"],
            "steps": [
                {"op": "squared_difference", "inputs": ["a", "b"], "outputs": ["d"]},
                {"op": "reduce_mean", "inputs": ["d"], "outputs": ["mean"]},
            ],
            "outputs": ["mean"],
        },
        count_up={
            "id": "count_up",
            "inputs": ["counter", "by"],
            "steps": [
                {"do": "assign", "variable": "counter", "value": "by", "mode": "add"},
                {"op": "mul", "inputs": ["counter", 2], "outputs": ["twice"]},
            ],
            "outputs": ["twice"],
        },
    )

    id: Name | None = None
    replace: Replace = False
    inputs: list[str]
    steps: Steps
    outputs: Annotated[list[str], Field(min_length=1, description="Names of inputs or results of steps")]


class InlineFunction(Body):
    """A function for one request, without an id."""

    inputs: list[str]
    steps: Steps
    outputs: Annotated[list[str], Field(min_length=1, description="Names of inputs or results of steps")]


class FunctionCall(Results):
    """A call of a function. Steps that name a variable among the inputs read it, or assign to it."""

    model_config = examples({"inputs": ["w", "x"], "outputs": ["error"], "tape": "tape"})

    inputs: Inputs
    outputs: Annotated[
        list[Name] | None, Field(description="An id for each result; without it the server generates them")
    ] = None
    tape: Annotated[Id | None, Field(description="A tape that records the call, with its parents")] = None
    fetch: Annotated[list[Id] | None, Field(description="Ids to return in `values`; without it all results")] = None


class Function(Answer):
    """A function."""

    id: str | int
    kind: Literal["function"]
    inputs: list[str]
    outputs: list[str]
    assigns: Annotated[list[str], Field(description="Inputs that have to be variables, since a step assigns to them")]
    bytes: Annotated[int, Field(description="Of its constants")]
    size: Annotated[int, Field(description="Steps, with those of the functions that it calls")]
    steps: list[dict[str, Any]]


class FunctionList(Listing):
    """The session's functions, oldest first."""

    functions: list[Function]
