"""What questions to a tape look like, beside the gradient: their bodies, answers and examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from teletape_server.worker.models.models import Answer, Body, Derivative, Id, Input, Name


def examples(example: dict[str, Any]) -> ConfigDict:
    """The model's configuration with its example."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [example]})


Unconnected = Annotated[
    Literal["none", "zero"],
    Field(description="What stands where the target does not depend on the source: null, zeros"),
]
MaxBytes = Annotated[
    int | None,
    Field(
        ge=1,
        description="Bytes that cotangents on their way may take; left out: 64 MiB, or what the session has left",
    ),
]
Targets = Annotated[list[Id], Field(min_length=1, description="Their sum is differentiated")]
Sources = Annotated[list[Id], Field(min_length=1)]
Single = Annotated[list[Id], Field(min_length=1, max_length=1, description="Exactly one")]
Outputs = Annotated[
    list[Name | None] | None, Field(description="Ids to keep the answers under; left out: they are not kept")
]


class JacobianQuestion(Body):
    """The derivative of each element of one target by each element of each source: shape [target, source]."""

    model_config = examples({"targets": ["y"], "sources": ["w", "x"]})

    targets: Single
    sources: Sources
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Outputs = None


class BatchJacobianQuestion(Body):
    """The Jacobian of each example, for a target [b, …] and a source [b, …] of which example i alone makes target i."""

    model_config = examples({"targets": ["squares"], "sources": ["points"]})

    targets: Single
    sources: Single
    max_bytes: MaxBytes = None
    outputs: Annotated[list[Name | None] | None, Field(max_length=1, description="An id to keep the answer under")] = (
        None
    )


class VjpsQuestion(Body):
    """Gradients for many output gradients at once: shape [k, source] for stacks of shape [k, target]."""

    model_config = examples(
        {"targets": ["y"], "sources": ["w"], "output_gradients": [[[1.5, 0.5, 0.5], [0.5, 0.5, 2.5]]]}
    )

    targets: Targets
    sources: Sources
    output_gradients: Annotated[
        list[Input | None], Field(description="A stack for each target, all of one length; null: ones")
    ]
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Outputs = None


class HessianQuestion(Body):
    """The second derivatives of the targets' sum: a block of shape [source i, source j] for each pair of sources."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"], "unconnected": "zero"})

    targets: Targets
    sources: Sources
    unconnected: Unconnected = "none"
    max_bytes: MaxBytes = None
    outputs: Annotated[
        list[list[Name | None]] | None,
        Field(description="For each source a list with an id for each source; left out: the blocks are not kept"),
    ] = None


class HvpQuestion(Body):
    """The Hessian of the targets' sum times a vector, which has a part for each source: about two gradients."""

    model_config = examples({"targets": ["loss"], "sources": ["w", "x"], "vectors": [[1.5, 0.5, 0.5], [0.5, 0.5, 0.5]]})

    targets: Targets
    sources: Sources
    vectors: Annotated[list[Input], Field(description="The vector's part for each source, of its shape")]
    unconnected: Unconnected = "none"
    outputs: Outputs = None


class Questions(Body):
    """Several questions to one tape, answered in order; one that is not persistent answers them all."""

    model_config = examples(
        {
            "questions": [
                {"targets": ["loss"], "sources": ["w"]},
                {"targets": ["y"], "sources": ["w", "x"]},
                {
                    "ask": "vjps",
                    "targets": ["y"],
                    "sources": ["w"],
                    "output_gradients": [[[1.5, 0.5, 0.5], [0.5, 0.5, 2.5]]],
                },
            ]
        }
    )

    questions: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1,
            description="Each the body of /gradient, or, with its name under `ask`, of /jacobian, /batch_jacobian, "
            "/vjps, /hessian or /hvp",
        ),
    ]


class Jacobians(Answer):
    """The Jacobians, in the order of the sources."""

    derivatives: list[Derivative]
    bytes_in_use: int


class Products(Answer):
    """The products, in the order of the sources."""

    derivatives: list[Derivative]
    bytes_in_use: int


class Blocks(Answer):
    """The Hessian: a row for each source, with a block for each source."""

    derivatives: list[list[Derivative]]
    bytes_in_use: int


class Answers(Answer):
    """The answers, in the order of the questions, each as that question alone has it."""

    results: list[dict[str, Any]]
    bytes_in_use: int
