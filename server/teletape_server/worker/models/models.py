"""What REST bodies look like: the checks of the session's process, the schemas and the examples of the API page.

Values among them (numbers, tensors, inputs of ops) are described here and read by `teletape_wire`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from teletape_engine.ops.assign import MODES

#: How ids begin that the server makes; a caller's own cannot.
GENERATED = "_"

_NUMBER = {"type": "number"}
_WORD = {"enum": ["NaN", "Infinity", "-Infinity"]}
_LIST = {"type": "array", "items": {}, "description": "Nested lists of numbers: bool, int32 or float32 by content"}
_TENSOR = {
    "type": "object",
    "title": "Tensor",
    "required": ["data"],
    "additionalProperties": False,
    "properties": {
        "dtype": {"type": "string", "examples": ["float32"], "description": "Left out: by content"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "Left out: as nested"},
        "data": {"description": 'Nested or flat; "NaN", "Infinity", "-Infinity" as strings; complex as [re, im] pairs'},
        "encoding": {"const": "base64", "description": "`data` is the raw little-endian row-major bytes, in base64"},
    },
}
_LITERAL = {
    "type": "object",
    "title": "Number",
    "required": ["number"],
    "additionalProperties": False,
    "properties": {"number": {"anyOf": [_NUMBER, _WORD, {"type": "array", "minItems": 2, "maxItems": 2, "items": {}}]}},
}
_INTEGER_ID = {
    "type": "object",
    "title": "Integer id",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {"id": {"type": "integer", "minimum": 0}},
}
_ID = {"type": "string", "description": "An id"}

Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,127}$",
        description="Your name for it; the server's own begin with _",
    ),
]
Id = Annotated[
    Any, WithJsonSchema({"anyOf": [_ID, _INTEGER_ID], "description": "What has this id: a name, or {id: integer}"})
]
Tensor = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [_TENSOR, _LITERAL, _LIST, _NUMBER, {"type": "boolean"}], "description": "A tensor or a number"}
    ),
]
Input = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [_ID, _INTEGER_ID, _TENSOR, _LITERAL, _LIST, _NUMBER, {"type": "boolean"}],
            "description": "An id, a tensor or a number",
        }
    ),
]
Shown = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "object",
            "title": "Shown tensor",
            "properties": {
                "dtype": {"type": "string"},
                "shape": {"type": "array", "items": {"type": "integer"}},
                "data": {"description": "Nested; flat where it is not complete"},
                "complete": {
                    "const": False,
                    "description": "Only the first 1000 elements are shown: ask with full=true",
                },
                "values": {"type": "object", "description": "Of a sparse gradient: rows, beside `indices`"},
                "indices": {"type": "object", "description": "Of a sparse gradient: which rows"},
            },
            "required": ["dtype", "shape"],
        }
    ),
]


class Body(BaseModel):
    """What a caller sends: the fields that it names, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """What the server answers."""

    model_config = ConfigDict(extra="allow")


