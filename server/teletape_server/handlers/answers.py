"""Writes the answers of REST requests: facts and tensors as JSON, tensors as bytes, named tensors as safetensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Command, Fetch, Id
from teletape_engine.commands.results import Answer, Fetched, Kinds, SlicesArrays
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER, path_id
from teletape_server.handlers.execution import described, execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.tensor_files.answers import NamedTensor
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.tensors import raw


def tensor_values(session: Session, request: Request, ids: Iterable[Id]) -> list[Any]:
    """Returns the elements of these tensors for an answer; in JSON the first of a large one unless it wants all."""
    ids = list(ids)
    values = fetched_values(request, execute(session, request, fetches(request, ids)))
    return [values[id] for id in ids]


def fetches(request: Request, ids: Iterable[Id], *, optional: bool = False) -> list[Command]:
    """Returns the commands that fetch these tensors for an answer."""
    is_whole = request.params["full"] or request.params["accept"] == SAFETENSORS_TYPE
    elements = None if is_whole else wire.PREVIEW
    return [Fetch(id, elements, optional) for id in ids]


def fetched_values(request: Request, answer: Answer) -> dict[Id, Any]:
    """Returns the elements that an answer fetched, by id: as JSON, or as arrays for a safetensors answer."""
    if request.params["accept"] == SAFETENSORS_TYPE:
        return {result.id: _arrays(result) for result in answer.results if isinstance(result, Fetched)}
    written = wire.answer_to_json(answer, full=request.params["full"], unwritten=True)["results"]
    pairs = zip(answer.results, written, strict=True)
    return {result.id: body["value"] for result, body in pairs if isinstance(result, Fetched)}


def _arrays(fetched: Fetched) -> Any:
    """Returns a tensor's array; for a sparse gradient what JSON has, with its two arrays."""
    array = fetched.array
    if not isinstance(array, SlicesArrays):
        return array
    facts = {"dtype": array.dense.dtype.name, "shape": list(array.dense.shape)}
    return facts | {"values": array.values, "indices": array.indices}


def derivative_entry(
    kinds: Kinds, position: int, source: Id, value: Any, *, id: Id | None = None, **more: Any
) -> dict[str, Any]:
    """Returns one derivative as answers have it; a null carries `why` there is none.

    Args:
        kinds: The result of the command that computed it.
        position: Its number among the command's derivatives.
        source: What it is the derivative by.
        value: Its elements as JSON; None: it does not exist.
        id: The caller's id that keeps it.
        **more: Further members.
    """
    entry = {"source": source, "kind": kinds.kinds[position], "id": id, "value": value, **more}
    why = kinds.why[position] if kinds.why else None
    return entry if why is None else entry | {"why": why}


def facts_result(session: Session, request: Request, id: Id) -> Result:
    """Returns the facts about what an id names."""
    return json_result(session.describe(id), bytes_in_use=session.estimated_bytes())


def created_result(session: Session, request: Request, facts: Mapping[str, Any]) -> Result:
    """Returns the facts about something new, with its URL in the header Location."""
    headers = {"Location": f"{request.params['collection']}/{facts['id']}"}
    return json_result(facts, bytes_in_use=session.estimated_bytes(), headers=headers)


def value_result(session: Session, request: Request, facts: dict[str, Any]) -> Result:
    """Returns the facts with the elements, or the elements alone as bytes with dtype and shape in headers.

    Raises:
        InvalidArgumentError: The bytes of a sparse gradient, which has two arrays.
    """
    if request.params["accept"] != RAW_TYPE:
        [value] = tensor_values(session, request, [facts["id"]])
        return json_result(facts | {"value": named(facts["id"], value)})
    [fetched] = execute(session, request, [Fetch(facts["id"])]).results
    assert isinstance(fetched, Fetched)
    if isinstance(fetched.array, SlicesArrays):
        raise InvalidArgumentError(
            f"{facts['id']!r} is a sparse gradient, which has two arrays: ask for JSON, or make it dense with the op "
            "identity first"
        )
    body = raw(fetched.array)
    shape = ",".join(map(str, fetched.spec.shape))
    headers = {DTYPE_HEADER: fetched.spec.dtype.name, SHAPE_HEADER: shape}
    return Result(RAW_TYPE, [body], len(body), {"headers": headers})


def with_values(session: Session, request: Request, listing: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Returns the facts about tensors or variables; for a safetensors answer with the elements of each under its id."""
    if request.params["accept"] != SAFETENSORS_TYPE:
        return listing
    values = tensor_values(session, request, [facts["id"] for facts in listing])
    return [facts | {"value": named(facts["id"], value)} for facts, value in zip(listing, values, strict=True)]


def named(id: Id, value: Any) -> Any:
    """Returns a tensor's elements under its id in place of their place in the answer."""
    if isinstance(value, np.ndarray):
        return NamedTensor(str(id), value)
    if isinstance(value, dict) and isinstance(value.get("values"), np.ndarray):  # a sparse gradient
        return value | {part: NamedTensor(f"{id}/{part}", value[part]) for part in ("values", "indices")}
    return value


def deleted_result(session: Session, request: Request, collection: str) -> Result:
    """Releases the id in the path; the answer has no body."""
    id = path_id(request.params["id"])
    described(session, id, collection)
    execute(session, request, (), releases=(id,))
    return Result("", [], 0, {"bytes_in_use": session.estimated_bytes()})  # counted anew: a tape's end may free much
