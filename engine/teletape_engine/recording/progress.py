"""How far a batch is, and whether it goes on: asked and told between commands, and between the trips of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from teletape_engine.errors import CancelledError, ResourceExhaustedError


class Progress(Protocol):
    """Told how far a batch is."""

    def __call__(self, done: int, total: int, trip: int = 0, trips: int = 0) -> None:
        """Commands done and in all; trips that the loop in the next one has taken and will take in all (0: unknown)."""


def no_progress(done: int, total: int, trip: int = 0, trips: int = 0) -> None:
    """Tells nobody."""


class Watch:
    """Asks whether a batch goes on, and tells how far it is.

    Attributes:
        most_trips: Trips that the loops of one command may take; None: no limit.
    """

    def __init__(self, most_trips: int | None = None) -> None:
        self.most_trips = most_trips
        self.begin(lambda: False, no_progress, 0)

    def begin(self, cancelled: Callable[[], bool], progress: Progress, total: int) -> None:
        """A batch of `total` commands."""
        self._cancelled, self._progress = cancelled, progress
        self._done, self._total = 0, total
        self._taken = 0

    def command(self, done: int) -> None:
        """`done` commands are: says so."""
        self._done = done
        self._progress(done, self._total)

    def loops(self, done: int) -> None:
        """A command that may have loops comes next, after `done` others."""
        self._done, self._taken = done, 0

    def look(self) -> None:
        """Between steps of a program.

        Raises:
            CancelledError: The caller wants it stopped.
        """
        if self._cancelled():
            raise CancelledError("the batch was cancelled by its caller, in a program")

    def expect(self, trips: int) -> None:
        """A loop is about to take so many trips.

        Raises:
            ResourceExhaustedError: With those taken so far they are more than the command's loops may take.
        """
        if self.most_trips is not None and self._taken + trips > self.most_trips:
            raise ResourceExhaustedError(
                f"the loops of one command may take {self.most_trips:,} trips here, and this one would take {trips:,}"
                f"{f' behind {self._taken:,} of others' if self._taken else ''}: take it in several commands",
                trips=self._taken + trips,
                limit=self.most_trips,
            )

    def trip(self, taken: int, trips: int = 0) -> None:
        """A loop has taken so many trips, of so many in all (0: not known), and is about to take another.

        Raises:
            CancelledError: The caller wants it stopped.
            ResourceExhaustedError: The command's loops have taken more trips than they may.
        """
        self._taken += 1
        if self.most_trips is not None and self._taken > self.most_trips:
            raise ResourceExhaustedError(
                f"the loops of one command may take {self.most_trips:,} trips here, and this one goes on: does its "
                "condition ever become false? Give maximum_iterations, or take the loop in several commands",
                trips=self._taken,
                limit=self.most_trips,
            )
        self._progress(self._done, self._total, taken, trips)
        if self._cancelled():
            raise CancelledError(f"the batch was cancelled by its caller, in a loop after {taken:,} trips")
