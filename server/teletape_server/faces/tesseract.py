"""Tesseract: each published function is one (Tesseract.from_url), also for tesseract-jax and tesseract-torch.

Arrays may have one axis more in front than is declared: the question is then asked for each entry along it, as with
`map`, in one request. That is how jax.vmap asks, with vmap_method "expand_dims" or "broadcast_all".
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import orjson
from fastapi import FastAPI, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import State

import teletape_wire as wire
from teletape_engine.spec import dtype_of, elements
from teletape_engine.suggestions import with_nearest
from teletape_server.faces.applications import answering, face
from teletape_server.faces.calls import Array, Caller, off_loop
from teletape_server.faces.tesseract_document import DTYPES, FIELDS, FORMATS, differentiable, document_of
from teletape_server.handlers.bodies import validated
from teletape_server.http.negotiation import answer_type
from teletape_server.models.published.contract import Declared, Name, Published, ShapeFault, bind
from teletape_server.problems import Problem

PATH: Final = "/tesseract/{name}"
_TITLE: Final = "Tesseract"
_DESCRIPTION: Final = "A published function as a Tesseract."
_TYPES: Final = tuple([f"application/{name}" for name in FORMATS])
Names = Annotated[list[str], Field(min_length=1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    inputs: dict[str, Any]


class _Jacobian(_Body):
    jac_inputs: Names
    jac_outputs: Names


class _Jvp(_Body):
    jvp_inputs: Names
    jvp_outputs: Names
    tangent_vector: dict[str, Any]


class _Vjp(_Body):
    vjp_inputs: Names
    vjp_outputs: Names
    cotangent_vector: dict[str, Any]


_BODIES: Final[Mapping[str, type[_Body]]] = {
    "apply": _Body,
    "abstract_eval": _Body,
    "jacobian": _Jacobian,
    "jacobian_vector_product": _Jvp,
    "vector_jacobian_product": _Vjp,
}


@dataclass(frozen=True)
class _Message:
    """A request to a Tesseract.

    Attributes:
        published: The version.
        inputs: By name, of the declared dtypes; those in `map` have one axis more.
        axes: The lengths of named axes.
        map: The axis that entries lie along, for each input that has one more.
        sources: Inputs to differentiate by.
        targets: Outputs to differentiate.
        vectors: A tangent for each source, or a cotangent for each target.
    """

    published: Published
    inputs: Mapping[str, Array]
    axes: Mapping[str, int]
    map: Mapping[str, int]
    sources: Sequence[str] = ()
    targets: Sequence[str] = ()
    vectors: Sequence[Array] = ()


# ------------------------------------------------------------------------------------------------------------- reading
def _read(operation: str, published: Published, content: bytes) -> _Message:
    """Returns a request.

    Raises:
        Problem, TeletapeError: It is refused.
    """
    body: Any = validated(_BODIES[operation], wire.parse_json(content))
    declared = published.inputs
    values = {name: body.inputs[name] for name in _same(body.inputs, list(declared), "inputs")}
    if operation == "abstract_eval":
        shapes = {name: _abstract(name, value) for name, value in values.items()}
        axes, mapped = _bound(declared, shapes)
        return _Message(published, {}, axes, {name: shapes[name][0] for name in mapped})
    arrays = {name: _array(f"inputs.{name}", item, values[name]) for name, item in declared.items()}
    arrays, size = _unmapped(declared, arrays)
    axes, mapped = _bound(declared, {name: array.shape for name, array in arrays.items()})
    axis = dict.fromkeys(mapped, 0)
    if operation == "apply":
        return _Message(published, arrays, axes, axis)
    of_sources, of_targets, of_vectors = FIELDS[operation]
    sources = _chosen(getattr(body, of_sources), differentiable(declared), of_sources)
    targets = _chosen(getattr(body, of_targets), differentiable(published.outputs), of_targets)
    if of_vectors is None:
        return _Message(published, arrays, axes, axis, sources, targets)
    tensors = declared if of_vectors == "tangent_vector" else published.outputs
    names = sources if of_vectors == "tangent_vector" else targets
    values = getattr(body, of_vectors)
    vectors = []
    for name in _same(values, names, of_vectors):
        vector = _array(f"{of_vectors}.{name}", tensors[name], values[name])
        has_front = size is not None and vector.ndim == len(tensors[name].shape) + 1
        if has_front and vector.shape[0] == 1 != size:
            vector = vector[0, ...]  # one for all entries
        vectors.append(vector)
    return _Message(published, arrays, axes, axis, sources, targets, vectors)


def _same(values: Mapping[str, Any], names: Sequence[str], field: str) -> Sequence[str]:
    """Returns names that have to be those of the values."""
    for name in values:
        if name not in names:
            text = f"{field}: there is no {name!r:.100}; there are {', '.join(names)}"
            raise Problem("invalid_request", with_nearest(text, name, list(names)))
    missing = [name for name in names if name not in values]
    if missing:
        raise Problem("invalid_request", f"{field}: {', '.join(missing)} is missing")
    return names


def _chosen(names: Sequence[str], known: Sequence[str], field: str) -> Sequence[str]:
    for name in names:
        if name not in known:
            text = f"{field}: {name!r:.100} is not differentiable; {', '.join(known) or 'nothing'} is"
            raise Problem("invalid_request", with_nearest(text, name, list(known)))
    return [*dict.fromkeys(names)]


def _abstract(name: str, value: Any) -> tuple[int, ...]:
    """Returns the shape in a member of an abstract evaluation's inputs."""
    shape = value.get("shape") if isinstance(value, dict) else None
    return _shape(f"inputs.{name}", shape)


