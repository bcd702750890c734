"""Prepares elements ahead of their use in another thread: the `prefetch` of generators and files.

The thread runs only work that needs no session: Python's generators, files, and the stacking of arrays. Functions of
elements are recorded in the program's own thread, so that each of a program's steps stays the same batch.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from teletape.core.errors import FailedPreconditionError

_END: Final = object()
_LOOK: Final = 0.5  #: Seconds after which a thread with a full queue looks whether its iterator is still there.


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class Ahead:
    """An iterator over elements that a thread prepares.

    Args:
        start: Returns the iterator that the thread runs.
        size: The number of elements that may wait.

    Several threads may take elements; each of them sees the end.
    """

    def __init__(self, start: Callable[[], Iterator[Any]], size: int) -> None:
        self._ready: queue.Queue[Any] = queue.Queue(size)
        self._ended = False
        self._process = os.getpid()
        self._stop = threading.Event()
        weakref.finalize(self, self._stop.set)
        arguments = (start, self._ready, self._stop)
        threading.Thread(target=_prepare, args=arguments, name="teletape-dataset", daemon=True).start()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._process != os.getpid():
            raise FailedPreconditionError(
                "this iterator belongs to the parent process, whose thread prepares its elements: make another one in "
                "the child, iter(dataset)"
            )
        element = _END if self._ended else self._ready.get()
        if element is _END or isinstance(element, _Failure):
            self._ended = True
            with suppress(queue.Full):  # so that another thread that waits sees the end too
                self._ready.put_nowait(_END)
            raise element.error if isinstance(element, _Failure) else StopIteration
        return element


def _prepare(start: Callable[[], Iterator[Any]], ready: queue.Queue[Any], stop: threading.Event) -> None:
    """Puts each element into the queue, until the program's iterator is gone."""
    last: Any = _END
    try:
        for element in start():
            if not _put(ready, element, stop):
                return
    except BaseException as error:  # raised where the element is needed
        last = _Failure(error)
    _put(ready, last, stop)


def _put(ready: queue.Queue[Any], element: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            ready.put(element, timeout=_LOOK)
        except queue.Full:
            continue
        return True
    return False
