"""Strands: the commands of one thread or one async task, in its order. A failure skips the rest of its own strand."""

from __future__ import annotations

import contextvars
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from teletape.core.program.notebook import shell

#: The origin of a command: the id of its context, and that of its strand if it differs.
Place: TypeAlias = int | tuple[int, int]


def context_of(place: Place) -> int:
    """Returns the id of the context."""
    return place if place.__class__ is int else place[0]  # type: ignore[index]  # narrowed


def strand_of(place: Place) -> int:
    """Returns the id of the strand."""
    return place if place.__class__ is int else place[1]  # type: ignore[index]  # narrowed


def running_task() -> Any:
    """Returns the task of asyncio or trio, or the greenlet of gevent, that runs in this thread; None: there is none.

    A library that is not imported has no tasks.
    """
    if len(_modules) != _count:
        _look_at_modules()
    if _running_loop() is not None:
        return _modules["asyncio"].current_task()
    if not _has_others:
        return None
    if _in_trio is not None and _in_trio.name == "trio":
        with suppress(RuntimeError):  # between two tasks
            return _modules["trio.lowlevel"].current_task()
    if _has_greenlets:
        with suppress(AttributeError):
            greenlet = _modules["greenlet"].getcurrent()
            return None if greenlet.parent is None else greenlet
    return None


def _no_loop() -> None:
    """Runs no loop: asyncio is not imported."""


# Looked up for every op; only new modules change it.
_modules: Final[dict[str, Any]] = sys.modules
_count = 0  #: The number of modules at the latest look.
_running_loop: Callable[[], Any] = _no_loop  #: Returns asyncio's running loop, or None; in C, if possible.
_has_others = False  #: Whether there may be tasks of others than asyncio.
_in_trio: Any = None  #: In its `name` trio notes that it runs in a thread; to ask trio itself costs an exception.
_has_greenlets = False


def _look_at_modules() -> None:
    global _count, _running_loop, _has_others, _in_trio, _has_greenlets
    loops = _modules.get("_asyncio") or _modules.get("asyncio")
    _running_loop = getattr(loops, "_get_running_loop", _no_loop)
    _in_trio = getattr(_modules.get("sniffio"), "thread_local", None) if "trio.lowlevel" in _modules else None
    _has_greenlets = "greenlet" in _modules
    _has_others = _has_greenlets or _in_trio is not None
    _count = len(_modules)


#: The task that waits for work in a thread of its event loop's executor.
acting: Final = contextvars.ContextVar[Any]("acting", default=None)


class Strand:
    """The strand of a thread or task, which has the only reference to it.

    Attributes:
        id: Its id.
    """

    __slots__ = ("__weakref__", "id")

    def __init__(self, id: int) -> None:
        self.id = id


class Strands:
    """The strands of a session's client.

    Args:
        next_id: Returns an id that the client has never used.
    """

    def __init__(self, next_id: Callable[[], int]) -> None:
        self._next_id = next_id
        self._of_thread = threading.local()
        self._of_tasks: weakref.WeakKeyDictionary[Any, Strand] = weakref.WeakKeyDictionary()
        self._live: weakref.WeakValueDictionary[int, Strand] = weakref.WeakValueDictionary()

    def of_thread(self, id: int | None = None) -> Strand:
        """Returns this thread's strand; a new one, with this id or another new one, if there is none."""
        strand: Strand | None = getattr(self._of_thread, "strand", None)
        if strand is None:
            strand = self._of_thread.strand = self._new(self._next_id() if id is None else id)
        return strand

    def of_task(self, task: Any) -> Strand:
        """Returns a task's strand. All cells of a notebook, which may be tasks, have one strand."""
        strand = self._of_tasks.get(task)
        if strand is None:
            strand = self._new(self._next_id()) if shell() is None else self.of_thread()
            self._of_tasks[task] = strand
        return strand

    def here(self) -> int:
        """Returns the id of the strand of the running task, of the task that this thread acts for, or of the thread."""
        task = running_task() or acting.get()
        return (self.of_thread() if task is None else self.of_task(task)).id

    def ended(self, id: int) -> bool:
        """Whether the thread or task has ended."""
        return id not in self._live

    def _new(self, id: int) -> Strand:
        strand = self._live[id] = Strand(id)
        return strand
