"""Writes the answers of REST requests: facts and tensors as JSON, and tensors as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import teletape_wire as wire
from teletape_engine.commands import Command, Fetch, Id
from teletape_engine.commands.results import Answer, Fetched, Kinds, SlicesArrays
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER, path_id
from teletape_server.worker.execution import described, execute
from teletape_server.worker.methods import Request, Result, json_result
from teletape_wire.tensors import raw


def tensor_values(session: Session, request: Request, ids: Iterable[Id]) -> list[Any]:
    """Returns the elements of these tensors as JSON; the first ones of a large tensor unless the request wants all."""
    ids = list(ids)
    values = fetched_values(request, execute(session, request, fetches(request, ids)))
    return [values[id] for id in ids]


def fetches(request: Request, ids: Iterable[Id], *, optional: bool = False) -> list[Command]:
    """Returns the commands that fetch these tensors for an answer in JSON."""
    elements = None if request.params["full"] else wire.PREVIEW
    return [Fetch(id, elements, optional) for id in ids]


def fetched_values(request: Request, answer: Answer) -> dict[Id, Any]:
    """Returns the elements that an answer fetched, as JSON, by id."""
    written = wire.answer_to_json(answer, full=request.params["full"])["results"]
    pairs = zip(answer.results, written, strict=True)
    return {result.id: body["value"] for result, body in pairs if isinstance(result, Fetched)}


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
    return json_result(session.describe(id), bytes_in_use=session.bytes_in_use())


def created_result(session: Session, request: Request, facts: Mapping[str, Any]) -> Result:
    """Returns the facts about something new, with its URL in the header Location."""
    headers = {"Location": f"{request.params['collection']}/{facts['id']}"}
    return json_result(facts, bytes_in_use=session.bytes_in_use(), headers=headers)


def value_result(session: Session, request: Request, facts: dict[str, Any]) -> Result:
    """Returns the facts with the elements as JSON, or the elements as bytes with dtype and shape in headers.

    Raises:
        InvalidArgumentError: The bytes of a sparse gradient, which has two arrays.
    """
    if request.params["accept"] != RAW_TYPE:
        [value] = tensor_values(session, request, [facts["id"]])
        return json_result(facts | {"value": value})
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


def deleted_result(session: Session, request: Request, collection: str) -> Result:
    """Releases the id in the path; the answer has no body."""
    id = path_id(request.params["id"])
    described(session, id, collection)
    execute(session, request, (), releases=(id,))
    return Result("", [], 0, {"bytes_in_use": session.bytes_in_use()})  # counted anew: a tape's end may free much
