"""Traits of datasets: whether an iteration needs a session, and whether it is worth preparing ahead."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from teletape.tf.data.elements.leaves import Array


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts about a dataset that are known before it is iterated.

    Attributes:
        host: Whether an iteration needs no session.
        slow: Whether it is worth a thread of its own: it runs Python generators, or reads files.
        ahead: The number of elements that the program wants prepared before it uses them.
        arrays: The arrays of which its elements are rows.
    """

    host: bool = True
    slow: bool = False
    ahead: int = 0
    arrays: tuple[Array, ...] = ()

    @classmethod
    def of_all(cls, parts: Iterable[Traits]) -> Traits:
        """Returns the traits of a dataset whose elements come from several."""
        every = list(parts)
        return cls(
            host=all(part.host for part in every),
            slow=any(part.slow for part in every),
            ahead=max([part.ahead for part in every], default=0),
            arrays=tuple([array for part in every for array in part.arrays]),
        )

    def derived(self, *, host: bool) -> Traits:
        """Returns the traits after a transformation, which needs no session if `host` is true."""
        return self if host else dataclasses.replace(self, host=False, ahead=0)

    def prefetched(self, ahead: int) -> Traits:
        """Returns the traits of a dataset of which the program wants elements prepared."""
        return dataclasses.replace(self, ahead=max(ahead, self.ahead)) if self.host else self

    @property
    def in_parts(self) -> bool:
        """Whether its arrays are too large to stay on a server, so that the rows that are used are sent."""
        return any(array.is_sent_in_parts for array in self.arrays)
