"""Bodies of /ops, in a session and on a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Call
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Attributes, Body, Id, Input, Name, Results, TensorValue, examples


class OpCall(Body):
    """One call of an op."""

    op: Annotated[str, Field(min_length=1, description="Its name; GET /v1/ops lists the ops")]
    inputs: list[Input] = Field(default=[], max_length=MAX_ITEMS)
    outputs: Annotated[
        list[Name] | None, Field(description="An id for each result; without it the server generates one")
    ] = None
    attrs: Attributes = Field(default={}, description="Attributes by name; GET /v1/ops/{op} describes them")
    where: Annotated[
        str | None, Field(min_length=1, description="Your source line; errors and explanations repeat it")
    ] = None

    def command(self, new_id: Callable[[], str]) -> Call:
        """Returns the engine's command; `new_id` gives the ids that the server generates."""
        op = CATALOGUE.get(CATALOGUE.synonyms.get(self.op, self.op))
        outputs = [new_id() for _ in (op.results if op else "y")] if self.outputs is None else self.outputs
        return Call(self.op, tuple(self.inputs), tuple(outputs), self.attrs, self.where)


class OpCalls(Results):
    """Ops to run, in order."""

    model_config = examples(
        {
            "ops": [
                {"op": "add", "inputs": ["w", 1], "outputs": ["shifted"]},
                {"op": "reduce_max", "inputs": ["shifted"], "outputs": ["largest"]},
            ]
        }
    )

    ops: list[OpCall]
    fetch: Annotated[list[Id] | None, Field(description="Ids to return in `values`; without it the last result's")] = (
        None
    )


class Output(Answer):
    """The id, dtype and shape of a result."""

    id: str | int
    dtype: str
    shape: list[int]


class OpResults(Answer):
    """The results of ops or of a function."""

    outputs: Annotated[list[Output], Field(description="The results that stay")]
    values: Annotated[dict[str, TensorValue], Field(description="The tensors of `fetch`, by id")]
    bytes_in_use: int
