"""Listings: pages, filters, and the answer of a request that deletes several things."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from pydantic import Field

from teletape_server.models.base import Answer

T = TypeVar("T")


class Listing(Answer):
    """A page of a listing."""

    next: Annotated[
        str | None, Field(description="`after` of the next page; null: this is the last. The header Link has its URL")
    ] = None


class Deleted(Answer):
    """The ids that were deleted, and the bytes in use afterwards."""

    deleted: Annotated[list[str | int], Field(description="Ids, oldest first")]
    bytes_in_use: int


class DeletedSessions(Answer):
    """Which sessions were ended."""

    deleted: Annotated[list[str], Field(description="Ids, oldest first")]


def page(items: Sequence[T], name_of: Callable[[T], str], after: str | None, limit: int | None) -> tuple[list[T], bool]:
    """Returns the items after the one with that name, at most `limit`, and whether there are more.

    Args:
        items: In a stable order.
        name_of: Returns the name of an item.
        after: The name of one; None: from the first item on.
        limit: None: all.
    """
    first = 0 if after is None else 1 + [name_of(item) for item in items].index(after)
    end = len(items) if limit is None else first + limit
    return list(items[first:end]), end < len(items)


def next_link(path: str, selection: Mapping[str, Any], after: str) -> str:
    """Returns the header Link that leads to the next page."""
    query = {name: value for name, value in selection.items() if value is not None} | {"after": after}
    return f'<{path}?{urlencode(query)}>; rel="next"'
