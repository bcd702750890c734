"""Waiting for a batch: a line on stderr shows the server's progress, or that the server does not answer.

The progress is shown after a second, if stderr is a terminal; TELETAPE_PROGRESS: 1 always shows it, 0 never. That a
server does not answer is shown in any case, in a notebook or a log file by a line from time to time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TextIO

from teletape import environment, logs

QUIET: Final = 1.0  #: Seconds before anything is shown.
_STEP: Final = 0.3  #: Seconds between two updates.
_REPEAT: Final = 10.0  #: Seconds between two lines about trouble where lines cannot be rewritten.
_WIDTH: Final = 30  #: Characters of the bar.


class Awaited(Protocol):
    """What can be waited for: a `Reply`."""

    def wait(self, seconds: float = -1) -> bool:
        """Returns whether it is there within that time."""


class Notice:
    """The line about a server that does not answer. On a terminal it is rewritten and at last removed.

    Args:
        stream: Where it is written.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = time.monotonic()
        self._last: float | None = None
        self._terminal = _is_terminal(stream)

    def show(self, text: str) -> None:
        """Shows a text now, or not if it can only be added to the lines before and one was added a short time ago."""
        now = time.monotonic()
        if self._terminal:
            self._last = now
            _write(self._stream, f"\r\x1b[2Kteletape: {text}")
        elif now >= (self._began + QUIET if self._last is None else self._last + _REPEAT):
            self._last = now
            _write(self._stream, f"teletape: {text}\n")

    def end(self) -> None:
        """Removes the line, if there is one that can be removed."""
        if self._last is not None and self._terminal:
            _write(self._stream, "\r\x1b[2K")
        self._last = None


def wait(
    reply: Awaited,
    progress: Callable[[], Mapping[str, Any] | None],
    trouble: Callable[[], str | None],
    began: float | None = None,
) -> None:
    """Waits for a reply of the sender's thread.

    Args:
        reply: The reply.
        progress: Returns the progress as done, total, iteration, iterations; None: not known.
        trouble: Returns what is wrong with the connection now, as a line; None: nothing is.
        began: When the caller began to wait; None: now.
    """
    now = time.monotonic()
    began = now if began is None else began
    if not reply.wait(max(0.0, began + QUIET - now)):
        _watch(reply, progress, trouble, sys.stderr, began)


def explain_interrupt(problem: str | None) -> None:
    """Logs what becomes of a batch whose reader was interrupted.

    Args:
        problem: What is wrong with the connection; None: nothing is.
    """
    if problem is None:
        logs.get_logger().warning(
            "interrupted while the server computes: it goes on, and the next read waits for it; "
            "tf.session().cancel() stops it"
        )
    else:
        logs.get_logger().warning("interrupted: %s. Nothing recorded is lost: the next read sends it again", problem)


def shown(stream: TextIO | None) -> bool:
    """Whether the progress is shown on this stream."""
    wanted = environment.progress()
    return _is_terminal(stream) if wanted is None else wanted


def _watch(
    reply: Awaited,
    progress: Callable[[], Mapping[str, Any] | None],
    trouble: Callable[[], str | None],
    stream: TextIO | None,
    began: float,
) -> None:
    """Waits, and shows what happens meanwhile."""
    notice, bar = Notice(stream), shown(stream)
    drawn = False
    try:
        while not reply.wait(_STEP):
            problem = trouble()
            facts = progress() if bar and problem is None else None
            if problem is not None:
                notice.show(problem)
            elif facts is not None:
                drawn = True
                _write(stream, "\r\x1b[2K" + line(facts, time.monotonic() - began))
    finally:
        if drawn:
            _write(stream, "\r\x1b[2K")
        notice.end()


def line(progress: Mapping[str, Any], seconds: float) -> str:
    """Returns the line: a bar of the loop that runs if its length is known, else of the commands; then the time."""
    names = ("done", "total", "iteration", "iterations")
    done, total, iteration, iterations = (int(progress.get(name, 0)) for name in names)
    share = iteration / iterations if iterations else done / total if total else 0.0
    filled = round(_WIDTH * min(share, 1.0))
    text = f"{done:,} of {total:,} commands" if total else "waiting"
    if iteration or iterations:
        text += f", iteration {iteration:,} of {iterations:,}" if iterations else f", iteration {iteration:,}"
    return f"teletape [{'#' * filled}{'.' * (_WIDTH - filled)}] {text}, {seconds:.0f} s"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # a program without a console has none
        with suppress(OSError, ValueError):  # a broken or closed one stops no computation
            stream.write(text)
            stream.flush()