# Among the examples 2.0 does not occur: a browser writes it as 2, which is an integer tensor's.
def _examples(*examples: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": list(examples)})


# ---------------------------------------------------------------------------------------------------------- variables
class NewVariable(Body):
    """A variable to be made."""

    model_config = _examples({"id": "w", "value": [0.5, 1.5, 2.5]})

    id: Name | None = None
    value: Input
    trainable: Annotated[bool, Field(description="Tapes watch it when it is read")] = True
    name: Annotated[str | None, Field(min_length=1, max_length=200, description="A label for people")] = None


class Assignment(Body):
    """A variable's next value, or that of a part of it; shape and dtype stay."""

    model_config = _examples(
        {"value": [0.5, 0.5, 0.5], "mode": "add"}, {"value": [9.5, 8.5], "mode": "scatter_update", "indices": [2, 0]}
    )

    value: Input
    mode: Annotated[
        str,
        Field(
            description="Replace it, add to it, subtract from it; scatter_…: the rows at `indices`",
            pattern=f"^({'|'.join(MODES)})$",
            json_schema_extra={"enum": list(MODES)},
        ),
    ] = "set"
    indices: Annotated[
        Input | None,
        Field(description="Which rows (scatter_…), places (scatter_nd_…) or part (slice); left out for all of it"),
    ] = None


class Variable(Answer):
    """A variable: facts, and its numbers where one was asked for."""

    id: str | int
    kind: Literal["variable"]
    dtype: str
    shape: list[int]
    bytes: int
    trainable: bool
    version: Annotated[int, Field(description="How often it has been assigned")]
    name: str
    value: Shown | None = None


class Variables(Answer):
    """The session's variables, oldest first."""

    variables: list[Variable]


# ------------------------------------------------------------------------------------------------------------ tensors
class NewTensor(Body):
    """A tensor to be held in the session."""

    model_config = _examples({"id": "x", "value": {"dtype": "float32", "shape": [3], "data": [4, 5, 6]}})

    id: Name | None = None
    value: Tensor


class TensorFacts(Answer):
    """A value: facts, and its numbers where one was asked for."""

    id: str | int
    kind: Annotated[Literal["tensor", "slices"], Field(description="slices: a sparse gradient")]
    dtype: str
    shape: list[int]
    bytes: int
    value: Shown | None = None


class Tensors(Answer):
    """The session's values, oldest first: what was put, what ops made, gradients."""

    tensors: list[TensorFacts]


# --------------------------------------------------------------------------------------------------------- ops, tapes
class OpCall(Body):
    """One call of an op, the same everywhere: here, in functions, and (with "do": "op") in batches."""

    op: Annotated[str, Field(description="Its name; GET /v1/ops lists them")]
    inputs: list[Input] = []
    outputs: Annotated[list[Name] | None, Field(description="An id for the result; left out: a generated one")] = None
    attrs: dict[str, Any] = {}
    where: Annotated[str | None, Field(min_length=1, description="Your line, told back if it fails")] = None


class Ops(Body):
    """Ops to run, in order."""

    model_config = _examples(
        {
            "ops": [
                {"op": "add", "inputs": ["w", 1], "outputs": ["shifted"]},
                {"op": "reduce_max", "inputs": ["shifted"], "outputs": ["largest"]},
            ]
        }
    )

    ops: list[OpCall]
    fetch: Annotated[list[Id] | None, Field(description="Whose numbers to answer; left out: the last result's")] = None


class Made(Answer):
    """A value that was made."""

    id: str | int
    dtype: str
    shape: list[int]


class Results(Answer):
    """What ops or a function made."""

    made: list[Made]
    values: Annotated[dict[str, Shown], Field(description="The numbers that were asked for, by id")]
    bytes_in_use: int


class NewTape(Body):
    """A tape to be opened. It records what is posted to its /ops."""

    model_config = _examples({"id": "tape", "persistent": True, "replayable": True})

    id: Name | None = None
    persistent: Annotated[bool, Field(description="Answers more than one question")] = False
    watch_accessed: Annotated[bool, Field(description="Watches trainable variables as they are read")] = True
    replayable: Annotated[
        bool, Field(description="Keeps every input, so that check_gradients can run its calls again")
    ] = False
    parents: Annotated[
        list[Id], Field(description="Outer tapes, which record this tape's ops and gradients too: second derivatives")
    ] = []


class Tape(Answer):
    """A tape."""

    id: str | int
    kind: Literal["tape"]
    persistent: bool
    watch_accessed: bool
    parents: list[str | int]
    recording: Annotated[bool, Field(description="Some program has it open now; between REST requests it is paused")]
    consumed: Annotated[bool, Field(description="Not persistent, and has answered")]
    ops: Annotated[int, Field(description="How many calls it has recorded")]
    watched_variables: list[str]
    bytes: Annotated[int | None, Field(description="That it keeps to answer, where they were counted")] = None
    frees: Annotated[int | None, Field(description="Of those, what its end would free: nobody else holds it")] = None


class Tapes(Answer):
    """The session's tapes, oldest first."""

    tapes: list[Tape]


class Watch(Body):
    """What a tape is to follow."""

    model_config = _examples({"values": ["x"]})

    values: list[Id]


class Question(Body):
    """A question to a tape: the gradient of the targets' sum with respect to each source."""

    model_config = _examples({"targets": ["loss"], "sources": ["w", "x"]})

    targets: Annotated[list[Id], Field(min_length=1)]
    sources: list[Id]
    output_gradients: Annotated[
        list[Input | None] | None, Field(description="A weight for each target, of its shape; null: ones")
    ] = None
    unconnected: Annotated[
        Literal["none", "zero"], Field(description="What a source has that no target depends on: null, or zeros")
    ] = "none"
    outputs: Annotated[
        list[Name | None] | None, Field(description="Ids to keep the gradients under; left out: they are not kept")
    ] = None


class Derivative(Answer):
    """The gradient with respect to one source."""

    source: str | int
    kind: Annotated[Literal["none", "dense", "slices"], Field(description="none: no target depends on the source")]
    id: Annotated[str | None, Field(description="Where it is kept, if it is")]
    value: Shown | None


class Derivatives(Answer):
    """The gradients, in the order of the sources."""

    derivatives: list[Derivative]
    bytes_in_use: int


# -------------------------------------------------------------------------------------------------------- run, batches
class Batch(Body):
    """Commands in order, and ids to release behind their last mention. `teletape_wire` reads it."""

    model_config = _examples(
        {
            "commands": [
                {"do": "op", "op": "mul", "inputs": ["w", 2], "outputs": ["doubled"]},
                {"do": "fetch", "id": "doubled"},
            ],
            "release": ["doubled"],
        }
    )

    commands: Annotated[
        list[dict[str, Any]], Field(description="Each with its name under `do`; docs/protocol.md lists them")
    ]
    release: list[Id] = []
    client: Annotated[int, Field(ge=0, description="As attach gave it; 0: no client, no sequence")] = 0
    seq: Annotated[int, Field(ge=0)] = 0
    nonce: Annotated[str, Field(pattern="^([0-9a-fA-F]{32})?$")] = ""


class BatchAnswer(Answer):
    """What a batch gave, and the first command that failed, if one did."""

    results: list[dict[str, Any]]
    failure: dict[str, Any] | None
    bytes_in_use: int
    expires_at: Annotated[str | float | None, Field(description="When the session ends unless something is asked")]
    queue_seconds: Annotated[float, Field(description="Seconds before it started")]
    compute_seconds: Annotated[float, Field(description="Seconds it took")]


class Run(Body):
    """Commands for a session that lives for this request alone."""

    model_config = _examples(
        {
            "commands": [
                {"do": "variable", "id": "x", "value": 0.5},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "sin", "inputs": ["x"], "outputs": ["s"]},
                {"do": "op", "op": "mul", "inputs": ["s", "x"], "outputs": ["y"]},
                {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
            ],
            "fetch": ["y", "dx"],
        },
        {  # a Hessian-vector product, forward over reverse
            "commands": [
                {"do": "variable", "id": "x", "value": [1.5, 2.5]},
                {"do": "accumulator.open", "id": "a", "primals": ["x"], "tangents": [[0.5, 0.0]]},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "mul", "inputs": ["x", "x"], "outputs": ["xx"]},
                {"do": "op", "op": "mul", "inputs": ["xx", "x"], "outputs": ["y"]},
                {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["g"]},
                {"do": "jvp", "accumulator": "a", "targets": ["y", "g"], "outputs": ["jvp", "hvp"]},
            ],
            "fetch": ["jvp", "hvp"],
        },
        {  # a gradient of the caller's own: the pass stops, and the commands in between make it
            "commands": [
                {"do": "variable", "id": "x", "value": [3.5, 4.5]},
                {"do": "tape.open", "id": "t"},
                {"do": "op", "op": "identity", "inputs": ["x"], "outputs": ["y"]},
                {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "clipped"},
                {"do": "op", "op": "square", "inputs": ["y"], "outputs": ["loss"]},
                {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["loss"], "sources": ["x"]},
                {"do": "backward.cotangents", "id": "b", "outputs": ["dy"]},
                {"do": "op", "op": "clip_by_value", "inputs": ["dy", -7.5, 7.5], "outputs": ["dx"]},
                {"do": "backward.resume", "id": "b", "cotangents": ["dx"]},
                {"do": "backward.end", "id": "b", "outputs": ["gradient"]},
            ],
            "fetch": ["gradient"],
        },
    )

    commands: Annotated[
        list[dict[str, Any]], Field(description="Each with its name under `do`; docs/protocol.md lists them")
    ]
    fetch: Annotated[list[Id], Field(description="Whose values to answer")] = []


class RunAnswer(Answer):
    """What the commands gave."""

    values: Annotated[dict[str, Shown | None], Field(description="By id; null: a gradient that is none")]
