"""What a batch answers: fetched numbers, structure that only values tell, and the first failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.commands.base import Id
from teletape_engine.spec import Spec


class SlicesArrays(NamedTuple):
    """A fetched sparse gradient: values [n, ...], indices [n], and the spec of the array they stand for."""

    values: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    dense: Spec


@dataclass(frozen=True, slots=True)
class Fetched:
    """A value's numbers. `complete` False: only the first elements, flat."""

    index: int
    id: Id
    array: np.ndarray[Any, Any] | SlicesArrays
    spec: Spec
    complete: bool


@dataclass(frozen=True, slots=True)
class Kinds:
    """The structure of a gradient command's answer: none, dense or slices for each source."""

    index: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Specs:
    """The specs of results whose shapes depend on values."""

    index: int
    specs: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """An answer in words and numbers: a JSON object, with NaN and infinities as strings."""

    index: int
    facts: dict[str, Any]


Result: TypeAlias = Fetched | Kinds | Specs | Facts


@dataclass(frozen=True, slots=True)
class Failure:
    """The first command of a batch that failed. What stood before it stands; values after it were not made.

    `versions` tells the version of every variable, so that the caller knows which assignments happened.
    """

    index: int
    code: str
    message: str
    op: str | None
    where: str | None
    details: dict[str, Any]
    versions: dict[Id, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a batch gave."""

    results: tuple[Result, ...]
    failure: Failure | None
    bytes_in_use: int
