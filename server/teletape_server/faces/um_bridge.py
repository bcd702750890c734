"""UM-Bridge: models of uncertainty quantification (umbridge.HTTPModel), https://um-bridge-benchmarks.readthedocs.io.

A model is a published function whose tensors are floats. Each input and each output is one flat list of numbers, row by
row. An axis with a name has the length that the request's `config` gives it; that of a vector is seen in the input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from fastapi import FastAPI, Response
from pydantic import BaseModel
from starlette.datastructures import State

import teletape_wire as wire
from teletape_engine.spec import DIFFERENTIABLE, dtype_of, elements
from teletape_engine.suggestions import with_nearest
from teletape_server.faces.applications import answering, face
from teletape_server.faces.calls import Answer, Array, Caller, off_loop
from teletape_server.faces.um_bridge_bodies import (
    ApplyHessian,
    ApplyJacobian,
    Derivative,
    Evaluate,
    Gradient,
    Info,
    InputSizes,
    Model,
    ModelInfo,
    Outputs,
    OutputSizes,
)
from teletape_server.handlers.bodies import validated
from teletape_server.models.published.contract import LATEST, Declared, Name, Published
from teletape_server.problems import Problem

PATH: Final = "/umbridge"
_VERSION: Final = 1.0
_TITLE: Final = "UM-Bridge"
_DESCRIPTION: Final = "Published functions as models of UM-Bridge."
#: The protocol's names of problems; others have the server's codes.
_TYPES: Final = {
    "unknown_id": "ModelNotFound",
    "invalid_request": "InvalidInput",
    "invalid_argument": "InvalidInput",
    "no_gradient_registered": "UnsupportedFeature",
    "unimplemented": "UnsupportedFeature",
}


@dataclass(frozen=True)
class _Message:
    """A request about a model.

    Attributes:
        caller: Who sent it.
        function: The model.
        body: The request's body.
        axes: The lengths of named axes, as far as they are known.
    """

    caller: Caller
    function: tuple[Name, Published]
    body: Any
    axes: Mapping[str, int]

    @property
    def published(self) -> Published:
        return self.function[1]

    def inputs(self) -> dict[str, Array]:
        """Returns the inputs as arrays of their declared shapes."""
        declared = self.published.inputs
        if len(self.body.input) != len(declared):
            raise Problem(
                "invalid_request", f"input has {len(self.body.input)} lists; the inputs are {_list(declared)}"
            )
        return {
            name: self.array(f"input[{number}]", item, self.body.input[number])
            for number, (name, item) in enumerate(declared.items())
        }

    def array(self, field: str, declared: Declared, numbers: Sequence[float]) -> Array:
        """Returns a flat list as an array of its declared shape."""
        shape = self.shape(field, declared)
        if math.prod(shape) != len(numbers):
            raise Problem(
                "invalid_request",
                f"{field} has {len(numbers)} numbers; {declared} has {math.prod(shape)}, the product of {list(shape)}",
            )
        return elements(np.asarray(numbers, np.float64), dtype_of(declared.dtype)).reshape(shape)

    def shape(self, field: str, declared: Declared) -> tuple[int, ...]:
        """Returns a shape whose named axes have lengths."""
        known = [length for length in declared.lengths(self.axes) if length is not None]
        if len(known) == len(declared.shape):
            return tuple(known)
        missing = [str(axis) for axis in declared.shape if isinstance(axis, str) and axis not in self.axes]
        example = json.dumps(dict.fromkeys(missing, 100))
        raise Problem(
            "invalid_request", f"{field} is {declared}: say how long {', '.join(missing)} is: config={example}"
        )

    def output(self) -> str:
        """Returns the name of the output that is differentiated."""
        return _numbered("outWrt", self.body.outWrt, list(self.published.outputs))

    def input(self, field: str) -> str:
        """Returns the name of an input that is differentiated by."""
        return _numbered(field, getattr(self.body, field), list(self.published.inputs))


@dataclass(frozen=True)
class _Question:
    """A question to the function that is a model.

    Attributes:
        question: One of `models.published.questions.QUESTIONS`.
        inputs: By name.
        fields: Of its body.
    """

    question: str
    inputs: Mapping[str, Array]
    fields: Mapping[str, Any] = field(default_factory=dict)


def _evaluate(message: _Message) -> _Question:
    return _Question("call", message.inputs())


def _gradient(message: _Message) -> _Question:
    output, source = message.output(), message.input("inWrt")
    sens = message.array("sens", message.published.outputs[output], message.body.sens)
    return _Question("vjp", message.inputs(), {"targets": [output], "sources": [source], "output_gradients": [sens]})


def _apply_jacobian(message: _Message) -> _Question:
    output, source = message.output(), message.input("inWrt")
    vec = message.array("vec", message.published.inputs[source], message.body.vec)
    return _Question("jvp", message.inputs(), {"targets": [output], "sources": [source], "tangents": [vec]})


def _apply_hessian(message: _Message) -> _Question:
    output, first, second = message.output(), message.input("inWrt1"), message.input("inWrt2")
    inputs = message.inputs()
    vectors = {first: np.zeros_like(inputs[first])}
    vectors[second] = message.array("vec", message.published.inputs[second], message.body.vec)
    sens = message.array("sens", message.published.outputs[output], message.body.sens)
    fields = {"targets": [output], "sources": [*vectors], "vectors": [*vectors.values()], "output_gradients": [sens]}
    return _Question("hvp", inputs, fields)


def _input_sizes(message: _Message) -> list[int]:
    return _sizes(message, message.published.inputs)


def _output_sizes(message: _Message) -> list[int]:
    return _sizes(message, message.published.outputs)


def _model_info(message: _Message) -> dict[str, bool]:
    published = message.published
    has_derivative = published.check is not None or not published.examples  # no example: it is not known
    return {"Evaluate": True} | dict.fromkeys(("Gradient", "ApplyJacobian", "ApplyHessian"), has_derivative)


def _sizes(message: _Message, declared: Mapping[str, Declared]) -> list[int]:
    return [math.prod(message.shape(name, item)) for name, item in declared.items()]


_OPERATIONS: Final[Sequence[tuple[str, type[Model], type[BaseModel], str, Callable[[_Message], Any]]]] = (
    ("/ModelInfo", Model, ModelInfo, "Say what a model answers", _model_info),
    ("/InputSizes", Model, InputSizes, "Return the sizes of a model's inputs", _input_sizes),
    ("/OutputSizes", Model, OutputSizes, "Return the sizes of a model's outputs", _output_sizes),
    ("/Evaluate", Evaluate, Outputs, "Evaluate a model", _evaluate),
    ("/Gradient", Gradient, Derivative, "Compute sens times a Jacobian", _gradient),
    ("/ApplyJacobian", ApplyJacobian, Derivative, "Compute a Jacobian times a vector", _apply_jacobian),
    ("/ApplyHessian", ApplyHessian, Derivative, "Compute a Hessian times a vector", _apply_hessian),
)


def create(state: State) -> FastAPI:
    """Returns the face's application.

    Args:
        state: Of the server.
    """
    app = face(state, PATH, _TITLE, _DESCRIPTION, _refuse)

    async def info(caller: Caller, content: bytes) -> Response:
        models = [reference for name in caller.names() for reference in _references(name)]
        return _json({"protocolVersion": _VERSION, "models": models})

    app.add_api_route(
        "/Info",
        answering(info, _refuse),
        name="Info",
        summary="List the models",
        description="Lists what your key may call.",
        responses={200: {"model": Info}},
    )
    for path, body, answer, summary, work in _OPERATIONS:
        app.add_api_route(
            path,
            answering(_work(body, answer, work), _refuse),
            methods=["POST"],
            name=path[1:],
            summary=summary,
            description=body.__doc__ or "",
            responses={200: {"model": answer}},
            openapi_extra={
                "requestBody": {"required": True, "content": {wire.JSON_TYPE: {"schema": body.model_json_schema()}}}
            },
        )
    return app


def _work(
    body: type[Model], answer: type[BaseModel], work: Callable[[_Message], Any]
) -> Callable[[Caller, bytes], Awaitable[Response]]:
    """Returns what answers an operation's body."""
    [member] = answer.model_fields

    async def respond(caller: Caller, content: bytes) -> Response:
        fields = await off_loop(len(content), _read, body, content)
        function = _model(caller, fields.name)
        message = _Message(caller, function, fields, _axes(function[1], fields))
        result = await off_loop(len(content), work, message)
        if not isinstance(result, _Question):
            return _json({member: result})
        if result.question == "call":
            reply = await caller.ask(function, "call", result.inputs)
            return await off_loop(reply.size, _outputs, reply, list(function[1].outputs))
        reply = await caller.ask(function, result.question, result.inputs, unconnected="zero", **result.fields)
        return await off_loop(reply.size, _derivative, reply)

    return respond


