"""What bodies about functions look like: their steps, their calls, their gradients."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from teletape_server.worker.models.models import Answer, Body, Derivative, Id, Input, Name, OpCall, Shown


def examples(*examples: dict[str, Any]) -> ConfigDict:
    """The model's configuration with its examples."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": list(examples)})


class Step(OpCall):
    """A step of a function: a call of an op, or (by `do`) an assignment or what runs other functions.

    Their fields beside these are the commands' own: docs/protocol.md, section 1.
    """

    model_config = ConfigDict(extra="allow")

    do: Literal["op", "assign", "call", "while", "cond", "scan"] = "op"
    op: Annotated[str, Field(description="Its name; GET /v1/ops lists them")] = ""


class NewFunction(Body):
    """A saved function: steps on named inputs."""

    model_config = examples(
        {
            "id": "squared_error",
            "inputs": ["a", "b"],
            "steps": [
                {"op": "squared_difference", "inputs": ["a", "b"], "outputs": ["d"]},
                {"op": "reduce_mean", "inputs": ["d"], "outputs": ["mean"]},
            ],
            "outputs": ["mean"],
        },
        {
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
    inputs: list[str]
    steps: list[Step]
    outputs: Annotated[list[str], Field(min_length=1)]


class FunctionCall(Body):
    """A call of a saved function. A variable among the inputs is read, and assigned to, by the steps that name it."""

    model_config = examples({"inputs": ["w", "x"], "outputs": ["error"], "tape": "tape"})

    inputs: list[Input]
    outputs: Annotated[list[Name] | None, Field(description="An id for each result; left out: generated ones")] = None
    tape: Annotated[Id, Field(description="Record the call there, and on its parents")] = None
    fetch: Annotated[list[Id] | None, Field(description="Whose numbers to answer; left out: all results'")] = None


class FunctionGradient(Body):
    """A question for derivatives of a saved function, for these inputs. Nothing of it stays in the session."""

    model_config = examples(
        {"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]}, {"inputs": ["w", [1.5, 2.5]], "targets": ["mean"]}
    )

    inputs: list[Input]
    sources: Annotated[list[str] | None, Field(description="Names of inputs; left out: all that have gradients")] = None
    targets: Annotated[list[str] | None, Field(description="Names of results whose sum is meant; left out: all")] = None
    unconnected: Literal["none", "zero"] = "none"


class FunctionGradients(Answer):
    """The function's results, and the derivative of their sum with respect to each input asked for."""

    values: dict[str, Shown]
    derivatives: Annotated[
        list[Derivative], Field(description="In the order of `sources`; the source is the input's name")
    ]
    bytes_in_use: int


class Function(Answer):
    """A saved function."""

    id: str | int
    kind: Literal["function"]
    inputs: list[str]
    outputs: list[str]
    assigns: Annotated[list[str], Field(description="Inputs that must be given variables: a step assigns to them")]
    bytes: Annotated[int, Field(description="Of its constants")]
    size: Annotated[int, Field(description="Steps, those of functions that it calls counted at each call")]
    steps: list[dict[str, Any]]


class Functions(Answer):
    """The session's functions, oldest first."""

    functions: list[Function]
