"""Bodies of /tapes/{tape}/gradient, /jacobian, /hessian, … and /questions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import (
    Answer,
    Body,
    Id,
    Input,
    Name,
    Outputs,
    Replace,
    TensorValue,
    component,
    examples,
)
from teletape_server.models.explanations import Why

Unconnected = Annotated[
    Literal["none", "zero"],
    Field(description="The derivative if the target does not depend on the source: null or zeros"),
]
MaxBytes = Annotated[
    int | None,
    Field(ge=1, description="Most bytes for batched cotangents; without it 64 MiB, or what the session has left"),
]
Targets = Annotated[
    list[Id], Field(min_length=1, max_length=MAX_ITEMS, description="Tensors whose sum is differentiated")
]
OneTarget = Annotated[list[Id], Field(min_length=1, max_length=1, description="The tensor to differentiate: one id")]
Sources = Annotated[
    list[Id], Field(min_length=1, max_length=MAX_ITEMS, description="Tensors and variables to differentiate by")
]
OutputGradients = Annotated[
    list[Input | None] | None, Field(description="A weight for each target, of its shape; null: ones")
]


class GradientQuestion(Body):
    """Asks for the gradient of the targets' sum with respect to each source."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"]})

    targets: Targets
    sources: Annotated[list[Id], Field(max_length=MAX_ITEMS, description="Tensors and variables to differentiate by")]
    output_gradients: OutputGradients = None
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False


class GradientStatisticsQuestion(Body):
    """Asks for a few numbers about each gradient of the targets' sum, in place of its elements."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"]})

    targets: Targets
    sources: Sources
    output_gradients: OutputGradients = None


class JacobianQuestion(Body):
    """Asks for the derivatives of each element of a target: shape [target, source] for each source."""

    model_config = examples({"targets": ["y"], "sources": ["w", "x"]})

    targets: OneTarget
    sources: Sources
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Outputs = None
    replace: Replace = False


class BatchJacobianQuestion(Body):
    """Asks for the Jacobian of each example: shape [b, y, x] for a target [b, y] and a source [b, x]."""

    model_config = examples({"targets": ["squares"], "sources": ["points"]})

    targets: OneTarget
    sources: Annotated[list[Id], Field(min_length=1, max_length=1, description="One id")]
    max_bytes: MaxBytes = None
    outputs: Annotated[list[Name | None] | None, Field(min_length=1, max_length=1, description="One id to keep it")] = (
        None
    )
    replace: Replace = False


class VjpsQuestion(Body):
    """Asks for gradients for k output gradients: shape [k, source] for weights of shape [k, target]."""

    model_config = examples(
        {"targets": ["y"], "sources": ["w"], "output_gradients": [[[1.5, 0.5, 0.5], [0.5, 0.5, 2.5]]]}
    )

    targets: Targets
    sources: Sources
    output_gradients: Annotated[
        list[Input | None], Field(description="For each target k weights along a leading axis; null: ones")
    ]
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Outputs = None
    replace: Replace = False


class HessianQuestion(Body):
    """Asks for the second derivatives of the targets' sum: shape [source i, source j] for each pair of sources."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"], "unconnected": "zero"})

    targets: Targets
    sources: Sources
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Annotated[
        list[list[Name | None]] | None,
        Field(description="For each source a list with an id for each source, null for none"),
    ] = None
    replace: Replace = False


