"""The data of a profile: counts and seconds by op and by line of the program, bytes, requests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from teletape.core.profiling import plot, report
from teletape_engine.functions.function import Function

_NO_LINE: Final = "no line of the program"  #: The line of steps in functions that were made for derivatives.


class Row(NamedTuple):
    """A line of a table.

    Attributes:
        name: The op, or the line of the program.
        calls: The number of calls.
        seconds: Their total time.
    """

    name: str
    calls: int
    seconds: float


class Profile:
    """The profile of `session.profile()`: it collects data until its block ends, and then displays tables.

    Attributes:
        place: The address or device of the session.
        requests: Batches that were answered.
        bytes_sent, bytes_received: The bytes of these batches and of their answers.
        seconds: From the beginning of the block to its end.
        waited: Seconds in which the program waited for answers.
        under_way: Seconds in which batches and answers were under way, encoded and decoded.
        queued: Seconds in which batches waited for the session to be free.
        computed: Seconds in which the session computed.
        ending: Whether the block is over, and its last commands are being sent.
        functions: The functions that were run on a server, and those within them, by their ids.
        callers: The lines that call functions.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.requests = self.bytes_sent = self.bytes_received = 0
        self.seconds = self.waited = self.under_way = self.queued = self.computed = 0.0
        self.ending = False
        self.functions: dict[Any, Function] = {}
        self.callers: dict[Function, str] = {}
        self._ops: dict[str, list[float]] = {}
        self._lines: dict[str, list[float]] = {}
        self._reads: dict[str, list[float]] = {}
        self._began = time.perf_counter()

    # ------------------------------------------------------------------------------------------------------ collecting
    def note_command(self, op: str, line: str, seconds: float, calls: int = 1) -> None:
        """Notes a command that the session executed, or a step of a function, which may run in many calls."""
        _add(self._ops, op, seconds, calls)
        _add(self._lines, line, seconds, calls)

    def note_caller(self, function: Function, line: str) -> None:
        """Notes the line that calls a function, and so the lines that call those within it."""
        if self.callers.get(function) == line:
            return
        self.callers[function] = line
        for step, site in zip(function.steps, function.call_sites, strict=False):
            for inner in step.functions:
                self.note_caller(inner, site or line)

    def note_steps(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Notes steps of functions.

        Args:
            rows: The rows of `StepTimes`; a function is the object, or its id if it is in `functions`.
        """
        for row in rows:
            function = self.functions.get(row["function"], row["function"])
            line = None
            if isinstance(function, Function):
                site = function.call_sites[row["step"]] if function.call_sites else None
                line = site or self.callers.get(function)
            self.note_command(row["op"], line or _NO_LINE, row["seconds"], row["calls"])

    def note_wait(self, line: str, seconds: float) -> None:
        """Notes that a line of the program waited for an answer."""
        self.waited += seconds
        _add(self._reads, "the end of the block" if self.ending else line, seconds)

    def note_batch(
        self, commands: Iterable[tuple[str, str, float]], sent: int, received: int, *, under_way: float, served: Any
    ) -> None:
        """Notes an answered batch.

        Args:
            commands: Op, line and seconds of each of its commands, without those of steps of functions.
            sent: Bytes of the batch.
            received: Bytes of the answer.
            under_way: Seconds from the beginning of its encoding to its answer.
            served: The server's times: `queue_seconds` and `compute_seconds`.
        """
        for op, line, seconds in commands:
            self.note_command(op, line, seconds)
        self.requests += 1
        self.bytes_sent += sent
        self.bytes_received += received
        self.queued += served.queue_seconds
        self.computed += served.compute_seconds
        self.under_way += max(0.0, under_way - served.queue_seconds - served.compute_seconds)

    def end(self) -> None:
        """Ends the measurement."""
        self.seconds = time.perf_counter() - self._began

    # --------------------------------------------------------------------------------------------------------- results
    @property
    def recording(self) -> float:
        """Seconds in which the program did not wait: it ran and recorded ops."""
        return max(0.0, self.seconds - (self.waited if self.requests else self.computed))

    @property
    def network(self) -> float:
        """Seconds in which batches and answers were under way, encoded, decoded, and given to the program."""
        return max(self.under_way, self.waited - self.queued - self.computed) if self.requests else 0.0

    @property
    def by_op(self) -> list[Row]:
        """Time and number of the commands by op, the longest first; ops in functions are among them.

        A gradient, a fetch and a call count as one op each; a call has its time without that of the function's ops.
        """
        return _rows(self._ops)

    @property
    def by_line(self) -> list[Row]:
        """Time and number of the commands by the line of the program that recorded them, the longest first.

        An op in a function counts at its line of the function, as often as it ran.
        """
        return _rows(self._lines)

    @property
    def reads(self) -> list[Row]:
        """Number and duration of each line's waits for an answer, the longest first."""
        return _rows(self._reads)

    @property
    def parts(self) -> Mapping[str, float]:
        """The split of the time, in seconds; its sum is `seconds`, or more if batches ran while the program went on."""
        return {
            "program and recording": self.recording,
            "network and encoding": self.network,
            "queue": self.queued,
            "compute": self.computed,
        }

    def __repr__(self) -> str:
        return report.text(self)

    def _repr_html_(self) -> str:
        return report.html_text(self)

    def plot(self, axes: Any = None) -> Any:
        """Draws the split, and the ops and lines that took longest; needs Matplotlib.

        Args:
            axes: Three axes of Matplotlib; None: a new figure.

        Returns:
            The figure.
        """
        return plot.draw(self, axes)


def _add(table: dict[str, list[float]], name: str, seconds: float, calls: int = 1) -> None:
    entry = table.setdefault(name, [0, 0.0])
    entry[0] += calls
    entry[1] += seconds


def _rows(table: Mapping[str, Sequence[float]]) -> list[Row]:
    rows = [Row(name, int(count), seconds) for name, (count, seconds) in list(table.items())]
    return sorted(rows, key=lambda row: -row.seconds)