def _shape(field: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
        raise Problem("invalid_request", f"{field}: its shape is a list of lengths; found {shape!r:.60}")
    return tuple(shape)


def _array(field: str, declared: Declared, value: Any) -> Array:
    """Returns an array as the protocol has it, or numbers in lists, with the declared dtype."""
    dtype = dtype_of(declared.dtype)
    try:
        array = _decoded(field, value) if isinstance(value, dict) else np.asarray(value)
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise Problem("invalid_request", f"{field} is {declared}; found {array.dtype.name}")
        return elements(array, dtype)
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise Problem("invalid_request", f"{field} is {declared}; what came is no such array: {error}") from None


def _decoded(field: str, value: Mapping[str, Any]) -> Array:
    data, dtype = value.get("data"), value.get("dtype")
    if not isinstance(data, dict) or dtype not in DTYPES:
        known = ", ".join(DTYPES)
        raise Problem(
            "invalid_request", f"{field}: an array has shape, data and dtype, one of {known}; found {dtype!r:.60}"
        )
    shape, encoding = _shape(field, value.get("shape")), data.get("encoding")
    if encoding == "base64" and data.get("compression") is None:
        return np.frombuffer(base64.b64decode(data.get("buffer", ""), validate=True), dtype).reshape(shape)
    if encoding in ("json", "raw"):
        return elements(np.asarray(data.get("buffer")), dtype_of(dtype)).reshape(shape)
    text = f"the encoding {encoding!r:.40} with compression {data.get('compression')!r:.40} is not offered"
    raise Problem("invalid_request", f"{field}: {text}: send base64 or json, uncompressed")


def _unmapped(declared: Mapping[str, Declared], arrays: Mapping[str, Array]) -> tuple[dict[str, Array], int | None]:
    """Returns arrays, those with one entry in front that is for all without that axis; and the number of entries."""
    fronts = {name: array.shape[0] for name, array in arrays.items() if array.ndim == len(declared[name].shape) + 1}
    size = max(fronts.values(), default=None)
    return {name: array[0, ...] if fronts.get(name) == 1 != size else array for name, array in arrays.items()}, size


def _bound(
    declared: Mapping[str, Declared], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, int], Sequence[str]]:
    """Returns the lengths of named axes, and the inputs with one axis more in front.

    Raises:
        Problem: Shapes are not the declared ones.
    """
    axes: dict[str, int] = {}
    mapped = [name for name, item in declared.items() if len(shapes[name]) == len(item.shape) + 1]
    for name, item in declared.items():
        try:
            bind(axes, f"inputs.{name}", item, shapes[name][1:] if name in mapped else shapes[name])
        except ShapeFault as fault:
            raise Problem("invalid_request", str(fault)) from None
    return axes, mapped


# ----------------------------------------------------------------------------------------------------------- operations
Ask = Callable[..., Awaitable[Any]]


async def _apply(message: _Message, ask: Ask) -> Any:
    return (await ask("call")).values


async def _jacobian(message: _Message, ask: Ask) -> Any:
    sources, result = message.sources, {}
    for target in message.targets:
        answer = await ask("jacobian", targets=[target], sources=sources, unconnected="zero")
        result[target] = dict(zip(sources, answer.derivatives, strict=True))
    return result


