"""What bodies about loops over functions look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from teletape_server.worker.models.functions import Step, examples
from teletape_server.worker.models.models import Body, Id, Input, Name


class Inline(Body):
    """A function for one request, which keeps no id."""

    model_config = ConfigDict(extra="forbid", strict=True)

    inputs: list[str]
    steps: list[Step]
    outputs: Annotated[list[str], Field(min_length=1)]


class _Loop(Body):
    """What loops have in common."""

    inputs: list[Input]
    captured: Annotated[int, Field(ge=0, description="How many of the inputs, at the end, go with every iteration")] = 0
    outputs: Annotated[list[Name] | None, Field(description="An id for each result; left out: generated ones")] = None
    tape: Annotated[Id, Field(description="Record the steps there, and on its parents")] = None
    fetch: Annotated[list[Id] | None, Field(description="Whose numbers to answer; left out: all results'")] = None


class WhileLoop(_Loop):
    """The function again and again, from its own results, as long as a condition of them is true."""

    model_config = examples(
        {
            "inputs": [10.5, 1.5],
            "captured": 1,
            "cond": {
                "inputs": ["a", "b"],
                "steps": [{"op": "less", "inputs": ["a", 1000000.5], "outputs": ["more"]}],
                "outputs": ["more"],
            },
            "maximum_iterations": 20,
        }
    )

    cond: Annotated[
        Name | Inline, Field(description="A function of the same inputs that gives a scalar bool or integer")
    ]
    maximum_iterations: Annotated[int | None, Field(ge=0, description="A bound on the iterations; left out: none")] = (
        None
    )


class ScanLoop(_Loop):
    """The function once for each element along axis 0 of the inputs between those carried and those captured."""

    model_config = examples({"inputs": [0.5, [1.5, 2.5, 3.5]], "carried": 1})

    carried: Annotated[
        int, Field(ge=0, description="How many of the inputs, at the beginning, the first results replace each time")
    ] = 0
    reverse: Annotated[bool, Field(description="Whether the last element comes first")] = False
    length: Annotated[int | None, Field(ge=0, description="Iterations, where there are no elements")] = None
