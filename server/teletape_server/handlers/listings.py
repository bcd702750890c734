"""What the listings of a session's collections share: filters, pages, and the deletion of what a filter selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from teletape_engine.commands import Id
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import with_values
from teletape_server.handlers.bodies import InvalidRequestError, path_id
from teletape_server.handlers.execution import COLLECTIONS, described, execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.models.listings import next_link

Facts = dict[str, Any]


def listing(
    session: Session, request: Request, collection: str, complete: Callable[[Facts], Facts] | None = None
) -> Result:
    """Returns a page of a collection.

    Args:
        session: The session.
        request: The request; `selection` has its filters and its page.
        collection: tensors, variables, tapes or functions.
        complete: Adds to the facts of each thing of the page what takes time to find out.

    Raises:
        UnknownIdError, ReleasedIdError: `after` names nothing of the collection.
    """
    selection = request.params["selection"]
    after = selection.get("after")
    if after is not None:
        described(session, path_id(after), collection)
    things = _everything(session, collection)
    first = 0 if after is None else 1 + [str(fact["id"]) for fact in things].index(after)
    limit = selection.get("limit")
    matching = [fact for fact in things[first:] if _matches(fact, selection)]
    facts = with_values(session, request, matching[:limit])
    has_more = limit is not None and len(matching) > limit
    following = str(facts[-1]["id"]) if has_more else None
    body = {collection: facts if complete is None else [complete(fact) for fact in facts], "next": following}
    headers = {} if following is None else {"Link": next_link(request.params["collection"], selection, following)}
    return json_result(body, headers=headers)


def delete_several(session: Session, request: Request, collection: str) -> Result:
    """Releases the things that the request names or that its filters select; ids that name nothing are skipped.

    Raises:
        InvalidRequestError: The request selects nothing, or both by id and otherwise.
        UnknownIdError: An id is not in the collection; then nothing is released.
    """
    selection = request.params["selection"]
    names, everything = selection.get("id"), selection.get("all")
    if sum((names is not None, bool(_filters(selection)), bool(everything))) != 1:
        raise InvalidRequestError(
            "say what to delete: id (it may repeat), or filters such as prefix, or all=true; found "
            + (", ".join(name for name, value in selection.items() if value not in (None, False)) or "none of them")
        )
    things = _everything(session, collection)
    if names is None:
        deleted: list[Id] = [fact["id"] for fact in things if everything or _matches(fact, selection)]
    else:
        wanted = dict.fromkeys(map(path_id, names))
        for id in wanted:
            if session.names(id):
                described(session, id, collection)
        deleted = [fact["id"] for fact in things if fact["id"] in wanted]
    execute(session, request, (), releases=deleted)
    bytes_in_use = session.estimated_bytes()
    return json_result({"deleted": deleted, "bytes_in_use": bytes_in_use}, bytes_in_use=bytes_in_use)


def _everything(session: Session, collection: str) -> list[Facts]:
    """Returns the facts about everything of a collection, oldest first."""
    return session.listing(*[kind for kind, name in COLLECTIONS.items() if name == collection])


def _filters(selection: Mapping[str, Any]) -> list[str]:
    return [name for name in ("prefix", "kind", "dtype") if selection.get(name) is not None]


def _matches(fact: Facts, selection: Mapping[str, Any]) -> bool:
    """Returns whether a thing passes the filters."""
    prefix = selection.get("prefix")
    return (prefix is None or str(fact["id"]).startswith(prefix)) and all(
        selection.get(name) in (None, fact.get(name)) for name in ("kind", "dtype")
    )
