"""Which published function a request names, and what its caller may do with it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from teletape_server.identity.principals import Principal
from teletape_server.models.published.contract import Name, Published
from teletape_server.problems import Problem
from teletape_server.published.pool import Pool
from teletape_server.published.store import Catalogue

Reference = Annotated[
    str,
    Path(description="Its name; name@version and name@alias name a version, else it is the latest", examples=["line"]),
]


def catalogue_of(state: Any) -> Catalogue:
    """Returns the server's published functions."""
    catalogue: Catalogue = state.catalogue
    return catalogue


def pool_of(state: Any) -> Pool:
    """Returns the processes that compute them."""
    pool: Pool = state.pool
    return pool


def visible(request: Request, principal: Principal) -> list[Name]:
    """Returns the published functions that a caller may see, by name."""
    names = catalogue_of(request.app.state).names
    return [names[name] for name in sorted(names) if principal.is_admin or names[name].is_visible(principal.owner)]


def find(request: Request, principal: Principal, reference: str) -> tuple[Name, Published]:
    """Returns the published function and the version that a path names.

    Raises:
        Problem: unknown_id: there is none that the caller may see.
    """
    return catalogue_of(request.app.state).find(principal.owner, reference, sees_all=principal.is_admin)


def find_own(request: Request, principal: Principal, text: str) -> Name:
    """Returns the published function of that name, which the caller may change.

    Raises:
        Problem: unknown_id; id_in_use: it belongs to another key.
    """
    name = catalogue_of(request.app.state).names.get(text)
    if name is None or not (principal.is_admin or name.is_visible(principal.owner)):
        find(request, principal, text)
    assert name is not None
    check_own(principal, name)
    return name


def check_own(principal: Principal, name: Name | None) -> None:
    """Checks that a caller may change what a name has.

    Raises:
        Problem: id_in_use.
    """
    if name is not None and name.owner != principal.owner and not principal.is_admin:
        raise Problem("id_in_use", f"the name {name.name!r} belongs to another key: choose another", id=name.name)