class HvpQuestion(Body):
    """Asks for the Hessian of the targets' sum times a vector: the shape of the source for each source."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"], "vectors": [[1.5, 0.5, 0.5], [0.5, 0.5, 0.5]]})

    targets: Targets
    sources: Sources
    vectors: Annotated[list[Input], Field(description="The vector's part for each source, of its shape")]
    output_gradients: OutputGradients = None
    unconnected: Unconnected = "none"
    outputs: Outputs = None
    replace: Replace = False


Format = Annotated[
    Literal["coo", "csr"],
    Field(description="coo: row and column of each entry; csr: where each row begins, and the column of each entry"),
]
SparseOutputs = Annotated[
    list[Name | None] | None,
    Field(
        min_length=3,
        max_length=3,
        description="Ids to keep the parts under, null for none: rows (coo) or row starts (csr), columns, values",
    ),
]
ProductBytes = Annotated[
    int | None, Field(ge=1, description="Most bytes for products that are computed together; without it 16 MiB")
]


class SparseJacobianQuestion(Body):
    """Asks for the entries of a Jacobian that may differ from zero: elements of the target by those of the source."""

    model_config = examples({"targets": ["y"], "sources": ["w"]})

    targets: OneTarget
    sources: Annotated[list[Id], Field(min_length=1, max_length=1, description="One id")]
    format: Format = "coo"
    unconnected: Unconnected = "none"
    max_bytes: ProductBytes = None
    outputs: SparseOutputs = None
    replace: Replace = False


class SparseHessianQuestion(Body):
    """Asks for the second derivatives of the targets' sum that may differ from zero, by the elements of the source."""

    model_config = examples({"targets": ["loss"], "sources": ["w"], "format": "csr"})

    targets: Targets
    sources: Annotated[list[Id], Field(min_length=1, max_length=1, description="One id")]
    format: Format = "coo"
    unconnected: Unconnected = "none"
    max_bytes: ProductBytes = None
    outputs: SparseOutputs = None
    replace: Replace = False


# --------------------------------------------------------------------------------------------------- many to a request
class GradientQuestionItem(GradientQuestion):
    """A gradient question among others."""

    do: Literal["gradient"] = "gradient"


class JacobianQuestionItem(JacobianQuestion):
    """A Jacobian question among others."""

    do: Literal["jacobian"]


class BatchJacobianQuestionItem(BatchJacobianQuestion):
    """A batch Jacobian question among others."""

    do: Literal["batch_jacobian"]


class VjpsQuestionItem(VjpsQuestion):
    """A question for gradients with many output gradients, among others."""

    do: Literal["vjps"]


class HessianQuestionItem(HessianQuestion):
    """A Hessian question among others."""

    do: Literal["hessian"]


class HvpQuestionItem(HvpQuestion):
    """A Hessian-vector question among others."""

    do: Literal["hvp"]


#: The questions by the value of `do`.
ASK: dict[str, type[Body]] = {
    "gradient": GradientQuestionItem,
    "jacobian": JacobianQuestionItem,
    "batch_jacobian": BatchJacobianQuestionItem,
    "vjps": VjpsQuestionItem,
    "hessian": HessianQuestionItem,
    "hvp": HvpQuestionItem,
}


class Questions(Body):
    """Several questions to one tape, answered in order; a tape that is not persistent answers all of them."""

    model_config = examples(
        {
            "questions": [
                {"targets": ["loss"], "sources": ["w"]},
                {"targets": ["y"], "sources": ["w", "x"]},
                {
                    "do": "vjps",
                    "targets": ["y"],
                    "sources": ["w"],
                    "output_gradients": [[[1.5, 0.5, 0.5], [0.5, 0.5, 2.5]]],
                },
            ]
        }
    )

    questions: Annotated[
        list[
            Annotated[dict[str, Any], WithJsonSchema({"anyOf": [component(model.__name__) for model in ASK.values()]})]
        ],
        Field(
            min_length=1,
            description="Each the body of /gradient, or of the path that `do` names: jacobian, batch_jacobian, vjps, "
            "hessian, hvp",
        ),
    ]


# -------------------------------------------------------------------------------------------------------------- answers
class Derivative(Answer):
    """The derivative with respect to one source."""

    source: str | int
    kind: Annotated[
        Literal["none", "dense", "slices"],
        Field(description="none: the target does not depend on the source; slices: a sparse gradient"),
    ]
    id: Annotated[str | None, Field(description="The id that keeps it, if one was given")]
    value: TensorValue | None
    why: Annotated[Why | None, Field(description="Of a null: the reason; other derivatives have no such member")] = None


class Derivatives(Answer):
    """The derivatives, in the order of the sources."""

    derivatives: list[Derivative]
    bytes_in_use: int


class EstimateQuestion(Body):
    """Asks what a derivative would take, before it is computed."""

    model_config = examples({"targets": ["y"], "sources": ["w", "x"], "question": "jacobian"})

    targets: Targets
    sources: Sources
    question: Annotated[
        Literal["gradient", "jacobian", "batch_jacobian", "hessian", "hvp"], Field(description="Which derivative it is")
    ] = "gradient"
    max_bytes: MaxBytes = None


