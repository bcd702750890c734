"""Waiting for a batch: after a second a line on stderr shows the server's progress.

TELETAPE_PROGRESS: 1 always shows the line, 0 never; by default it is shown if stderr is a terminal.
"""

from __future__ import annotations

import concurrent.futures
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TextIO, TypeVar

from teletape import environment, logs

T = TypeVar("T")

_QUIET: Final = 1.0  #: Seconds before anything is shown.
_STEP: Final = 0.3  #: Seconds between two updates.
_WIDTH: Final = 30  #: Characters of the bar.


def wait(future: Future[T], progress: Callable[[], Mapping[str, Any] | None]) -> T:
    """Returns the future's result.

    Args:
        future: The answer of the batch in flight.
        progress: Returns the progress as done, total, iteration, iterations; None: not known.

    Raises:
        KeyboardInterrupt: The program was interrupted; the batch goes on.
    """
    try:
        if shown(sys.stderr):
            _watch(future, progress, sys.stderr)
        return future.result()
    except KeyboardInterrupt:
        logs.get_logger().warning(
            "interrupted while the server computes: it goes on, and the next read waits for it; tf.session().cancel() "
            "stops it"
        )
        raise


def shown(stream: TextIO) -> bool:
    """Whether the line is shown on this stream."""
    wanted = environment.progress()
    return stream.isatty() if wanted is None else wanted


def _watch(future: Future[Any], progress: Callable[[], Mapping[str, Any] | None], stream: TextIO) -> None:
    began = time.monotonic()
    if _ready(future, _QUIET):
        return
    try:
        while not _ready(future, _STEP):
            facts = progress()
            if facts is not None:
                stream.write("\r\x1b[2K" + line(facts, time.monotonic() - began))
                stream.flush()
    finally:
        stream.write("\r\x1b[2K")
        stream.flush()


def _ready(future: Future[Any], seconds: float) -> bool:
    return bool(concurrent.futures.wait([future], timeout=seconds).done)


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