def _read(body: type[Model], content: bytes) -> Model:
    return validated(body, wire.parse_json(content))


def _outputs(reply: Answer, names: Sequence[str]) -> Response:
    values = reply.values
    return _json({"output": [_flat(values[name]) for name in names]})


def _derivative(reply: Answer) -> Response:
    return _json({"output": _flat(reply.derivatives[0])})


def _flat(array: Array) -> Any:
    return array.astype(np.float64).ravel().tolist()


def _model(caller: Caller, reference: str) -> tuple[Name, Published]:
    """Returns the function that is a model.

    Raises:
        Problem: unknown_id.
    """
    name, published = caller.find(reference)
    if not _is_model(published):
        text = (
            f"{reference} has tensors that are no floats, or an output of an unknown length: GET /Info lists the models"
        )
        raise Problem("unknown_id", text)
    return name, published


def _is_model(published: Published) -> bool:
    tensors = [*published.inputs.values(), *published.outputs.values()]
    are_floats = all(
        dtype_of(item.dtype) in DIFFERENTIABLE and not item.dtype.startswith("complex") for item in tensors
    )
    return are_floats and all(axis is not None for item in tensors for axis in item.shape)


def _references(name: Name) -> list[str]:
    """Returns what a client may call a function's versions: it names no model that is not in the list."""
    versions = {f"{name.name}@{alias}": version for alias, version in name.aliases.items()}
    versions[name.name] = versions.pop(f"{name.name}@{LATEST}", "")
    versions |= {f"{name.name}@{version}": version for version in name.versions}
    return sorted(reference for reference, version in versions.items() if version and _is_model(name.versions[version]))


