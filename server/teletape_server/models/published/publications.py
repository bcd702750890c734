"""Bodies of /published and /published/{name}: what is published, and what is known of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.spec import DTYPES
from teletape_engine.suggestions import with_nearest
from teletape_server.models.base import Answer, Body, Input, Tensor, component, examples
from teletape_server.models.faults import BY_NAME, BY_POSITION
from teletape_server.models.functions.functions import NewFunction
from teletape_server.models.listings import Listing
from teletape_server.models.published.contract import AXIS_PATTERN
from teletape_server.models.tapes.checks import CheckReport

Length = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=AXIS_PATTERN)]
Visible = Annotated[
    Literal["me", "group", "everybody"],
    Field(description="Who may see and call it: your key, also those in `group`, or every key"),
]
Group = Annotated[list[str], Field(max_length=1000, description="Names of API keys")]
Description = Annotated[str, Field(max_length=10_000, description="For people")]


def _is_dtype(name: str) -> str:
    if name not in DTYPES:
        raise ValueError(with_nearest(f"must be one of {', '.join(DTYPES)}; found {name!r:.60}", name, DTYPES))
    return name


class InputDeclaration(Body):
    """An input that a published function takes."""

    dtype: Annotated[
        str, AfterValidator(_is_dtype), Field(description="Such as float32; numbers without a dtype take this one")
    ] = "float32"
    shape: Annotated[
        list[Length],
        Field(
            max_length=32,
            description="The length of each axis, or a name such as batch or n: an axis of any length, the same in all "
            "inputs that have it",
        ),
    ]


class PublishedExample(Body):
    """Inputs, and the outputs that they have to give."""

    inputs: Annotated[dict[str, Tensor], Field(max_length=MAX_ITEMS)]
    outputs: Annotated[
        dict[str, Tensor] | None,
        Field(description="They are compared, and the function is refused if they differ; null: they are computed"),
    ] = None
    rtol: Annotated[float, Field(ge=0, le=1, description="By how much outputs may differ, relative to them")] = 1e-3


class Publication(Body):
    """A function to publish."""

    model_config = examples(
        text={
            "function": {"text": "error = mean((x @ w - y)**2)"},
            "inputs": {"x": {"shape": ["n", 2]}, "y": {"shape": ["n"]}},
            "weights": {"w": [1.5, -0.5]},
            "visibility": "everybody",
            "description": "The mean squared error of a line",
            "examples": [{"inputs": {"x": [[0.5, 1.5], [2.5, 0.5]], "y": [0.5, 3.5]}}],
        },
        steps={
            "function": {
                "inputs": ["a", "b"],
                "steps": [{"op": "mul", "inputs": ["a", "b"], "outputs": ["product"]}],
                "outputs": ["product"],
            },
            "inputs": {"a": {"shape": ["batch"]}, "b": {"shape": ["batch"]}},
        },
    )

    function: Annotated[
        Annotated[str, Tag(BY_POSITION)] | Annotated[NewFunction, Tag(BY_NAME)],
        Discriminator(lambda value: BY_NAME if isinstance(value, dict) else BY_POSITION),
        Field(description="As POST /functions takes it; or the name of one in the session that the query names"),
    ]
    inputs: Annotated[
        dict[str, InputDeclaration], Field(max_length=MAX_ITEMS, description="What a caller gives, by name")
    ]
    weights: dict[str, Input] = Field(
        default={},
        max_length=MAX_ITEMS,
        description="The function's other inputs, by name: tensors, or ids of variables and tensors in the session",
    )
    visibility: Visible = "me"
    group: Group = Field(default=[])
    description: Description = ""
    examples: list[PublishedExample] = Field(default=[], max_length=16)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        twice = self.inputs.keys() & self.weights.keys()
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))}: an input is given by the caller, or it is a weight")
        if self.group and self.visibility != "group":
            raise ValueError("has a group, and visibility is not group")
        return self


class AliasTarget(Body):
    """What an alias is to name."""

    model_config = examples({"version": "latest"})

    version: Annotated[str, Field(description="A version, or another alias, whose version is taken now")]


# -------------------------------------------------------------------------------------------------------------- answers
class DeclaredTensor(Answer):
    """The declaration of an input, an output or a weight."""

    name: str
    dtype: str
    shape: Annotated[
        list[int | str | None],
        Field(description="Lengths; a name is an axis of any length; null: it is known with the values"),
    ]


class CheckedExample(Answer):
    """Inputs, and the outputs that they gave when the function was published."""

    inputs: dict[str, Annotated[Any, WithJsonSchema(component("TensorData"))]]
    outputs: dict[str, Annotated[Any, WithJsonSchema(component("TensorData"))]]


class PublishedVersion(Answer):
    """A version of a published function."""

    version: Annotated[str, Field(description="A hash of function, inputs and weights: it names the same for ever")]
    inputs: list[DeclaredTensor]
    outputs: list[DeclaredTensor]
    weights: list[DeclaredTensor]
    weights_bytes: int
    created_at: Annotated[str, Field(description="RFC 3339")]
    aliases: list[str]
    examples: list[CheckedExample]
    check: Annotated[
        CheckReport | None,
        Field(description="How its gradients at the first example compare with finite differences; null: no example"),
    ]
    batched: Annotated[bool, Field(description="Whether calls of several callers may be computed together")]
    why_not_batched: Annotated[str, Field(description="Empty if they may")]


class PublishedFunction(Answer):
    """A published function."""

    name: str
    owner: Annotated[str, Field(description="The name of the API key that may change it")]
    visibility: Visible
    group: Group
    description: Description
    aliases: Annotated[dict[str, str], Field(description="Versions by alias; `latest` is the newest")]
    durable: Annotated[bool, Field(description="Whether it outlives the server")]
    damage: Annotated[str, Field(description="What of it could not be read from the disk; empty: nothing")]
    version: Annotated[PublishedVersion | None, Field(description="The one that the request names; default: latest")]


class PublishedList(Listing):
    """The published functions that you may call, by name."""

    published: list[PublishedFunction]


class PublishedVersions(Answer):
    """The versions of a published function, the oldest first."""

    versions: list[PublishedVersion]


class PublishedReady(Answer):
    """A published function can be called, and a process has it loaded."""

    status: Literal["ready"]
    version: str
    processes: Annotated[int, Field(description="That compute published functions")]
