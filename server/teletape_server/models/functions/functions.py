"""Bodies of /functions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema, model_validator

import teletape_wire as wire
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.errors import TeletapeError
from teletape_server.models.base import (
    GENERATED,
    Answer,
    Body,
    FloatDtype,
    Id,
    Input,
    Name,
    NumbersBody,
    Replace,
    Results,
    component,
    examples,
)
from teletape_server.models.faults import BY_NAME, BY_POSITION
from teletape_server.models.listings import Listing

_LAST_RESULT = GENERATED + "result{}"  # names a result inside a function whose step names none


def _read_steps(value: Any) -> Any:
    """Returns the steps as commands; an op without `outputs` gets a name for its result."""
    if not isinstance(value, list):
        raise ValueError("must be a list of steps")
    if len(value) > MAX_ITEMS:
        raise ValueError(f"has at most {MAX_ITEMS:,} members; found {len(value):,}")
    steps = []
    for position, step in enumerate(value):
        try:
            steps.append(wire.step_from_json(_complete(position, step)))
        except TeletapeError as error:
            raise type(error)(f"step {position}: {error.message}", **{"step": position, **error.details}) from None
    return steps


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


MapAxes = Annotated[
    dict[str, int] | None,
    Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="For inputs by name the axis of their entries: the function runs for each entry, and all results "
        "are stacked along axis 0; other inputs are the same for all",
        examples=[{"x": 0}],
    ),
]


class MapFacts(Answer):
    """How a function was run for each entry of a map."""

    size: Annotated[int, Field(description="Entries")]
    chunks: Annotated[int, Field(description="The entries of a chunk run at once: as many as memory has room for")]
    vectorized: Annotated[
        bool, Field(description="Whether all entries of a chunk run by the ops' batch rules; false: one by one")
    ]
    why: Annotated[str | None, Field(description="Why they run one by one")] = None


class NewFunction(NumbersBody):
    """A function to create: steps on named inputs, or a text of formulas."""

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
        text={"id": "logistic_loss", "text": "p = sigmoid(x @ w)\nloss = -mean(y * log(p) + (1 - y) * log(1 - p))"},
    )

    id: Name | None = None
    replace: Replace = False
    text: Annotated[
        str | None,
        Field(description="Formulas as POST /v1/expressions takes them, in place of `inputs` and `steps`"),
    ] = None
    inputs: Annotated[list[str] | None, Field(description="Names; without `text` they are needed")] = None
    steps: Annotated[Steps | None, Field(description="In order; without `text` they are needed")] = None
    outputs: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            description="Names of inputs or results of steps; default with `text`: the names that no other line "
            "uses; what is not needed for them is left out",
        ),
    ] = None

    @model_validator(mode="after")
    def _has_steps(self) -> Self:
        needed = {"inputs": self.inputs, "steps": self.steps, "outputs": self.outputs}
        if self.text is None:
            missing = [name for name, value in needed.items() if value is None]
            if missing:
                raise ValueError(f"needs inputs, steps and outputs, or text; {', '.join(missing)}: is missing")
        else:
            extra = [name for name in ("inputs", "steps") if needed[name] is not None]
            if extra:
                raise ValueError(f"has text, which gives the inputs and steps: leave out {' and '.join(extra)}")
        return self


class InlineFunction(Body):
    """A function for one request, without an id."""

    inputs: list[str]
    steps: Steps
    outputs: Annotated[list[str], Field(min_length=1, description="Names of inputs or results of steps")]


class FunctionCall(Results):
    """A call of a function. Steps that name a variable among the inputs read it, or assign to it."""

    model_config = examples({"inputs": ["w", "x"], "outputs": ["error"], "tape": "tape"})

    inputs: Inputs
    map: MapAxes = None
    outputs: Annotated[
        list[Name] | None, Field(description="An id for each result; without it the server generates them")
    ] = None
    tape: Annotated[Id | None, Field(description="A tape that records the call, with its parents")] = None
    fetch: Annotated[
        list[Id] | None,
        Field(description="Ids, or the function's names of outputs, to return in `values`; without it all results"),
    ] = None


class Function(Answer):
    """A function."""

    id: str | int
    kind: Literal["function"]
    inputs: list[str]
    outputs: list[str]
    assigns: Annotated[list[str], Field(description="Inputs that have to be variables, since a step assigns to them")]
    dtype: Annotated[
        FloatDtype | None,
        Field(description="Of numbers without a dtype that meet no tensor; null: the session's"),
    ]
    bytes: Annotated[int, Field(description="Of its constants")]
    size: Annotated[int, Field(description="Steps, with those of the functions that it calls")]
    steps: list[dict[str, Any]]


class NewFunctionAnswer(Function):
    """A function that was created."""

    values: Annotated[
        dict[str, Annotated[Any, WithJsonSchema(component("TensorData"))]] | None,
        Field(description="Of a text: values of inputs, from lines such as `x = 2`; the function does not keep them"),
    ] = None


class FunctionList(Listing):
    """The session's functions, oldest first."""

    functions: list[Function]
