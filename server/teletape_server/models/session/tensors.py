"""Bodies of /tensors, and the parameters of their listing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Name, Replace, TensorValue, examples
from teletape_server.models.base import Tensor as TensorField
from teletape_server.models.listings import Listing
from teletape_server.models.parameters import All, DtypeFilter, Ids, Page, Prefix, Selection

Kind = Annotated[Literal["tensor", "slices"] | None, Field(description="Only tensors, or only sparse gradients")]


class PageOfTensors(Page):
    """A page of the tensors."""

    kind: Kind = None
    dtype: DtypeFilter = None


class SeveralTensors(Selection):
    """The tensors that a request deletes."""

    id: Ids = None
    prefix: Prefix = None
    kind: Kind = None
    dtype: DtypeFilter = None
    all: All = False


class NewTensor(Body):
    """A tensor to create."""

    model_config = examples({"id": "x", "value": {"dtype": "float32", "shape": [3], "data": [4, 5, 6]}})

    id: Name | None = None
    replace: Replace = False
    value: TensorField


class NewTensors(Body):
    """Tensors to create, by id."""

    model_config = examples({"tensors": {"more_points": [[0.5, 1.5], [2.5, 3.5]], "labels": [0.5, 1.5]}})

    tensors: Annotated[dict[Name, TensorField], Field(min_length=1, max_length=MAX_ITEMS)]
    replace: Replace = False


class Tensor(Answer):
    """A tensor; with its value if the request was for one tensor."""

    id: str | int
    kind: Annotated[Literal["tensor", "slices"], Field(description="slices: a sparse gradient")]
    dtype: str
    shape: list[int]
    bytes: int
    rows: Annotated[int | None, Field(description="Of a sparse gradient: the rows that it holds")] = None
    value: TensorValue | None = None


class TensorList(Listing):
    """The session's tensors, oldest first: those you created, results of ops, gradients."""

    tensors: list[Tensor]


class Histogram(Answer):
    """Statistics of a tensor's elements; of a sparse gradient, those of its rows."""

    elements: Annotated[int, Field(description="Elements in all")]
    finite: Annotated[int, Field(description="Elements that are finite numbers")]
    zeros: int
    nan: int
    positive_infinity: int
    negative_infinity: int
    of: Annotated[
        Literal["value", "magnitude"],
        Field(description="What the other members are about: complex numbers count by their magnitude"),
    ]
    minimum: Annotated[float | None, Field(description="Of the finite elements; null: there are none")]
    maximum: float | None
    mean: Annotated[float | None, Field(description="null also if it exceeds float64")]
    std: Annotated[float | None, Field(description="Standard deviation of the finite elements")]
    edges: Annotated[
        list[float],
        Field(description="Of the bins, ascending, one more than `counts`. Integers of a narrow range have a bin each"),
    ]
    counts: Annotated[list[int], Field(description="Finite elements in each bin")]


class TensorHistogram(Histogram):
    """Statistics of a tensor's elements; of a sparse gradient, those of its rows."""

    id: str | int
    dtype: str
    shape: list[int]