async def _jvp(message: _Message, ask: Ask) -> Any:
    fields = {"targets": message.targets, "sources": message.sources, "tangents": message.vectors}
    answer = await ask("jvp", **fields, unconnected="zero")
    return dict(zip(message.targets, answer.derivatives, strict=True))


async def _vjp(message: _Message, ask: Ask) -> Any:
    fields = {"targets": message.targets, "sources": message.sources, "output_gradients": message.vectors}
    answer = await ask("vjp", **fields, unconnected="zero")
    return dict(zip(message.sources, answer.derivatives, strict=True))


async def _abstract_eval(message: _Message, ask: Ask) -> Any:
    entries = [max(message.map.values())] if message.map else []
    result = {}
    for name, item in message.published.outputs.items():
        known = item.lengths(message.axes)
        if None in known:
            text = f"the shape of {name} is known with its values: {item}"
            raise Problem("unimplemented", text)
        result[name] = {"shape": [*entries, *known], "dtype": item.dtype}
    return result


_OPERATIONS: Final[Mapping[str, Callable[[_Message, Ask], Awaitable[Any]]]] = {
    "apply": _apply,
    "abstract_eval": _abstract_eval,
    "jacobian": _jacobian,
    "jacobian_vector_product": _jvp,
    "vector_jacobian_product": _vjp,
}


def create(state: State) -> FastAPI:
    """Returns the face's application.

    Args:
        state: Of the server.
    """
    app = face(state, PATH, _TITLE, _DESCRIPTION, _refuse, has_document=False)
    for operation in _OPERATIONS:
        app.add_api_route(f"/{operation}", answering(_work(operation), _refuse), methods=["POST"], name=operation)

    async def health(caller: Caller, content: bytes) -> Response:
        _function(caller)
        return _json({"status": "ok"})

    async def document(caller: Caller, content: bytes) -> Response:
        return _json(document_of(*_function(caller), caller.request.scope["root_path"]))

    app.add_api_route("/health", answering(health, _refuse), name="health")
    app.add_api_route("/openapi.json", answering(document, _refuse), name="document")
    return app


def _work(operation: str) -> Callable[[Caller, bytes], Awaitable[Response]]:
    """Returns what answers an operation's body."""

    async def respond(caller: Caller, content: bytes) -> Response:
        function = _function(caller)
        kind = answer_type(caller.request.headers, (*_TYPES, wire.JSON_TYPE), _TYPES[0])
        message = await off_loop(len(content), _read, operation, function[1], content)

        async def ask(question: str, **fields: Any) -> Any:
            if message.map:
                fields["map"] = dict(message.map)
            return await caller.ask(function, question, message.inputs, **fields)

        result = await _OPERATIONS[operation](message, ask)
        return await off_loop(_size(result), _written, result, kind)

    return respond


def _function(caller: Caller) -> tuple[Name, Published]:
    """Returns the function that the path names.

    Raises:
        Problem: unknown_id: there is none, or it has tensors that the protocol has not.
    """
    name, published = caller.find(caller.request.path_params["name"])
    for tensor, item in (*published.inputs.items(), *published.outputs.items()):
        if item.dtype not in DTYPES:
            raise Problem("unknown_id", f"{tensor} is {item}, a dtype that Tesseracts do not have")
    return name, published


def _size(result: Any) -> int:
    if isinstance(result, np.ndarray):
        return result.nbytes
    return sum(map(_size, result.values())) if isinstance(result, Mapping) else 0


def _written(result: Any, kind: str) -> Response:
    """Returns an answer whose arrays are in base64 or numbers."""

    def written(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: written(member) for name, member in value.items()}
        if not isinstance(value, np.ndarray):
            return value
        if kind == _TYPES[0]:
            data = {"buffer": base64.b64encode(value.tobytes()).decode(), "encoding": "base64"}
        else:
            data = {"buffer": value.tolist(), "encoding": "json"}
        return {"object_type": "array", "shape": list(value.shape), "dtype": value.dtype.name, "data": data}

    content = orjson.dumps(written(result)) if kind == _TYPES[0] else json.dumps(written(result)).encode()
    return Response(content, media_type=kind)


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), status, media_type=wire.JSON_TYPE)


def _refuse(problem: Problem) -> Response:
    """Returns a problem; the client reads that of a wrong request as pydantic's errors."""
    status = problem.kind.status
    error = {"type": problem.code, "loc": ["body"], "msg": problem.detail, "input": None}
    response = _json({"detail": [error]} if status == 422 else {"detail": problem.detail, "code": problem.code}, status)
    response.headers.update(problem.headers)
    return response