class DerivativeEstimate(Answer):
    """The cost of a derivative, estimated without computing it."""

    question: Literal["gradient", "jacobian", "batch_jacobian", "hessian", "hvp"]
    rows: Annotated[
        int, Field(description="Cotangents that go through the tape: 1 for a gradient, with which a Hessian begins")
    ]
    passes: Annotated[int, Field(description="Backward passes: one takes as many rows as fit into its memory")]
    ops: Annotated[int, Field(description="Ops that all passes run")]
    multiply_adds: Annotated[int, Field(description="Of products of matrices, convolutions and decompositions")]
    elements: Annotated[int, Field(description="That the other ops compute")]
    answer_bytes: Annotated[int, Field(description="Of the derivatives; 0: no target depends on any source")]
    peak_bytes: Annotated[int, Field(description="The most at a time in addition to the tape, answer included")]
    functions: Annotated[int, Field(description="Gradient functions of the program on the way: they are not counted")]
    seconds: Annotated[
        float | None,
        Field(description="About how long it takes on the CPU; null: on a GPU"),
    ]


class GradientNumbers(Answer):
    """A gradient in a few numbers. NaN and infinities are strings, a complex mean is a pair."""

    source: str | int
    kind: Annotated[
        Literal["none", "dense", "slices"],
        Field(description="none: the target does not depend on the source, and there are no numbers"),
    ]
    dtype: str | None = None
    shape: list[int] | None = None
    norm: Annotated[Any, Field(description="The square root of the sum of the squared magnitudes")] = None
    max_abs: Annotated[Any, Field(description="The largest magnitude")] = None
    mean: Annotated[Any, Field(description="Of the elements")] = None
    non_finite: Annotated[
        float | None, Field(description="The share of elements that are NaN or infinite, from 0 to 1")
    ] = None
    zeros: Annotated[float | None, Field(description="The share of elements that are exactly 0")] = None
    why: Annotated[Why | None, Field(description="Of a gradient that is null: the reason")] = None


class GradientsNumbers(Answer):
    """The numbers about each gradient, in the order of the sources."""

    statistics: list[GradientNumbers]


class SparsePart(Answer):
    """One of the arrays of a sparse matrix."""

    id: Annotated[str | None, Field(description="The id that keeps it, if one was given")]
    value: TensorValue


class SparseDerivative(Answer):
    """A Jacobian or Hessian as a sparse matrix: row by row, no place twice."""

    source: str | int
    kind: Annotated[Literal["none", "sparse"], Field(description="none: there is no derivative, and no further member")]
    format: Format | None = None
    shape: Annotated[list[int] | None, Field(description="Rows and columns: elements in row-major order")] = None
    entries: Annotated[int | None, Field(description="Those that may differ from zero")] = None
    index_dtype: Annotated[str | None, Field(description="Of the rows, row starts and columns")] = None
    vector_products: Annotated[int | None, Field(description="Products with vectors that the values took")] = None
    rows: Annotated[SparsePart | None, Field(description="coo: the row of each entry")] = None
    cols: Annotated[SparsePart | None, Field(description="coo: the column of each entry")] = None
    indptr: Annotated[SparsePart | None, Field(description="csr: where each row begins, and the end")] = None
    indices: Annotated[SparsePart | None, Field(description="csr: the column of each entry")] = None
    values: Annotated[SparsePart | None, Field(description="The value of each entry")] = None
    why: Annotated[Why | None, Field(description="Of a null: the reason")] = None


class SparseAnswer(Answer):
    """The sparse derivative."""

    derivative: SparseDerivative
    bytes_in_use: int


class HessianBlock(Derivative):
    """The second derivatives with respect to a pair of sources."""

    second_source: str | int


class HessianBlocks(Answer):
    """The Hessian: for each source a list with a block for each source."""

    derivatives: list[list[HessianBlock]]
    bytes_in_use: int


class QuestionResult(Answer):
    """The answer to one of several questions; for a Hessian a list of lists."""

    derivatives: list[Derivative] | list[list[HessianBlock]]


class QuestionResults(Answer):
    """The results, in the order of the questions."""

    results: list[QuestionResult]
    bytes_in_use: int
