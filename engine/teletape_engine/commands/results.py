"""What a batch answers: a result for each command that has one, and the failures."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.commands.base import Id
from teletape_engine.records import record
from teletape_engine.spec import Spec


class SlicesArrays(NamedTuple):
    """The arrays of a fetched sparse gradient.

    Attributes:
        values: [n, ...].
        indices: [n].
        dense: The spec of the dense array.
    """

    values: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    dense: Spec


@record(frozen=True, slots=True)
class Fetched:
    """A tensor's numbers. If it is not `complete`, the array has only the first elements, flat."""

    index: int
    id: Id
    array: np.ndarray[Any, Any] | SlicesArrays
    spec: Spec
    complete: bool


@record(frozen=True, slots=True)
class Kinds:
    """The structure of a derivative command's answer: none, dense or slices for each result.

    Attributes:
        index: The position of the command in the batch.
        kinds: Of the results.
        why: If the batch is explained and a result is none: for each result the reason as `Explanation.brief`, None for
            one that exists. Not sent in frames: an SDK explains by itself.
    """

    index: int
    kinds: tuple[str, ...]
    why: tuple[dict[str, Any] | None, ...] = ()


@record(frozen=True, slots=True)
class Specs:
    """The specs of outputs that only the values determine."""

    index: int
    specs: tuple[Spec, ...]


@record(frozen=True, slots=True)
class Facts:
    """JSON-able facts; NaN and infinities are strings."""

    index: int
    facts: dict[str, Any]


Result: TypeAlias = Fetched | Kinds | Specs | Facts  #: `index` is the position of its command in the batch.


@record(frozen=True, slots=True)
class Failure:
    """The first command of a batch, or of a strand in it, that failed. What earlier commands did stays done.

    Attributes:
        index: The position of the command in the batch.
        code: The error's code.
        message: What was wrong, and what to do.
        op: The op that failed, if there is one.
        where: Its call site, if the caller sent it.
        details: Further facts about the error.
    """

    index: int
    code: str
    message: str
    op: str | None
    where: str | None
    details: dict[str, Any]


@record(frozen=True, slots=True)
class Answer:
    """What a batch answers: results in the order of its commands.

    Attributes:
        results: The results.
        failure: The first failure; None: every command was executed.
        bytes_in_use: Bytes of the session's arrays after the batch.
        further_failures: The first failure in each other strand that has one, in order.
    """

    results: tuple[Result, ...]
    failure: Failure | None
    bytes_in_use: int
    further_failures: tuple[Failure, ...] = ()

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The first failure in each strand that has one, in order."""
        return () if self.failure is None else (self.failure, *self.further_failures)
