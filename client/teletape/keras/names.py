"""Names for layers and variables that got none, and the path of layers inside which a variable is made."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_lock: Final = threading.Lock()
_used: Final[Counter[str]] = Counter()
_open: Final[ContextVar[tuple[tuple[int, str], ...]]] = ContextVar("teletape.keras.path", default=())


def unique_name(class_name: str) -> str:
    """The class name in snake case: "dense" the first time, then "dense_1", "dense_2" and so on."""
    words = re.sub(r"\W+", "", class_name)
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", words)
    words = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
    with _lock:
        times = _used[words]
        _used[words] += 1
    return f"{words}_{times}" if times else words


def checked(name: object, *, with_type: bool = False) -> str:
    """`name`, a string without a slash; ValueError otherwise, with the type of `name` if `with_type`."""
    if isinstance(name, str) and "/" not in name:
        return name
    kind = f" (of type {type(name)})" if with_type else ""
    raise ValueError(f"Argument `name` must be a string and cannot contain character `/`. Received: name={name}{kind}")


@contextmanager
def inside(owner: object, name: str) -> Iterator[None]:
    """Variables made in this block have `name/` in their path; once, however often `owner` enters in a row."""
    path = _open.get()
    if path and path[-1][0] == id(owner):
        yield
        return
    token = _open.set((*path, (id(owner), name)))
    try:
        yield
    finally:
        _open.reset(token)


def path_of(name: str) -> str:
    """`name` after the names of the layers inside which this runs: "dense/kernel"."""
    return "/".join([*(layer for _, layer in _open.get()), name])
