"""What a tape's picture looks like as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from teletape_server.worker.models.explanations import Explanation
from teletape_server.worker.models.models import Answer

NodeId = Annotated[str, Field(description="Of a node of this graph", examples=["n0"])]


class GraphNode(Answer):
    """One call, one thing that the tape began with, or several of either drawn as one."""

    id: NodeId
    kind: Annotated[
        Literal["variable", "tensor", "op", "read", "group", "watched", "outside", "cut"],
        Field(
            description="group: neighbouring calls; watched: several watched things; outside: asked for, and not on "
            "the tape; cut: blamed, and not on the tape"
        ),
    ]
    ops: Annotated[int, Field(description="Calls")]
    first: Annotated[int | None, Field(description="Which call of the tape the first of them is, from 0")]
    label: Annotated[str, Field(description="The op, or how many of which")]
    name: Annotated[str | None, Field(description="Yours for the value, or the variable's")]
    dtype: str | None
    shape: list[int] | None
    bytes: Annotated[int | None, Field(description="Kept here, of buffers that no call before it keeps")]
    keeps: Annotated[list[str], Field(description="What of the call is kept: inputs by name, y for the result")]
    where: Annotated[str | None, Field(description="Your line, if you sent it")]
    marks: list[Literal["source", "target", "path", "cut"]]
    why: Annotated[str | None, Field(description="Of a cut: why no gradient passes")]


class GraphEdge(Answer):
    """From what made a value to what uses it."""

    begin: Annotated[NodeId, Field(alias="from")]
    end: Annotated[NodeId, Field(alias="to")]
    uses: Annotated[int, Field(description="Inputs")]
    carries: Annotated[bool, Field(description="Whether a gradient passes")]
    path: Annotated[bool, Field(description="Whether that of the targets does, on its way to the sources")]


class GraphExplanation(Explanation):
    """Why a source's gradient is what it is."""

    source: NodeId
    drawn: Annotated[NodeId | None, Field(description="The node that is to blame, if one is")]


class Graph(Answer):
    """A tape as a picture: what it watched, the calls it recorded, and what each keeps."""

    ops: Annotated[int, Field(description="Calls on the tape")]
    bytes: Annotated[int | None, Field(description="That it keeps, each buffer once")]
    consumed: Annotated[bool, Field(description="It has answered, and keeps nothing any more")]
    folded: Annotated[str | None, Field(description="How calls were put together; null: each has its node")]
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    explanations: list[GraphExplanation]
