"""Bodies of the questions to a published function: those to a session's function, without ids of a session.

They are made of the models of those, so each field is written once.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Results, Tensor, examples
from teletape_server.models.faults import BY_NAME, BY_POSITION
from teletape_server.models.functions import function_questions as questions
from teletape_server.models.functions.functions import FunctionCall
from teletape_server.models.session.ops import OpResults
from teletape_server.models.tapes.checks import CheckReport

#: Fields that name things of a session, or say what of a result stays in it.
_OF_SESSIONS: Final = ("outputs", "remainder", "accumulate", "tape", *Results.model_fields)

Inputs = Annotated[
    Annotated[list[Tensor], Field(max_length=MAX_ITEMS), Tag(BY_POSITION)]
    | Annotated[dict[str, Tensor], Field(max_length=MAX_ITEMS), Tag(BY_NAME)],
    Discriminator(lambda value: BY_NAME if isinstance(value, dict) else BY_POSITION),
    Field(description="By name, or in the order of the declared inputs; weights are not among them"),
]
Exact = Annotated[bool, Field(description="Compute this call by itself, so that no other call changes its last bits")]
#: The fields that have ids in a session's questions: here they have names and tensors alone.
_OWN: Final[dict[str, Any]] = {
    "sources": Annotated[
        list[str],
        Field(
            max_length=MAX_ITEMS,
            description="Inputs or weights to differentiate by; default: all declared inputs of floats",
        ),
    ],
    "fetch": Annotated[
        list[str],
        Field(
            max_length=MAX_ITEMS,
            description="Names of outputs to return in `values`; default: all where the "
            "question is for the outputs, else none",
        ),
    ],
    "output_gradients": Annotated[
        list[Tensor | None],
        Field(max_length=MAX_ITEMS, description="A weight for each target, of its shape; null: ones"),
    ],
    "vectors": Annotated[
        list[Tensor], Field(max_length=MAX_ITEMS, description="The vector's part for each source, of its shape")
    ],
    "tangents": Annotated[
        list[Tensor], Field(max_length=MAX_ITEMS, description="The direction of each source, of its shape")
    ],
}


class BatchFacts(Answer):
    """How a call was computed."""

    size: Annotated[int, Field(description="Calls that were computed together with it, itself among them")]
    waited_us: Annotated[int, Field(description="Microseconds between its arrival and the start of its computation")]
    why: Annotated[
        Literal["alone", "exact", "together", "different", "unbatchable"],
        Field(
            description="alone: no other call waited; exact: as it was asked; together: in one computation; different: "
            "those that waited have other shapes or fields; unbatchable: the function or the question has no such form"
        ),
    ]


class Asked(NamedTuple):
    """A question to a published function.

    Attributes:
        body: The model of its body.
        original: The model of the same question to a session's function.
        answer: The model of its answer.
        summary, description: For the API page.
    """

    body: type[BaseModel]
    original: type[BaseModel]
    answer: type[BaseModel]
    summary: str
    description: str


def _body(original: type[BaseModel], name: str, example: dict[str, Any]) -> type[BaseModel]:
    """Returns the model of a question without what names things of a session."""
    fields: dict[str, Any] = {"inputs": (Inputs, ...)}
    for field, info in original.model_fields.items():
        if field in _OF_SESSIONS or field in fields:
            continue
        annotation: Any = _OWN.get(field, info.annotation)
        about = [] if field in _OWN else [Field(description=info.description), *info.metadata]
        annotation = annotation if info.is_required() or field not in _OWN else annotation | None
        fields[field] = (
            Annotated[(annotation, *about)] if about else annotation,
            ... if info.is_required() else info.default,
        )
    fields["exact"] = (Exact, False)
    model: type[BaseModel] = create_model(name, __base__=Body, __doc__=original.__doc__, **fields)
    model.model_config = examples(example)
    model.model_rebuild(force=True)
    return model


@cache
def _answer(original: type[BaseModel]) -> type[BaseModel]:
    """Returns the model of an answer, with how it was computed."""
    batch: Any = (Annotated[BatchFacts, Field(description="How it was computed")], ...)
    return create_model(f"Published{original.__name__}", __base__=original, __doc__=original.__doc__, batch=batch)


_INPUTS: Final = {"x": [[0.5, 1.5], [2.5, 0.5]], "y": [0.5, 3.5]}
_VECTOR: Final = [[1.5, 0.5], [0.5, -0.5]]
_TABLE: Final[tuple[tuple[str, type[BaseModel], type[BaseModel], str, str, dict[str, Any]], ...]] = (
    (
        *("call", FunctionCall, OpResults, "Call a published function"),
        *("Computes the outputs, or those that `fetch` names.", {"inputs": _INPUTS}),
    ),
    (
        *("value_and_gradient", questions.ValueAndGradientQuestion, questions.FunctionDerivatives),
        "Compute a published function's outputs and gradients",
        "Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass.",
        {"inputs": _INPUTS},
    ),
    (
        *("gradient", questions.FunctionGradientQuestion, questions.FunctionDerivatives),
        "Compute a published function's gradients",
        "Computes the gradient of the targets' sum with respect to each source.",
        {"inputs": _INPUTS, "sources": ["x"]},
    ),
    (
        *("vjp", questions.FunctionVjpQuestion, questions.FunctionDerivatives),
        "Compute a published function's vector-Jacobian products",
        "Computes the output gradients times the Jacobian, with respect to each source.",
        {"inputs": _INPUTS, "output_gradients": [0.5]},
    ),
    (
        *("jvp", questions.FunctionJvpQuestion, questions.FunctionTangents),
        "Compute a published function's Jacobian-vector products",
        "Computes the derivative of each target along the tangents, in forward mode.",
        {"inputs": _INPUTS, "sources": ["x"], "tangents": [_VECTOR]},
    ),
    (
        *("jacobian", questions.FunctionJacobianQuestion, questions.FunctionDerivatives),
        "Compute a published function's Jacobians",
        "Computes the Jacobian of one output with respect to each source.",
        {"inputs": _INPUTS, "sources": ["x"]},
    ),
    (
        *("hessian", questions.FunctionHessianQuestion, questions.FunctionHessian),
        "Compute a published function's Hessian",
        "Computes the second derivatives of the targets' sum, a block for each pair of sources.",
        {"inputs": _INPUTS, "sources": ["y"]},
    ),
    (
        *("hvp", questions.FunctionHvpQuestion, questions.FunctionDerivatives),
        "Compute a published function's Hessian-vector products",
        "Computes the Hessian of the targets' sum times a vector at the cost of two gradients.",
        {"inputs": _INPUTS, "sources": ["x"], "vectors": [_VECTOR]},
    ),
    (
        *("check", questions.FunctionCheck, CheckReport, "Check a published function's gradients"),
        "Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`.",
        {"inputs": _INPUTS, "settings": {"entries": 4}},
    ),
)
#: The questions to a published function by their names in its path.
QUESTIONS: Final[dict[str, Asked]] = {
    name: Asked(
        _body(original, f"Published{''.join(map(str.capitalize, name.split('_')))}Question", example),
        original,
        _answer(answer),
        summary,
        description,
    )
    for name, original, answer, summary, description, example in _TABLE
}
