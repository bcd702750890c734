"""One node of a tape's graph: parameters and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from teletape_engine.session.handlers.nodes import MOST_SOURCES
from teletape_server.models.base import Answer
from teletape_server.models.explanations import Explanation, Why
from teletape_server.models.parameters import Bins, Parameters
from teletape_server.models.session.tensors import Histogram
from teletape_server.models.tapes.graphs import NodeId


class NodeSources(Parameters):
    """What a node is differentiated by."""

    sources: Annotated[
        list[str],
        Field(
            max_length=MOST_SOURCES,
            description="Nodes of the graph. Repeatable; without it: the first 64 that the tape watches",
        ),
    ] = Field(default=[])


class NodeSourcesAndBins(NodeSources):
    """What a node is differentiated by, and the histograms of the answer."""

    bins: Bins = 20


class NodeInput(Answer):
    """An input of an op on a tape."""

    name: Annotated[str, Field(description="The op's name for it")]
    node: Annotated[str | None, Field(description="The node that made it; null: a number, or nothing on the tape")]
    dtype: Annotated[str | None, Field(description="null: a number without a dtype of its own")]
    shape: list[int]


class Node(Answer):
    """One op or watched value of a tape, with the histogram of its value."""

    node: NodeId
    kind: Literal["op", "variable", "tensor"]
    op: str | None
    names: Annotated[list[str | int], Field(description="The ids of its value in the session")]
    dtype: str
    shape: list[int]
    bytes: Annotated[int, Field(description="Of its value")]
    where: Annotated[str | None, Field(description="Your source line of it")]
    inputs: list[NodeInput]
    value: Annotated[
        Histogram | None,
        Field(description="Of its value; null: no id names the value any more, and no gradient needs it"),
    ]


class NodeDerivative(Answer):
    """The gradient of a node by one source, as a histogram."""

    source: NodeId
    name: Annotated[str | None, Field(description="The source's id in the session")]
    kind: Literal["none", "dense", "slices"]
    dtype: str
    shape: list[int]
    value: Annotated[Histogram | None, Field(description="null: there is no gradient")]
    why: Annotated[Why | None, Field(description="Why there is none")]


class NodeGradient(Answer):
    """The gradient of the sum of a node's elements, by source; the tape stays as it is."""

    node: NodeId
    derivatives: list[NodeDerivative]


class NodeExplanation(Explanation):
    """Why the gradient of a node is what it is for one source."""

    source: NodeId
    name: Annotated[str | None, Field(description="The source's id in the session")]


class NodeExplanations(Answer):
    """Why the gradient of a node is what it is, by source."""

    node: NodeId
    explanations: list[NodeExplanation]
