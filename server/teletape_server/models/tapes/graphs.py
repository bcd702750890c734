"""GET /tapes/{tape}/graph: its parameters and its answer."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

import teletape_wire as wire
from teletape_server.models.base import Answer
from teletape_server.models.explanations import Explanation
from teletape_server.models.parameters import Parameters

DOT_TYPE: Final = "text/vnd.graphviz"
SVG_TYPE: Final = "image/svg+xml"
_FORMATS: Final = {"json": wire.JSON_TYPE, "dot": DOT_TYPE, "svg": SVG_TYPE}


class Drawing(Parameters):
    """What of a graph is drawn, and how."""

    accept: Annotated[
        Literal["json", "dot", "svg"] | None,
        AfterValidator(_FORMATS.__getitem__),
        Field(
            alias="format",
            description="The answer's format, in place of the Accept header (application/json, text/vnd.graphviz, "
            "image/svg+xml)",
        ),
    ] = None
    targets: Annotated[
        list[str], Field(description="With `sources`: mark the path of the gradient of this target. Repeatable")
    ] = Field(default=[])
    sources: Annotated[
        list[str],
        Field(description="With `targets`: mark the path to this source, or where it is cut. Repeatable"),
    ] = Field(default=[])
    nodes: Annotated[
        int,
        Field(
            ge=4, le=1_000_000, description="Most nodes to draw: above that, repeated or neighbouring ops share a node"
        ),
    ] = 2000
    first: Annotated[
        int | None,
        Field(ge=0, description="Draw only a part: the `ops` ops from this position on. A group's `first` and `ops`"),
    ] = None
    ops: Annotated[int, Field(ge=1, description="With `first`: ops to draw")] = 100


NodeId = Annotated[str, Field(description="The id of a node of this graph", examples=["n0"])]


class GraphNode(Answer):
    """One op, one input of the graph, or several of either drawn as one node."""

    id: NodeId
    kind: Annotated[
        Literal["variable", "tensor", "op", "read", "group", "watched", "outside", "cut"],
        Field(
            description="group: several ops; watched: several watched tensors; outside: a target or source that is not "
            "on the tape, or an op before the part that is drawn; cut: what stops a gradient and is not on the tape"
        ),
    ]
    ops: Annotated[int, Field(description="Ops in this node")]
    first: Annotated[int | None, Field(description="Position of its first op on the tape, from 0")]
    label: Annotated[str, Field(description="The op, or the ops and their number")]
    name: Annotated[str | None, Field(description="The id of the tensor, or the variable's name")]
    dtype: str | None
    shape: list[int] | None
    bytes: Annotated[int | None, Field(description="Bytes kept by this node and by no earlier one")]
    keeps: Annotated[list[str], Field(description="What is kept of the op: inputs by name, y for the result")]
    where: Annotated[str | None, Field(description="Your source line of it")]
    marks: list[Literal["source", "target", "path", "cut"]]
    why: Annotated[str | None, Field(description="Of a cut: why the gradient stops")]


class GraphEdge(Answer):
    """From the node that makes a value to a node that uses it."""

    begin: Annotated[str, Field(alias="from", description="The id of a node")]
    end: Annotated[str, Field(alias="to", description="The id of a node")]
    uses: Annotated[int, Field(description="Inputs that use it")]
    carries: Annotated[bool, Field(description="Whether a gradient passes")]
    path: Annotated[bool, Field(description="Whether the gradient of the targets passes on its way to the sources")]


class GraphExplanation(Explanation):
    """Why a source's gradient is what it is."""

    source: NodeId
    drawn: Annotated[str | None, Field(description="The node that causes it")]


class Graph(Answer):
    """A tape as a graph: what it watches, the ops it recorded, and what each keeps."""

    ops: Annotated[int, Field(description="Ops on the tape")]
    bytes: Annotated[int | None, Field(description="Bytes that it keeps")]
    consumed: Annotated[bool, Field(description="Whether it has answered and keeps nothing any more")]
    folded: Annotated[str | None, Field(description="How ops were put into groups; null: each has a node")]
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    explanations: list[GraphExplanation]
