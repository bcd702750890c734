"""The Open Inference Protocol (KServe v2), for the clients of KServe and Triton, with tensors in JSON or as bytes.

A model is a published function. Its derivatives are outputs: `gradient:x` is the gradient by the input or weight x of
the sum of the outputs of floats, in the same request as their values. An input `gradient:y` weights the output y: then
the sum is that of the weighted outputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.datastructures import State

import teletape_wire as wire
from teletape_engine.spec import DIFFERENTIABLE, dtype_of, elements
from teletape_engine.suggestions import with_nearest
from teletape_server import version
from teletape_server.faces.applications import answering, face
from teletape_server.faces.calls import Array, Caller, off_loop
from teletape_server.faces.kserve_bodies import (
    Health,
    Infer,
    Inferred,
    InputTensor,
    ModelMetadata,
    Ready,
    ServerMetadata,
)
from teletape_server.handlers.bodies import validated
from teletape_server.models.published.contract import Declared, Name, Published
from teletape_server.problems import Problem
from teletape_server.routes.published.access import pool_of

PATH: Final = "/v2"
_TITLE: Final = "Open Inference Protocol"
_DESCRIPTION: Final = "Published functions as models of the Open Inference Protocol (KServe v2)."
_HEADER: Final = "inference-header-content-length"
_BYTES_TYPE: Final = "application/octet-stream"
#: Before the name of an input or output in that of its gradient.
GRADIENT: Final = "gradient:"
_DATATYPES: Final = {
    "bool": "BOOL",
    **{f"int{bits}": f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
}


# ------------------------------------------------------------------------------------------------------------- requests
@dataclass(frozen=True)
class _Message:
    """A request for outputs.

    Attributes:
        body: Its JSON.
        inputs: By name.
        weights: Of outputs, by name; empty: no output has one.
        outputs: Those to return, with whether their elements are to follow as bytes.
    """

    body: Infer
    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]
    outputs: Sequence[tuple[str, bool]]

    def question(self, published: Published) -> tuple[str, dict[str, Any]]:
        """Returns the question, and its fields."""
        fields: dict[str, Any] = {"fetch": [name for name, _ in self.outputs if not name.startswith(GRADIENT)]}
        if self.body.parameters.exact:
            fields["exact"] = True
        sources = self.sources()
        if not sources:
            return "call", fields
        if self.weights:
            fields |= {"targets": [*self.weights], "output_gradients": [*self.weights.values()]}
        else:
            fields["targets"] = [name for name, item in published.outputs.items() if _is_float(item)]
        return "value_and_gradient", fields | {"sources": sources, "unconnected": "zero"}

    def sources(self) -> list[str]:
        """Returns the sources of the gradients among the outputs, each once."""
        names = [name.removeprefix(GRADIENT) for name, _ in self.outputs if name.startswith(GRADIENT)]
        return [*dict.fromkeys(names)]


def _read(published: Published, header: str | None, content: bytes) -> _Message:
    """Returns a request.

    Raises:
        Problem, TeletapeError: It is refused.
    """
    length = len(content) if header is None else int(header) if header.isdecimal() else -1
    if not 0 <= length <= len(content):
        raise Problem("invalid_request", f"{_HEADER} is {header!r:.40}, and the body has {len(content)} bytes")
    body = validated(Infer, wire.parse_json(content[:length]))
    known = {
        **published.inputs,
        **{GRADIENT + name: item for name, item in published.outputs.items() if _is_float(item)},
    }
    arrays: dict[str, Array] = {}
    position = length
    for tensor in body.inputs:
        declared = known[_known(tensor.name, list(known), "input")]
        size = tensor.parameters.binary_data_size
        part = None if size is None else memoryview(content)[position : position + size]
        position += size or 0
        arrays[tensor.name] = _array(tensor, declared, part)
    if position != len(content):
        text = f"the inputs have {position - length} bytes after the JSON, the body has {len(content) - length}"
        raise Problem("invalid_request", text)
    missing = [name for name in published.inputs if name not in arrays]
    if missing:
        raise Problem("invalid_request", f"the input {', '.join(missing)} is missing")
    weights = {name.removeprefix(GRADIENT): arrays[name] for name in arrays if name not in published.inputs}
    inputs = {name: arrays[name] for name in published.inputs}
    return _Message(body, inputs, weights, _outputs(published, body))


def _outputs(published: Published, body: Infer) -> list[tuple[str, bool]]:
    default = body.parameters.binary_data_output
    if not body.outputs:
        return [(name, default) for name in published.outputs]
    tensors = {**published.inputs, **published.weights}
    known = [*published.outputs, *[GRADIENT + name for name, item in tensors.items() if _is_float(item)]]
    outputs = []
    for output in body.outputs:
        binary = output.parameters.binary_data
        outputs.append((_known(output.name, known, "output"), default if binary is None else binary))
    return outputs


def _array(tensor: InputTensor, declared: Declared, part: memoryview | None) -> Array:
    """Returns an input as an array; `part` are its elements if they followed the JSON."""
    datatype = _DATATYPES[declared.dtype]
    if tensor.datatype != datatype:
        raise Problem("invalid_request", f"{tensor.name} is {datatype}: {declared}; found {tensor.datatype:.20}")
    dtype = dtype_of(declared.dtype)
    try:
        flat = elements(np.asarray(tensor.data), dtype) if part is None else np.frombuffer(part, dtype)
        return flat.reshape(tensor.shape)
    except (ValueError, TypeError, OverflowError) as error:
        text = f"{tensor.name} has the shape {tensor.shape}, and its elements do not: {error}"
        raise Problem("invalid_request", text) from None


def _known(name: str, names: Sequence[str], kind: str) -> str:
    if name not in names:
        text = f"there is no {kind} {name!r:.100}; there are {', '.join(names)}"
        raise Problem("invalid_request", with_nearest(text, name, list(names)))
    return name


def _is_float(declared: Declared) -> bool:
    return dtype_of(declared.dtype) in DIFFERENTIABLE and declared.dtype in _DATATYPES


# -------------------------------------------------------------------------------------------------------------- answers
def _written(head: dict[str, Any], outputs: Sequence[tuple[str, bool]], arrays: Mapping[str, Array]) -> Response:
    """Returns an answer: JSON, and after it the elements of outputs that are to be bytes."""
    parts: list[bytes] = []
    entries = []
    for name, is_binary in outputs:
        array = arrays[name]
        entry: dict[str, Any] = {"name": name, "datatype": _DATATYPES[array.dtype.name], "shape": list(array.shape)}
        if is_binary:
            parts.append(array.tobytes())
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = array.ravel().tolist()
        entries.append(entry)
    text = json.dumps(head | {"outputs": entries}).encode()
    if not parts:
        return Response(text, media_type=wire.JSON_TYPE)
    return Response(b"".join([text, *parts]), 200, {_HEADER: str(len(text))}, _BYTES_TYPE)


def _metadata(name: Name, published: Published) -> dict[str, Any]:
    def described(prefix: str, tensors: Mapping[str, Declared]) -> list[dict[str, Any]]:
        return [
            {
                "name": prefix + tensor,
                "datatype": _DATATYPES[item.dtype],
                "shape": [-1 if length is None else length for length in item.lengths({})],
            }
            for tensor, item in tensors.items()
        ]

    sources = {tensor: item for tensor, item in published.inputs.items() if _is_float(item)}
    return {
        "name": name.name,
        "versions": [*name.versions, *name.aliases],
        "platform": "teletape",
        "inputs": described("", published.inputs),
        "outputs": [*described("", published.outputs), *described(GRADIENT, sources)],
    }


# ----------------------------------------------------------------------------------------------------------- operations
async def _infer(caller: Caller, content: bytes) -> Response:
    """Computes outputs, and gradients in the same request. Requests of several callers may be computed together."""
    name, published = function = _model(caller)
    message = await off_loop(len(content), _read, published, caller.request.headers.get(_HEADER), content)
    question, fields = message.question(published)
    answer = await caller.ask(function, question, message.inputs, **fields)
    arrays = answer.values
    if question != "call":
        gradients = zip(message.sources(), answer.derivatives, strict=True)
        arrays |= {GRADIENT + source: derivative for source, derivative in gradients}
    batch = answer.batch
    head = {
        "model_name": name.name,
        "model_version": published.version,
        "id": message.body.id,
        "parameters": {"batch_size": batch["size"], "batch_why": batch["why"], "waited_us": batch["waited_us"]},
    }
    return await off_loop(answer.size, _written, head, message.outputs, arrays)


async def _model_metadata(caller: Caller, content: bytes) -> Response:
    """Returns the names, datatypes and shapes of a model's inputs and outputs; gradients are among the outputs."""
    return _json(_metadata(*_model(caller)))


