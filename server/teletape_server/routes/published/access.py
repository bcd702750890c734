"""Which published function a request names, and what its caller may do with it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from teletape_engine.suggestions import with_nearest
from teletape_server.http.access import is_admin
from teletape_server.models.published.contract import LATEST, Name, Published, split_reference
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


def visible(request: Request, owner: str) -> list[Name]:
    """Returns the published functions that a caller may see, by name."""
    names = catalogue_of(request.app.state).names
    return [names[name] for name in sorted(names) if is_admin(request, owner) or names[name].is_visible(owner)]


def find(request: Request, owner: str, reference: str) -> tuple[Name, Published]:
    """Returns the published function and the version that a path names.

    Raises:
        Problem: unknown_id: there is none that the caller may see.
    """
    return found_in(catalogue_of(request.app.state), owner, reference, sees_all=is_admin(request, owner))


def found_in(catalogue: Catalogue, owner: str, reference: str, *, sees_all: bool = False) -> tuple[Name, Published]:
    """Returns what a reference names; see `find`."""
    text, version = split_reference(reference)
    name = catalogue.names.get(text)
    if name is None or not (sees_all or name.is_visible(owner)):
        names = [item.name for item in catalogue.visible(owner)]
        message = f"no function is published as {text!r:.140}, or it is not for your key (GET /v1/published)"
        raise Problem("unknown_id", with_nearest(message, text, names), id=text[:140])
    published = name.version(version)
    if published is None:
        if version == LATEST and name.damage:
            raise Problem("internal", f"the published function {text} cannot be read: {name.damage}")
        known = [*name.aliases, *name.versions]
        message = f"the published function {text} has no version or alias {version!r:.140}"
        raise Problem("unknown_id", with_nearest(message, version, known), id=reference[:280], known=known[:20])
    return name, published


def find_own(request: Request, owner: str, text: str) -> Name:
    """Returns the published function of that name, which the caller may change.

    Raises:
        Problem: unknown_id; id_in_use: it belongs to another key.
    """
    name = catalogue_of(request.app.state).names.get(text)
    if name is None or not (is_admin(request, owner) or name.is_visible(owner)):
        find(request, owner, text)
    assert name is not None
    check_own(request, owner, name)
    return name


def check_own(request: Request, owner: str, name: Name | None) -> None:
    """Checks that a caller may change what a name has.

    Raises:
        Problem: id_in_use.
    """
    if name is not None and name.owner != owner and not is_admin(request, owner):
        raise Problem("id_in_use", f"the name {name.name!r} belongs to another key: choose another", id=name.name)
