"""Writers of event files, and the default one.

A summary keeps its tensors until the writer is flushed: their values are read together, in one request.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from teletape.core.calls import dispatch
from teletape.core.errors import ConnectionFailed, TeletapeError
from teletape.core.functions.tracing_session import TracingSession
from teletape.core.program import logs
from teletape.core.sessions.current import current
from teletape.core.sessions.ending import before_sessions_end
from teletape.core.sessions.session import Session
from teletape.core.tensors.tensor import Tensor
from teletape.tf.summary import events
from teletape.tf.summary.conditions import condition_holds, set_step, with_step
from teletape_engine.arrays import HostArray

_WAITING_SUMMARIES: Final = 10
_FLUSH_MILLIS: Final = 120_000
_DEFAULT: Final[contextvars.ContextVar[Any]] = contextvars.ContextVar("summary_writer", default=None)

#: A function from the array of the data to the values of an event's summary.
Encode = Callable[[HostArray], list[Any]]


class _Pending(NamedTuple):
    """A summary whose values are not read yet."""

    encode: Encode
    data: Tensor
    step: Tensor
    time: float


class SummaryWriter:
    """Writes summaries into an event file of a folder; `tf.summary.create_file_writer` makes one.

    Args:
        logdir: The folder; it is made if it does not exist.
        max_queue: The number of summaries that wait before they are written.
        flush_millis: Milliseconds after which waiting summaries are written with the next one.
        filename_suffix: The end of the file's name.
    """

    def __init__(self, logdir: str, max_queue: int, flush_millis: int, filename_suffix: str) -> None:
        _close_left()
        writer, self._folder = events.module("event_file_writer").EventsWriter, logdir
        os.makedirs(logdir, exist_ok=True)
        self._file: Any = writer(os.path.join(logdir, "events"), f".{os.getpid()}.{next(_numbers)}{filename_suffix}")
        self._closed, self._process = False, os.getpid()
        self._max_queue, self._flush_seconds = max_queue, flush_millis / 1000
        self._pending: list[_Pending] = []
        self._last_flush = time.monotonic()
        _writers.add(self)

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """A block in which it is the default writer, with `step` as the default step if there is one; then it flushes.

        Raises:
            RuntimeError: It was closed.
        """
        self._check_open()
        token = _DEFAULT.set(self)
        try:
            with with_step(step):
                yield self
            self.flush()
        finally:
            _DEFAULT.reset(token)

    def set_as_default(self, step: Any = None) -> None:
        """Makes it the default writer from now on."""
        self._check_open()
        _DEFAULT.set(self)
        if step is not None:
            set_step(step)

    def init(self) -> None:
        """Does nothing: the file is open already."""

    def add(self, encode: Encode, data: Tensor, step: Tensor) -> None:
        """Adds a summary; inside a tf.function each of its calls adds one."""
        self._check_open()
        _close_left()
        owner = current()
        if isinstance(owner, TracingSession):
            owner.defer(lambda values: self.add(encode, *values), [data, step])
            return
        self._pending.append(_Pending(encode, data, step, time.time()))
        is_late = time.monotonic() - self._last_flush > self._flush_seconds
        if len(self._pending) >= self._max_queue or is_late:
            self._write_pending()

    def flush(self) -> None:
        """Reads the values of waiting summaries, in one request for each session, and writes them to the file."""
        if not self._closed and not isinstance(current(), TracingSession):
            self._write_pending()
            self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file; further calls do nothing."""
        if not self._closed:
            try:
                self.flush()
            finally:
                self._closed = True
                self._file.close()

    def __del__(self) -> None:
        """Leaves waiting summaries to the next one, or to the program's end: a finalizer may run in any thread."""
        if getattr(self, "_closed", True):  # the constructor failed
            return
        if self._pending:
            _left.append(self)
        else:
            self._closed = True
            self._file.close()

    def finish(self, session: Session | None) -> None:
        """Writes the waiting summaries of a session that ends; None: the program ends. It never raises."""
        if self._closed or self._process != os.getpid():  # after a fork the file is the parent's
            return
        if session is None or any(session in (each.data.session, each.step.session) for each in self._pending):
            count = len(self._pending)
            try:
                if count:
                    self._write_pending()
                self._file.flush()
            except TeletapeError as error:
                logs.get_logger().error("the last %d summaries of %s were not written: %s", count, self._folder, error)
        if session is None:
            self._closed = True
            self._file.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed: make another one with tf.summary.create_file_writer")

    def _write_pending(self) -> None:
        pending, self._pending = self._pending, []
        self._last_flush = time.monotonic()
        try:
            arrays = _read(pending)
        except BaseException as error:
            if isinstance(error, ConnectionFailed) or not isinstance(error, TeletapeError):  # these can be read later
                self._pending[:0] = pending
            raise
        protocol = events.module("proto")
        for summary in pending:
            values = summary.encode(arrays[id(summary.data)])
            event = protocol.event_pb2.Event(
                wall_time=summary.time,
                step=int(arrays[id(summary.step)]),
                summary=protocol.summary_pb2.Summary(value=values),
            )
            self._file.write_event(event)


