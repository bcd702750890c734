"""Waiting for a batch: a line on stderr shows the server's progress, or that the server does not answer.

The progress is shown after a second, if stderr is a terminal or the program a notebook; TELETAPE_PROGRESS: 1 always
shows it, 0 never. A server that does not answer is always shown, in a log file by a line from time to time.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TextIO

from teletape.core import environment
from teletape.core.program import logs
from teletape.core.program.notebook import OutputLine, is_notebook

QUIET: Final = 1.0  #: Seconds before anything is shown.
_STEP: Final = 0.3  #: Seconds between two updates.
_REPEAT: Final = 10.0  #: Seconds between two lines about trouble if lines cannot be rewritten.
_CLEAR: Final = "\r\x1b[2K"  #: Moves to the beginning of a terminal's line and clears it.
_WIDTH: Final = 30  #: The number of characters of the bar.


class Awaited(Protocol):
    """The interface of a `Reply`: it can be waited for."""

    def wait(self, seconds: float = -1) -> bool:
        """Waits for that time, and returns whether it is settled."""


class TerminalLine:
    """A line of a terminal that is rewritten, and finally removed.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._drawn = stream, False

    def show(self, text: str) -> None:
        """Shows a text now."""
        self._drawn = True
        _write(self._stream, _CLEAR + text[: _columns(self._stream)])

    def draw(self, text: str, share: float | None) -> None:
        """Shows the progress now. The text includes a bar; `share` is for a notebook."""
        self.show(text)

    def end(self) -> None:
        """Removes the line, if there is one."""
        if self._drawn:
            _write(self._stream, _CLEAR)


class Notice:
    """The line about a server that does not answer: rewritten and finally removed, if that is possible.

    Args:
        stream: Where it is written, if the program is no notebook.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = time.monotonic()
        self._last: float | None = None
        self._line = _rewritten_line(stream) if _is_terminal(stream) or is_notebook() else None

    def show(self, text: str) -> None:
        """Shows a text now; if lines cannot be rewritten, only some time after the last one."""
        now = time.monotonic()
        if self._line is not None:
            self._line.show(f"teletape: {text}")
        elif now >= (self._began + QUIET if self._last is None else self._last + _REPEAT):
            self._last = now
            _write(self._stream, f"teletape: {text}\n")

    def end(self) -> None:
        """Removes the line, if there is one that can be removed."""
        self._last = None
        if self._line is not None:
            self._line.end()


def wait(
    reply: Awaited,
    progress: Callable[[], Mapping[str, Any] | None],
    trouble: Callable[[], str | None],
    began: float | None = None,
    until: float | None = None,
) -> bool:
    """Waits for a reply of the sender's thread, and returns whether it is settled.

    Args:
        reply: The reply.
        progress: Returns the progress as done, total, iteration, iterations; None: not known.
        trouble: Returns the trouble with the connection, as a line; None: there is none.
        began: The beginning of the wait; None: now.
        until: The end of the wait; None: there is none.
    """
    now = time.monotonic()
    began, until = now if began is None else began, math.inf if until is None else until
    if reply.wait(max(0.0, min(began + QUIET, until) - now)):
        return True
    return _watch(reply, progress, trouble, sys.stderr, began, until)


def explain_interrupt(problem: str | None) -> None:
    """Logs that the batch of an interrupted reader goes on.

    Args:
        problem: The trouble with the connection; None: there is none.
    """
    if problem is None:
        logs.get_logger().warning(
            "interrupted while the server computes: it goes on, and the next read waits for it; "
            "tf.session().cancel() stops it"
        )
    else:
        logs.get_logger().warning("interrupted: %s. Nothing recorded is lost: the next read sends it again", problem)


def shown(stream: TextIO | None) -> bool:
    """Whether the progress is shown: on this stream, or in a notebook."""
    wanted = environment.progress()
    return _is_terminal(stream) or is_notebook() if wanted is None else wanted


def _watch(
    reply: Awaited,
    progress: Callable[[], Mapping[str, Any] | None],
    trouble: Callable[[], str | None],
    stream: TextIO | None,
    began: float,
    until: float = math.inf,
) -> bool:
    """Waits, and shows the progress; returns whether the reply is settled."""
    notice, bar = Notice(stream), _rewritten_line(stream) if shown(stream) else None
    try:
        while not reply.wait(min(_STEP, max(0.0, until - time.monotonic()))):
            if time.monotonic() >= until:
                return False
            problem = trouble()
            facts = progress() if bar is not None and problem is None else None
            if problem is not None:
                notice.show(problem)
            elif bar is not None and facts is not None:
                bar.draw(line(facts, time.monotonic() - began), _share(facts))
        return True
    finally:
        if bar is not None:
            bar.end()
        notice.end()


def line(progress: Mapping[str, Any], seconds: float) -> str:
    """Returns the line: a bar of the running loop if its length is known, else of the commands; the time; the wait."""
    filled = round(_WIDTH * (_share(progress) or 0.0))
    text = f"teletape [{'#' * filled}{'.' * (_WIDTH - filled)}] {how_far(progress)}, {seconds:.0f} s"
    why = why_waiting(progress)
    return f"{text}; {why}" if why else text


def why_waiting(progress: Mapping[str, Any]) -> str:
    """Returns why the work waits, or what it shares, and when it may start; empty: it runs, or that is not known."""
    wait = progress.get("wait")
    if not isinstance(wait, Mapping) or wait.get("reason") in (None, "it runs"):
        return ""
    begins = wait.get("starts_in_seconds")
    return f"{wait['reason']} (starts in about {begins:.0f} s)" if begins else str(wait["reason"])


def how_far(progress: Mapping[str, Any]) -> str:
    """Returns the number of commands that are done, and the iterations of the running loop, as text."""
    names = ("done", "total", "iteration", "iterations")
    done, total, iteration, iterations = (int(progress.get(name, 0)) for name in names)
    text = f"{done:,} of {total:,} commands" if total else "waiting"
    if iteration or iterations:
        text += f", iteration {iteration:,} of {iterations:,}" if iterations else f", iteration {iteration:,}"
    return text


def _share(progress: Mapping[str, Any]) -> float | None:
    """Returns the share that is done, from 0 to 1, of the running loop, else of the commands; None: not known."""
    part, whole = ("iteration", "iterations") if progress.get("iteration") else ("done", "total")
    return min(int(progress.get(part, 0)) / int(progress[whole]), 1.0) if progress.get(whole) else None


def _rewritten_line(stream: TextIO | None) -> TerminalLine | OutputLine:
    return OutputLine() if is_notebook() else TerminalLine(stream)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _columns(stream: TextIO | None) -> int | None:
    """Returns how many characters a line of a terminal shows: one that is broken cannot be cleared; None: any."""
    try:
        return os.get_terminal_size(stream.fileno()).columns - 1 if stream is not None and stream.isatty() else None
    except (OSError, ValueError):  # it is no terminal
        return None


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # a program without a console has none
        with suppress(OSError, ValueError):  # a broken or closed one stops no computation
            stream.write(text)
            stream.flush()
