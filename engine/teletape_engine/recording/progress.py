"""Progress of a batch, and its cancellation: checked between commands, and inside long ones between their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from teletape_engine.catalogue.binding import TapeCall
from teletape_engine.catalogue.op import Work
from teletape_engine.errors import CancelledError, DeadlineExceededError, ResourceExhaustedError


class Progress(Protocol):
    """Receives the progress of a batch."""

    def __call__(self, done: int, total: int, iteration: int = 0, iterations: int = 0) -> None:
        """Reports commands done and in all, and iterations of the running loop: done, and in all (0: unknown)."""


def no_progress(done: int, total: int, iteration: int = 0, iterations: int = 0) -> None:
    """Ignores the progress."""


class TimeBudget(Protocol):
    """The time that a batch has, and how long work takes: known to a host alone, since the engine has no clock.

    Attributes:
        limit: Seconds in all.
    """

    limit: float

    def left(self) -> float:
        """Returns the seconds that are left."""

    def seconds(self, work: Work) -> float:
        """Returns the seconds that the work takes at least."""


CANCEL_STEPS: Final = 64  #: Steps of a long command between two checks for a cancel.


def never_cancelled() -> None:
    """Checks nothing: this computation cannot be cancelled."""


class Monitor:
    """Reports the progress of a batch, and checks whether it is cancelled.

    Attributes:
        most_iterations: Iterations that the loops of one command may take; None: no limit.
        step_times: What the times of functions' steps are noted in, until the next batch; None: they are not noted.
        done: Commands of the batch that are done.
    """

    step_times: Any = None

    def __init__(self, most_iterations: int | None = None) -> None:
        self.most_iterations = most_iterations
        self.begin(lambda: False, no_progress, 0)

    def begin(
        self, cancelled: Callable[[], bool], progress: Progress, total: int, budget: TimeBudget | None = None
    ) -> None:
        """Starts a batch of `total` commands."""
        self._cancelled, self._progress, self._budget = cancelled, progress, budget
        self.done, self._total = 0, total
        self._taken, self._iteration = 0, (0, 0, 0)  # of which command, done, in all
        self.step_times = None

    def command(self, done: int) -> None:
        """Reports that `done` commands are done."""
        self.done = done
        self._progress(done, self._total)

    def loops(self, done: int) -> None:
        """Starts a command that may have loops, after `done` others."""
        self.done, self._taken, self._iteration = done, 0, (done, 0, 0)

    def check_cancelled(self) -> None:
        """Raises if the batch is to stop; called between the steps of a long command.

        Raises:
            CancelledError: The caller wants it stopped.
        """
        if self._cancelled():
            raise CancelledError("the batch was cancelled, inside a command")

    def look(self) -> None:
        """Reports progress, and raises if the batch is to stop; called before work that takes a millisecond or more.

        Raises:
            CancelledError: The caller wants it stopped.
        """
        of, taken, iterations = self._iteration
        self._progress(self.done, self._total, *((taken, iterations) if of == self.done else ()))
        self.check_cancelled()

    def admit_work(self, call: TapeCall, times: int = 1) -> None:
        """Reports progress; raises if the batch is to stop, or too little time is left for `times` of a long call.

        Raises:
            CancelledError: The caller wants it stopped.
            DeadlineExceededError: The call would take longer than the time that is left.
        """
        self.look()
        if self._budget is None or call.work is None:
            return
        seconds, left = times * self._budget.seconds(call.work), self._budget.left()
        if seconds > left:
            shapes = ", ".join(map(repr, call.specs))
            raise DeadlineExceededError(
                f"op {call.name!r} on {shapes} would compute for {seconds:.2g} s or more, and {max(left, 0.0):.2g} s "
                f"are left of the {self._budget.limit:g} s that a request has here: split it into smaller ops, and "
                "these into several requests",
                op=call.name,
                seconds=seconds,
                left=left,
                limit=self._budget.limit,
            )

    def expect(self, iterations: int) -> None:
        """A loop is about to take `iterations`.

        Raises:
            ResourceExhaustedError: With those taken so far they are more than the command's loops may take.
        """
        if self.most_iterations is not None and self._taken + iterations > self.most_iterations:
            raise ResourceExhaustedError(
                f"the loops of one command may take {self.most_iterations:,} iterations here; this one would "
                f"take {iterations:,}"
                f"{f' after {self._taken:,} of others' if self._taken else ''}: take it in several commands",
                iterations=self._taken + iterations,
                limit=self.most_iterations,
            )

    def iterations_left(self, wanted: int) -> int:
        """How many iterations the command's loops may still take, `wanted` at the most."""
        return wanted if self.most_iterations is None else min(wanted, self.most_iterations - self._taken)

    def iteration(self, taken: int, iterations: int = 0, count: int = 1) -> None:
        """A loop has taken `taken` iterations, of `iterations` in all (0: not known), and is about to take another.

        Args:
            taken: The number of iterations.
            iterations: The number in all.
            count: How many of them have not been reported, with the next one.

        Raises:
            CancelledError: The caller wants it stopped.
            ResourceExhaustedError: The command's loops have taken more iterations than they may.
        """
        self._taken += count
        if self.most_iterations is not None and self._taken > self.most_iterations:
            raise ResourceExhaustedError(
                f"the loops of one command may take {self.most_iterations:,} iterations here, and this one takes more: "
                "does its condition ever become false? Set maximum_iterations, or split the loop into several commands",
                iterations=self._taken,
                limit=self.most_iterations,
            )
        self._iteration = self.done, taken, iterations
        self._progress(self.done, self._total, taken, iterations)
        if self._cancelled():
            raise CancelledError(f"the batch was cancelled, in a loop after {taken:,} iterations")