class _NoWriter(SummaryWriter):
    """A writer that writes nothing."""

    def __init__(self) -> None:
        self._closed = False
        self._pending = []

    def add(self, encode: Encode, data: Tensor, step: Tensor) -> None:
        """Drops the summary."""

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""

    def __del__(self) -> None:
        """Does nothing."""


def _read(pending: list[_Pending]) -> dict[int, HostArray]:
    """Returns the values of summaries by the ids of their tensors, in one request for each session."""
    by_session: dict[Any, list[Tensor]] = {}
    for summary in pending:
        by_session.setdefault(summary.data.session, []).append(summary.data)
        by_session.setdefault(summary.step.session, []).append(summary.step)
    arrays: dict[int, HostArray] = {}
    for session, tensors in by_session.items():
        fetched = session.fetch_all([tensor.recorded for tensor in tensors])
        arrays |= dict(zip(map(id, tensors), fetched, strict=True))
    return arrays


#: Numbers the files of one process.
_numbers: Final = itertools.count()
_writers: Final[weakref.WeakSet[SummaryWriter]] = weakref.WeakSet()
#: Writers without a reference in the program, with summaries that are not read yet.
_left: Final[list[SummaryWriter]] = []


def _close_left() -> None:
    while _left:
        _left.pop().close()


def _finish_all(session: Session | None) -> None:
    for writer in [*_writers, *_left]:
        writer.finish(session)


before_sessions_end(_finish_all)


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """Opens an event file for TensorBoard in a folder.

    Args:
        logdir: The folder.
        max_queue: The number of summaries that wait before they are written; None: 10.
        flush_millis: Milliseconds after which they are written with the next one; None: two minutes.
        filename_suffix: The end of the file's name; None: ".v2".
        name: Without effect.
        experimental_trackable: Without effect.
        experimental_mesh: Without effect.

    Raises:
        ModuleNotFoundError: tensorboardX is not installed.
    """
    return SummaryWriter(
        os.fspath(logdir),
        _WAITING_SUMMARIES if max_queue is None else int(max_queue),
        _FLUSH_MILLIS if flush_millis is None else int(flush_millis),
        ".v2" if filename_suffix is None else str(filename_suffix),
    )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing."""
    return _NoWriter()


def default_writer() -> SummaryWriter | None:
    """The writer of `as_default` or `set_as_default`; None if there is none."""
    writer: SummaryWriter | None = _DEFAULT.get()
    return writer


def should_record_summaries() -> bool:
    """Whether there is a default writer and the condition of `record_if` holds."""
    return default_writer() is not None and condition_holds()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Writes the waiting summaries of a writer; None: of the default one."""
    _close_left()
    writer = default_writer() if writer is None else writer
    if writer is not None:
        writer.flush()


def add_to_default(encode: Encode, data: Any, step: Any) -> bool:
    """Adds a summary to the default writer; returns whether there is one."""
    writer = default_writer()
    if writer is None:
        return False
    writer.add(encode, dispatch.as_tensor(data), dispatch.convert_to_tensor(step))
    return True
