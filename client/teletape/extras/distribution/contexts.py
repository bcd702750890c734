"""The strategy in effect in a thread, and whether code runs in a replica or across all replicas."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple


class Place(NamedTuple):
    """The strategy in effect, and the replica's context, or None across replicas."""

    strategy: Any
    replica: Any


class _Places(threading.local):
    """The places that a thread has entered."""

    def __init__(self) -> None:
        self.entered: list[Place] = []


class _Default:
    """The place outside all scopes."""

    place: Place | None = None
    set: Place | None = None


_places: Final = _Places()


def set_default(place: Place) -> None:
    """Sets the place where a program starts."""
    _Default.place = place


def set_global(place: Place | None) -> None:
    """Sets the place outside all scopes; None: where a program starts."""
    _Default.set = place


def current() -> Place:
    """Returns the place of the code that runs now."""
    if _places.entered:
        return _places.entered[-1]
    return _Default.set or _default()


def _default() -> Place:
    """Returns the place where a program starts."""
    if _Default.place is None:
        importlib.import_module("teletape.extras.distribution.strategy")  # it sets the default
    assert _Default.place is not None
    return _Default.place


def default_strategy() -> Any:
    """Returns the strategy of a program that has entered no scope."""
    return _default().strategy


@contextlib.contextmanager
def entered(place: Place) -> Iterator[None]:
    """A context manager in which code runs in a place."""
    _places.entered.append(place)
    try:
        yield
    finally:
        _places.entered.pop()


def get_strategy() -> Any:
    """Returns the strategy whose scope or `run` this code is in; else one that has no effect."""
    return current().strategy


def has_strategy() -> bool:
    """Whether this code is in the scope or in the `run` of a strategy that the program has made."""
    return get_strategy() is not default_strategy()


def in_cross_replica_context() -> bool:
    """Whether this code is in the scope of a strategy and outside its `run`."""
    return current().replica is None
