"""Bodies of /functions/{function}/gradient, /jacobian, /hessian, /hvp, /sparse_hessian, /vjp, /jvp, /explain, …."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Input, Name, Outputs, Replace, TensorValue, examples
from teletape_server.models.explanations import Why
from teletape_server.models.functions.functions import Inputs, MapAxes, MapFacts
from teletape_server.models.tapes.checks import CheckSettings
from teletape_server.models.tapes.questions import (
    Derivative,
    Format,
    HessianBlock,
    MaxBytes,
    ProductBytes,
    SparseDerivative,
    SparseOutputs,
    Unconnected,
)

OutputNames = Annotated[
    list[str] | None,
    Field(min_length=1, max_length=MAX_ITEMS, description="Names of outputs whose sum is differentiated; default: all"),
]
OneOutputName = Annotated[
    list[str] | None,
    Field(min_length=1, max_length=1, description="The name of the output to differentiate; default: the only one"),
]
InputNames = Annotated[
    list[str] | None,
    Field(
        max_length=MAX_ITEMS,
        description="Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats",
    ),
]
FetchedOutputs = Annotated[
    list[str] | None, Field(max_length=MAX_ITEMS, description="Names of outputs to return in `values`; default: none")
]

_WEIGHTS = "A weight for each target, of its shape; null: ones. In a map one for all entries, or a stack of them"


class PerExample(Body):
    """How the gradients of examples are clipped and summed."""

    axis: Annotated[
        int | None,
        Field(
            description="The axis of the examples in all inputs that are no sources: the function takes batches, and "
            "each example is a batch of 1. Without it `map` names the axes, or it is 0"
        ),
    ] = None
    clip: Annotated[
        float | None,
        Field(gt=0, strict=False, description="The bound of the norm of an example's gradient over all sources"),
    ] = None
    returns: Annotated[
        Literal["sum", "norms", "statistics"],
        Field(
            alias="return",
            description="sum: of the clipped gradients; norms: of each example; statistics: mean, median, smallest and "
            "largest norm",
        ),
    ] = "sum"


class GradientPart(Body):
    """The part of each gradient that is answered: exactly one of the fields."""

    top: Annotated[
        int | None,
        Field(ge=1, description="This many elements of the largest magnitude, or all"),
    ] = None
    rows: Annotated[
        list[Annotated[int, Field(ge=0)]] | None,
        Field(min_length=1, max_length=MAX_ITEMS, description="Numbers of rows along axis 0, each once"),
    ] = None
    dtype: Annotated[Literal["bfloat16", "float16"] | None, Field(description="All elements, with fewer bits")] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        chosen = [name for name in ("top", "rows", "dtype") if getattr(self, name) is not None]
        if len(chosen) != 1:
            raise ValueError(f"has exactly one of top, rows and dtype; found {', '.join(chosen) or 'none'}")
        if self.rows is not None and len(set(self.rows)) != len(self.rows):
            raise ValueError("rows: each is there once")
        return self


class FunctionGradientQuestion(Body):
    """Asks for the gradient of the targets' sum with respect to each source."""

    model_config = examples(
        numbers={"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]},
        names={"inputs": {"a": "w", "b": [1.5, 2.5]}, "targets": ["mean"]},
    )

    inputs: Inputs
    map: MapAxes = None
    targets: OutputNames = None
    sources: InputNames = None
    output_gradients: Annotated[
        list[Input | None] | None,
        Field(
            max_length=MAX_ITEMS,
            description=_WEIGHTS,
        ),
    ] = None
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None
    per_example: Annotated[
        PerExample | None,
        Field(description="Clip the gradient of each example, and sum them, without all of them being there at a time"),
    ] = None
    part: Annotated[GradientPart | None, Field(description="Answer a part of each gradient alone")] = None
    remainder: Annotated[
        Name | None,
        Field(
            description="With `part`: the rest of each gradient stays in the session's variable "
            "{remainder}.{source}, and is added to the next gradient with this remainder"
        ),
    ] = None

    @model_validator(mode="after")
    def _has_part(self) -> Self:
        if self.remainder is not None and self.part is None:
            raise ValueError("has a remainder, which is what a part leaves: give part too")
        return self


class ValueAndGradientQuestion(FunctionGradientQuestion):
    """Asks for a function's outputs and the gradient of the targets' sum with respect to each source."""

    fetch: Annotated[
        list[str] | None,
        Field(max_length=MAX_ITEMS, description="Names of outputs to return in `values`; default: all"),
    ] = None


class FunctionVjpQuestion(FunctionGradientQuestion):
    """Asks for output gradients times the Jacobian, with respect to each source."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"], "output_gradients": [0.5]})

    output_gradients: Annotated[
        list[Input | None],
        Field(
            max_length=MAX_ITEMS,
            description=_WEIGHTS,
        ),
    ]


class FunctionJacobianQuestion(Body):
    """Asks for the derivatives of each element of an output: shape [target, source] for each source."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]]})

    inputs: Inputs
    map: MapAxes = None
    targets: OneOutputName = None
    sources: InputNames = None
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Outputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None


class FunctionHessianQuestion(Body):
    """Asks for the second derivatives of the targets' sum: shape [source i, source j] for each pair of sources."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]})

    inputs: Inputs
    map: MapAxes = None
    targets: OutputNames = None
    sources: InputNames = None
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Annotated[
        list[list[Name | None]] | None,
        Field(description="For each source a list with an id for each source, null for none"),
    ] = None
    replace: Replace = False
    fetch: FetchedOutputs = None


class FunctionHvpQuestion(Body):
    """Asks for the Hessian of the targets' sum times a vector: the shape of the source for each source."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"], "vectors": [[1.5, 0.5]]})

    inputs: Inputs
    map: MapAxes = None
    targets: OutputNames = None
    sources: InputNames = None
    vectors: Annotated[
        list[Input], Field(max_length=MAX_ITEMS, description="The vector's part for each source, of its shape")
    ]
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None


OneInputName = Annotated[
    list[str] | None,
    Field(
        min_length=1,
        max_length=1,
        description="The name of the input to differentiate by, or an id in `inputs`. Default: the only "
        "input of floats",
    ),
]


class FunctionSparseJacobianQuestion(Body):
    """Asks for the entries of a Jacobian that may differ from zero: elements of an output by those of an input."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]})

    inputs: Inputs
    targets: OneOutputName = None
    sources: OneInputName = None
    format: Format = "coo"
    unconnected: Unconnected = "none"
    max_bytes: ProductBytes = None
    outputs: SparseOutputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None


class FunctionSparseHessianQuestion(FunctionSparseJacobianQuestion):
    """Asks for the second derivatives of the targets' sum that may differ from zero, by the elements of an input."""

    targets: OutputNames = None


class FunctionJvpQuestion(Body):
    """Asks for the Jacobian times tangents, in forward mode: the shape of the target for each target."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"], "tangents": [[1.5, 0.5]]})

    inputs: Inputs
    map: MapAxes = None
    targets: Annotated[
        list[str] | None,
        Field(min_length=1, max_length=MAX_ITEMS, description="Names of outputs to differentiate; default: all"),
    ] = None
    sources: InputNames = None
    tangents: Annotated[
        list[Input], Field(max_length=MAX_ITEMS, description="The direction of each source, of its shape")
    ]
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None


class FunctionExplainQuestion(Body):
    """Asks why the gradient of the targets' sum is what it is for each source."""

    model_config = examples({"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]})

    inputs: Inputs
    targets: OutputNames = None
    sources: Annotated[
        list[str] | None,
        Field(
            max_length=MAX_ITEMS,
            description="Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs",
        ),
    ] = None


# -------------------------------------------------------------------------------------------------------------- answers
class FunctionAnswer(Answer):
    """What every answer about a function has."""

    values: Annotated[dict[str, TensorValue], Field(description="The outputs in `fetch`, by name")]
    bytes_in_use: int


OfAMap = Annotated[MapFacts | None, Field(description="Of a map; other answers have no such member")]


class ExampleNorms(Answer):
    """The norms of the gradients of examples, before they were clipped."""

    size: Annotated[int, Field(description="Examples")]
    clipped: Annotated[int, Field(description="Examples whose norm was above the bound")]
    vectorized: Annotated[bool, Field(description="Whether examples run at once by the ops' batch rules")]
    norms: Annotated[list[float] | None, Field(description="With `return` norms: of each example")] = None
    mean: Annotated[float | None, Field(description="With `return` statistics")] = None
    median: float | None = None
    smallest: float | None = None
    largest: float | None = None


class PartOfGradient(Answer):
    """Some elements or rows of a gradient."""

    indices: Annotated[TensorValue, Field(description="Of elements in row-major order, or numbers of rows")]
    values: Annotated[TensorValue, Field(description="The elements, or the rows")]
    shape: Annotated[list[int], Field(description="Of the whole gradient")]


class FunctionDerivative(Derivative):
    """The derivative with respect to one source, or a part of it."""

    part: Annotated[
        PartOfGradient | None, Field(description="Of a question for a part by `top` or `rows`: `value` is then null")
    ] = None


class FunctionDerivatives(FunctionAnswer):
    """A function's derivatives, in the order of the sources."""

    derivatives: list[FunctionDerivative]
    per_example: Annotated[ExampleNorms | None, Field(description="Of a question with `per_example`")] = None
    map: OfAMap = None


class FunctionHessian(FunctionAnswer):
    """A function's Hessian: for each source a list with a block for each source."""

    derivatives: list[list[HessianBlock]]
    map: OfAMap = None


class FunctionSparseDerivative(FunctionAnswer):
    """A function's sparse derivative."""

    derivative: SparseDerivative


class Tangent(Answer):
    """The derivative of one output along the tangents."""

    name: Annotated[str, Field(description="Of the output")]
    kind: Annotated[
        Literal["none", "dense", "slices"],
        Field(description="none: the target does not depend on a source; slices: a sparse tangent"),
    ]
    id: Annotated[str | None, Field(description="The id that keeps it, if one was given")]
    value: TensorValue | None
    why: Annotated[Why | None, Field(description="Of a null: the reason; other derivatives have no such member")] = None


class FunctionTangents(FunctionAnswer):
    """A function's derivatives along the tangents, in the order of the targets."""

    derivatives: list[Tangent]
    map: OfAMap = None


class FunctionCheck(Body):
    """Asks whether a function's derivatives at these inputs are right."""

    model_config = examples({"inputs": [[0.5, 1.5], [2.5, 0.25]], "settings": {"entries": 10}})

    inputs: Inputs
    settings: CheckSettings = CheckSettings()
