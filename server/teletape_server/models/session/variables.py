"""Bodies of /variables, and the parameters of their queries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.ops.assign import MODES
from teletape_engine.suggestions import with_nearest
from teletape_server.models.base import Answer, Body, Input, Name, Replace, TensorValue, examples
from teletape_server.models.listings import Listing
from teletape_server.models.parameters import (
    All,
    BinaryFields,
    DtypeFilter,
    Ids,
    NamedFields,
    Page,
    Prefix,
    Selection,
)


class PageOfVariables(Page):
    """A page of the variables."""

    dtype: DtypeFilter = None


class SeveralVariables(Selection):
    """The variables that a request deletes."""

    id: Ids = None
    prefix: Prefix = None
    dtype: DtypeFilter = None
    all: All = False


class NewVariableFields(NamedFields):
    """The other fields of a new variable whose value is the body."""

    trainable: Annotated[bool | None, Field(description="For a binary body: whether tapes watch it by themselves")] = (
        None
    )
    name: Annotated[str | None, Field(description="For a binary body: a label for people")] = None


class AssignmentFields(BinaryFields):
    """The other fields of an assignment whose value is the body."""

    mode: Annotated[Literal["set", "add", "sub"] | None, Field(description="For a binary body: what to do with it")] = (
        None
    )


class NewVariable(Body):
    """A variable to create."""

    model_config = examples({"id": "w", "value": [0.5, 1.5, 2.5]})

    id: Name | None = None
    replace: Replace = False
    value: Input
    trainable: Annotated[bool, Field(description="Whether tapes watch it by themselves")] = True
    name: Annotated[str | None, Field(min_length=1, max_length=200, description="A label for people")] = None


class VariableValues(Body):
    """Values of variables, by id: those that do not exist are created."""

    model_config = examples({"variables": {"w": [0.5, 1.5, 2.5], "bias": 0.5}})

    variables: Annotated[dict[Name, Input], Field(min_length=1, max_length=MAX_ITEMS)]
    trainable: Annotated[bool, Field(description="Of those that are created: whether tapes watch them")] = True


def _mode(name: str) -> str:
    if name not in MODES:
        raise ValueError(with_nearest(f"must be one of {', '.join(MODES)}; found {name!r}", name, MODES))
    return name


class Assignment(Body):
    """The next value of a variable, or of a part of it; dtype and shape stay."""

    model_config = examples(
        add={"value": [0.5, 0.5, 0.5], "mode": "add"},
        scatter_update={"value": [9.5, 8.5], "mode": "scatter_update", "indices": [2, 0]},
    )

    value: Input
    mode: Annotated[
        str,
        AfterValidator(_mode),
        Field(
            description="set, add or sub: the whole variable; scatter_…: the rows at `indices`; scatter_nd_…: the "
            "elements at `indices`; slice: the part that `indices` describes",
            json_schema_extra={"enum": list(MODES)},
        ),
    ] = "set"
    indices: Annotated[Input | None, Field(description="The part to change; without it the whole variable")] = None


class Variable(Answer):
    """A variable; with its value if the request was for one variable."""

    id: str | int
    kind: Literal["variable"]
    dtype: str
    shape: list[int]
    bytes: int
    trainable: bool
    version: Annotated[int, Field(description="Number of assignments")]
    name: str
    value: TensorValue | None = None


class VariableList(Listing):
    """The session's variables, oldest first."""

    variables: list[Variable]