async def _model_ready(caller: Caller, content: bytes) -> Response:
    """Answers as soon as a process has loaded the model."""
    name, published = _model(caller)
    await pool_of(caller.request.app.state).ready(published)
    return _json({"name": name.name, "ready": True})


async def _server_metadata(caller: Caller, content: bytes) -> Response:
    """Returns the server's name, version and extensions."""
    return _json({"name": "teletape", "version": version(), "extensions": ["binary_tensor_data"]})


async def _live(request: Request) -> Response:
    """Says that the server runs."""
    return _json({"live": True})


async def _ready(request: Request) -> Response:
    """Says that the server answers."""
    return _json({"ready": True})


def create(state: State) -> FastAPI:
    """Returns the face's application.

    Args:
        state: Of the server.
    """
    app = face(state, PATH, _TITLE, _DESCRIPTION, _refuse, models=(Infer,))
    app.add_api_route("/health/live", _live, summary="Is the server live?", responses=_answer(Health))
    app.add_api_route("/health/ready", _ready, summary="Is the server ready?", responses=_answer(Health))
    model, versioned = "/models/{model}", "/models/{model}/versions/{version}"
    reads: tuple[tuple[str, Any, type[BaseModel], str], ...] = (
        ("/", _server_metadata, ServerMetadata, "Describe the server"),
        (model, _model_metadata, ModelMetadata, "Describe a model"),
        (versioned, _model_metadata, ModelMetadata, "Describe a version of a model"),
        (f"{model}/ready", _model_ready, Ready, "Is a model ready?"),
        (f"{versioned}/ready", _model_ready, Ready, "Is a version of a model ready?"),
    )
    for path, work, answer, summary in reads:
        app.add_api_route(
            path,
            answering(work, _refuse),
            summary=summary,
            description=work.__doc__,
            responses=_answer(answer),
            openapi_extra=_parameters(path),
        )
    app.add_api_route(PATH, answering(_server_metadata, _refuse), include_in_schema=False)  # without the last slash
    body = {"schema": {"$ref": "#/components/schemas/Infer"}}
    request_body = {"requestBody": {"required": True, "content": {wire.JSON_TYPE: body, _BYTES_TYPE: {}}}}
    for path in (model, versioned):
        app.add_api_route(
            f"{path}/infer",
            answering(_infer, _refuse),
            methods=["POST"],
            summary="Compute outputs and gradients",
            description=_infer.__doc__ or "",
            responses=_answer(Inferred),
            openapi_extra=request_body | _parameters(path),
        )
    return app


def _answer(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model}}


def _parameters(path: str) -> dict[str, Any]:
    """Returns the parameters of a path as the document has them."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    return {"parameters": parameters} if parameters else {}


def _model(caller: Caller) -> tuple[Name, Published]:
    """Returns the function that the path names.

    Raises:
        Problem: unknown_id: there is none, or it has tensors that the protocol has not.
    """
    path = caller.request.path_params
    version = path.get("version")
    name, published = caller.find(path["model"] if version is None else f"{path['model']}@{version}")
    for tensor, item in (*published.inputs.items(), *published.outputs.items()):
        if item.dtype not in _DATATYPES:
            raise Problem("unknown_id", f"{tensor} is {item}, a datatype that the protocol does not have")
    return name, published


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value).encode(), status, media_type=wire.JSON_TYPE)


def _refuse(problem: Problem) -> Response:
    response = _json({"error": problem.detail, "code": problem.code}, problem.kind.status)
    response.headers.update(problem.headers)
    return response
