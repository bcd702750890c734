"""Between HTTP bodies and the engine: JSON and raw tensors read into commands, answers written, failures raised."""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

import teletape_wire as wire
from teletape_engine.commands import Batch, Command, Fetch, Id
from teletape_engine.commands.results import Answer, Fetched, SlicesArrays
from teletape_engine.errors import BadCommandError, InvalidArgumentError, TeletapeError, UnknownIdError, tree
from teletape_engine.session.session import Session
from teletape_engine.spec import BOOL, dtype_of
from teletape_server.worker.methods import Request, Result, json_result
from teletape_server.worker.models.models import GENERATED
from teletape_wire.tensors import MAX_DIMS, raw

RAW_TYPE: Final = "application/octet-stream"
DTYPE_HEADER: Final = "Tensor-Dtype"
SHAPE_HEADER: Final = "Tensor-Shape"
_MORE: Final = 5  # further faults of a body that a message tells

Model = TypeVar("Model", bound=BaseModel)


class InvalidRequestError(TeletapeError):
    """A body or header with a part missing, unknown or of the wrong kind."""

    code = "invalid_request"


# ------------------------------------------------------------------------------------------------------------ reading
def read(request: Request, model: type[Model]) -> Model:
    """The body as `model`. A raw tensor is its `value`, and the query its other fields.

    Raises:
        MalformedJsonError: No JSON.
        InvalidRequestError: Not what the model asks for, or a raw tensor without dtype and shape.
    """
    query = {name: value for name, value in request.params.get("query", {}).items() if value is not None}
    if request.content_type == RAW_TYPE:
        given = query | {"value": _raw_tensor(request)}
    elif query:
        raise InvalidRequestError(
            f"{', '.join(query)} in the query belong to a raw tensor; in JSON they are fields of the body"
        )
    else:
        given = request.json()
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError, *path: str | int) -> InvalidRequestError:
    """What is wrong with a body, or with the part of it under `path`."""
    faults = [
        {"where": ".".join(map(str, (*path, *one["loc"]))) or "body", "what": one["msg"], "kind": one["type"]}
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ][:_MORE]
    return InvalidRequestError("; ".join(f"{one['where']}: {one['what']}" for one in faults), fields=faults)


def _raw_tensor(request: Request) -> np.ndarray[Any, Any]:
    """The array that the body is, a view of it where it is large."""
    said = request.params["dtype"], request.params["shape"]
    if None in said:
        raise InvalidRequestError(
            f"a raw tensor needs the headers {DTYPE_HEADER} (such as float32) and {SHAPE_HEADER} (such as 2,3; empty "
            f"for a scalar); found {DTYPE_HEADER}: {said[0]!r}, {SHAPE_HEADER}: {said[1]!r}"
        )
    dtype, text = dtype_of(said[0]), said[1].strip()
    lengths = text.split(",") if text else []
    if not all(one.strip().isdecimal() for one in lengths) or len(lengths) > MAX_DIMS:
        raise InvalidRequestError(
            f"{SHAPE_HEADER} has at most {MAX_DIMS} lengths with commas between them, such as 2,3; found {text!r:.80}"
        )
    shape = tuple(map(int, lengths))
    needed, found = math.prod(shape) * dtype.itemsize, len(request.body)
    if needed != found:
        raise InvalidRequestError(f"{dtype.name}{list(shape)} takes {needed} bytes, the body has {found}")
    flat = np.frombuffer(request.body, np.uint8)
    if dtype is BOOL and found and flat.max() > 1:
        raise InvalidRequestError(f"dtype bool has the bytes 0 and 1 alone, found {flat.max()}")
    try:
        array = (flat.copy() if found < request.copy_below else flat).view(dtype).reshape(shape)
    except ValueError:
        raise InvalidRequestError(f"no array can have the shape {list(shape)}") from None
    array.flags.writeable = False
    return array


def path_id(text: str) -> Id:
    """The id in a path: digits are one of the integers that programs use, all else is a name."""
    return int(text) if text.isascii() and text.isdecimal() else text


def new_id() -> str:
    """An id of the server's own making."""
    return GENERATED + secrets.token_hex(6)


def commands_of(given: Sequence[Mapping[str, Any]]) -> tuple[Command, ...]:
    """Commands from their JSON form.

    Raises:
        BadCommandError, MalformedJsonError: As `wire.batch_from_json`.
    """
    return wire.batch_from_json({"commands": list(given)}).commands


