"""Bodies of /functions/{function}/while and /scan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Id, Input, Name, Results, examples
from teletape_server.models.faults import BY_NAME, BY_POSITION
from teletape_server.models.functions.functions import InlineFunction


class Loop(Results):
    """The fields of every loop."""

    inputs: Annotated[list[Input], Field(max_length=MAX_ITEMS)]
    captured: Annotated[
        int, Field(ge=0, description="Number of inputs, the last ones, that are the same in every iteration")
    ] = 0
    outputs: Annotated[
        list[Name] | None, Field(description="An id for each result; without it the server generates them")
    ] = None
    tape: Annotated[Id | None, Field(description="A tape that records the loop, with its parents")] = None
    fetch: Annotated[list[Id] | None, Field(description="Ids to return in `values`; without it all results")] = None


class WhileLoop(Loop):
    """Calls the function on its own results as long as a condition is true."""

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
        Annotated[Name, Tag(BY_POSITION)] | Annotated[InlineFunction, Tag(BY_NAME)],
        Discriminator(lambda value: BY_NAME if isinstance(value, dict) else BY_POSITION),
        Field(description="A function of the same inputs that returns a scalar bool or integer: its id or its steps"),
    ]
    maximum_iterations: Annotated[int | None, Field(ge=0, description="Most iterations; without it no limit")] = None


class ScanLoop(Loop):
    """Calls the function once for each element along axis 0 of the inputs that are neither carried nor captured."""

    model_config = examples({"inputs": [0.5, [1.5, 2.5, 3.5]], "carried": 1})

    carried: Annotated[
        int, Field(ge=0, description="Number of inputs, the first ones, that the first results replace each time")
    ] = 0
    reverse: Annotated[bool, Field(description="Whether to begin with the last element")] = False
    length: Annotated[int | None, Field(ge=0, description="Iterations, if no input has elements")] = None
