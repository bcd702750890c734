"""The parameters of queries: of a request's answer, of listings, of histograms."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, Field

from teletape_engine.diagram.histogram import MAX_BINS
from teletape_engine.spec import DTYPES
from teletape_engine.suggestions import with_nearest

MOST_LISTED: Final = 10_000  #: Items that a page of a listing may have; without a limit it has all.


def _dtype(name: str | None) -> str | None:
    if name is not None and name not in DTYPES:
        raise ValueError(with_nearest(f"must be one of {', '.join(DTYPES)}; found {name!r}", name, DTYPES))
    return name


Limit = Annotated[int | None, Field(ge=1, le=MOST_LISTED, description="Most items; without it all")]
After = Annotated[str | None, Field(min_length=1, description="Continue after this item: `next` of the page before")]
Prefix = Annotated[str | None, Field(min_length=1, description="Only those whose id begins with this text")]
Ids = Annotated[
    list[str] | None,
    Field(description="Ids, the parameter repeated; those that name nothing are skipped", examples=[["old"]]),
]
DtypeFilter = Annotated[
    str | None,
    AfterValidator(_dtype),
    Field(min_length=1, description="Only those of this dtype, such as float32"),
]
All = Annotated[bool, Field(description="All of them")]
Bins = Annotated[int, Field(ge=1, le=MAX_BINS, description="Most bins of a histogram")]


class Parameters(BaseModel):
    """The parameters of a query.

    Attributes:
        group: The method's parameter that holds them all; None: each of them is a parameter of the method.
    """

    group: ClassVar[str | None] = None

    def for_method(self) -> dict[str, Any]:
        """Returns what the method gets."""
        values = self.model_dump()
        return values if self.group is None else {self.group: values}


class Elements(Parameters):
    """How much of large tensors an answer shows."""

    full: Annotated[bool, Field(description="Return every element of a large tensor, not only the first 1000")] = False


class BinaryFields(Parameters):
    """The other fields of a body that may be the bytes of a tensor; in JSON they are members of the body."""

    group = "query"


class NamedFields(BinaryFields):
    """Those of what a request creates."""

    id: Annotated[str | None, Field(description="For a binary body: the id to create")] = None
    replace: Annotated[
        bool | None,
        Field(description="For a binary body: whether the id may be in use or released, and names the new thing then"),
    ] = None


class Selection(Parameters):
    """Which things of a listing a request is about."""

    group = "selection"


class Page(Selection):
    """A page of a listing."""

    limit: Limit = None
    after: After = None
    prefix: Prefix = None


class Several(Selection):
    """The things that a request deletes."""

    id: Ids = None
    prefix: Prefix = None
    all: All = False


class TimelineSteps(Parameters):
    """How a timeline is divided."""

    timeline: Annotated[
        Literal["minutes", "hours", "days"] | None,
        Field(description="Say who computed when: in the last 180 minutes, 48 hours or 30 days"),
    ] = None


class HistogramBins(Parameters):
    """How a histogram is made."""

    bins: Bins = 20