def _axes(published: Published, fields: Any) -> dict[str, int]:
    """Returns the lengths of named axes: what `config` says, else as long as the vectors are."""
    inputs = published.inputs
    names = sorted({axis for item in inputs.values() for axis in item.shape if isinstance(axis, str)})
    for name in fields.config:
        if name not in names:
            text = f"config.{name:.100} is no named axis; {published.version} has {', '.join(names) or 'none'}"
            raise Problem("invalid_request", with_nearest(text, name, names))
    axes = dict(fields.config)
    for item, vector in zip(inputs.values(), getattr(fields, "input", ()), strict=False):
        if len(item.shape) == 1 and isinstance(item.shape[0], str):
            axes.setdefault(item.shape[0], len(vector))
    return axes


def _numbered(field: str, number: int, names: Sequence[str]) -> str:
    if number >= len(names):
        raise Problem("invalid_request", f"{field} is {number}; the last one is {len(names) - 1} ({names[-1]})")
    return names[number]


def _list(declared: Mapping[str, Declared]) -> str:
    return ", ".join(f"{name}: {item}" for name, item in declared.items())


def _json(value: Any, status: int = 200) -> Response:
    """Returns an answer; infinities and NaN are written as Python's JSON has them, since the protocol has no others."""
    return Response(json.dumps(value).encode(), status, media_type=wire.JSON_TYPE)


def _refuse(problem: Problem) -> Response:
    kind = _TYPES.get(problem.code, problem.code)
    status = 400 if problem.code in _TYPES else problem.kind.status
    response = _json({"error": {"type": kind, "message": problem.detail}}, status)
    response.headers.update(problem.headers)
    return response