def command_of(verb: str, /, **fields: Any) -> Command:
    """The command with these fields in their JSON form; None for one that is left out, arrays as they are."""
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in fields.items() if value is not None} | dict.fromkeys(arrays, 0)
    try:
        made = commands_of([{"do": verb, **plain}])[0]
    except (BadCommandError, wire.MalformedJsonError) as error:
        raise type(error)(error.message.removeprefix("command 0: ")) from None
    return dataclasses.replace(made, **arrays)  # type: ignore[type-var]  # every command is a dataclass


def ids_of(given: Iterable[Any]) -> tuple[Id, ...]:
    """Ids from their JSON form: names, or {"id": integer}."""
    return tuple([command_of("fetch", id=one).id for one in given])  # type: ignore[attr-defined]  # a Fetch


# ---------------------------------------------------------------------------------------------------------- executing
def execute(
    session: Session,
    request: Request,
    todo: Sequence[Command],
    *,
    releases: Sequence[Id] = (),
    ahead: int = 0,
    several: bool = False,
) -> Answer:
    """Runs commands as one batch; ids that a failure leaves without a value stay free.

    Args:
        session: Where.
        request: Who asks, and may cancel.
        todo: The commands.
        releases: Ids that end at their last mention.
        ahead: How many of the commands are not the caller's own, but stand before them.
        several: Whether a failure has to tell which of the caller's commands it was.

    Raises:
        TeletapeError: The first command that failed; those before it stand.
    """
    batch = Batch(tuple(todo), tuple(releases))
    answer = session.execute(batch, cancelled=request.cancelled, progress=request.progress, poison=False)
    failure = answer.failure
    if failure is None:
        return answer
    details = {**failure.details, "op": failure.op, "where": failure.where}
    message = failure.message
    if several:
        details["command"] = failure.index - ahead
        message = f"command {failure.index - ahead}: {message}"
    kinds = tree()
    raise kinds.get(failure.code, kinds["internal"])(message, **{k: v for k, v in details.items() if v is not None})


def described(session: Session, name: Id, kinds: Sequence[str], where: str) -> dict[str, Any]:
    """The facts of what has the id.

    Raises:
        UnknownIdError, ReleasedIdError, PoisonedError: Nothing has it.
        UnknownIdError: It is of another kind; the message tells where that is found.
    """
    facts = session.describe(name)
    if facts["kind"] not in kinds:
        raise UnknownIdError(
            f"the id {name!r} is none of the {where}: it is under {_FOUND[facts['kind']]}/{name}", id=name
        )
    return facts


_FOUND: Final = {
    "tensor": "tensors",
    "slices": "tensors",
    "variable": "variables",
    "tape": "tapes",
    "function": "functions",
}


def release(session: Session, request: Request, kinds: Sequence[str], where: str) -> Result:
    """Ends the id that the path names."""
    name = path_id(request.params["id"])
    described(session, name, kinds, where)
    execute(session, request, (), releases=(name,))
    return Result("", [], 0, {"bytes_in_use": session.bytes_in_use()})  # counted: a tape's end may free much


# ------------------------------------------------------------------------------------------------------------ writing
def shown(session: Session, request: Request, names: Iterable[Id]) -> list[Any]:
    """The numbers of these ids as JSON, of large ones the first elements unless the request asks for all."""
    full = request.params["full"]
    fetches = [Fetch(name, None if full else wire.PREVIEW) for name in names]
    answer = execute(session, request, fetches)
    return [one["value"] for one in wire.answer_to_json(answer, full=full)["results"]]


def facts_result(
    session: Session, request: Request, facts: Mapping[str, Any], *, collection: str | None = None
) -> Result:
    """The facts as an answer; with its address if it is new."""
    headers = {} if collection is None else {"Location": f"{collection}/{facts['id']}"}
    return json_result(facts, bytes_in_use=session.bytes_in_use(), headers=headers)


def value_result(session: Session, request: Request, facts: dict[str, Any]) -> Result:
    """The facts with the numbers as JSON, or the numbers alone as raw bytes with dtype and shape in headers.

    Raises:
        InvalidArgumentError: Raw bytes of a sparse gradient, which has two arrays.
    """
    if request.params["accept"] != RAW_TYPE:
        [value] = shown(session, request, [facts["id"]])
        return json_result(facts | {"value": value})
    [found] = execute(session, request, [Fetch(facts["id"])]).results
    assert isinstance(found, Fetched)
    if isinstance(found.array, SlicesArrays):
        raise InvalidArgumentError(
            f"{facts['id']!r} is a sparse gradient, rows and their indices: ask for JSON, or make it dense with the op "
            "identity first"
        )
    body = raw(found.array)
    shape = ",".join(map(str, found.spec.shape))
    return Result(RAW_TYPE, [body], len(body), {"headers": {DTYPE_HEADER: found.spec.dtype.name, SHAPE_HEADER: shape}})
