"""Bodies of /functions/{function}/gradient, /jacobian, /hessian, /hvp, /sparse_hessian, /vjp, /jvp, /explain, …."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Input, Name, Outputs, Replace, TensorValue, examples
from teletape_server.models.explanations import Why
from teletape_server.models.functions.functions import Inputs, MapAxes, MapFacts
from teletape_server.models.functions.gradient_fields import (
    Accumulate,
    Accumulated,
    ExampleNorms,
    GradientPart,
    NumericFacts,
    NumericSettings,
    PartOfGradient,
    PerExample,
)
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
OutputGradients = Annotated[list[Input | None] | None, Field(max_length=MAX_ITEMS, description=_WEIGHTS)]


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
    output_gradients: OutputGradients = None
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False
    fetch: FetchedOutputs = None
    per_example: Annotated[
        PerExample | None,
        Field(description="Clip the gradient of each example, and sum them, without all of them being there at a time"),
    ] = None
    part: Annotated[GradientPart | None, Field(description="Answer a part of each gradient alone")] = None
    accumulate: Annotated[
        Accumulate | None,
        Field(
            description="Add the gradients to an accumulator of the session, once for each number of a batch; they "
            "are not answered then"
        ),
    ] = None
    numeric: Annotated[
        bool | NumericSettings,
        Field(description="Compute the gradients by central differences, from the function's values alone"),
    ] = False
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

    model_config = examples(
        accumulate={
            "inputs": [[1.5, 2.5], [0.5, 0.5]],
            "sources": ["a"],
            "accumulate": {"into": "gradients", "batch": 17, "weight": 32, "gradients": True},
        },
        numbers={"inputs": [[1.5, 2.5], [0.5, 0.5]], "sources": ["a"]},
    )

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
    output_gradients: OutputGradients = None
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
    vectors: Annotated[
        list[Input] | None,
        Field(
            max_length=MAX_ITEMS,
            description="With them: the derivative along these vectors of the derivative along the tangents",
        ),
    ] = None
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


class FunctionDerivative(Derivative):
    """The derivative with respect to one source, or a part of it."""

    part: Annotated[
        PartOfGradient | None, Field(description="Of a question for a part by `top` or `rows`: `value` is then null")
    ] = None


class FunctionDerivatives(FunctionAnswer):
    """A function's derivatives, in the order of the sources."""

    derivatives: list[FunctionDerivative]
    per_example: Annotated[ExampleNorms | None, Field(description="Of a question with `per_example`")] = None
    accumulator: Annotated[Accumulated | None, Field(description="Of a question with `accumulate`")] = None
    numeric: Annotated[NumericFacts | None, Field(description="Of a question with `numeric`")] = None
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
