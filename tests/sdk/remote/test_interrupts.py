"""Interrupts: a KeyboardInterrupt at any line of the SDK's remote session leaves a state from which a program goes on.

Each case runs a program once to count the lines that the main thread executes in the modules below, and then once for
each of them with an interrupt there, as a signal raises it; once through httpx, where the sender's thread sends, and
once over a socket, where this thread does. Afterwards every read must return, each statement that had ended must have
had its effect exactly once, and the interrupted one at most once. A signal handler may also read a value there.

Finalizers are left out: Python ignores what they raise. Such an interrupt is lost, and an id is not released before
the session's end.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import httpx
import numpy as np
import pytest
from loopback import Listener, Loopback, session_on

import teletape as tf
from teletape.core.network import address, frame_socket, http, progress
from teletape.core.sessions import current, functions, recorder, remote
from teletape.core.sessions import custom_backward as custom
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.sending import batch_buffer, catalogues, channel, exclusive, sealed_batch, sender
from teletape_engine.commands import Assign
from teletape_wire import repeats

OF_SENDING = (address, batch_buffer, channel, exclusive, frame_socket, http, progress, repeats, sealed_batch, sender)
MODULES = (*OF_SENDING, current, custom, functions, recorder, remote)
FILES = frozenset(module.__file__ for module in MODULES)
FILES_OF_SENDING = frozenset(module.__file__ for module in OF_SENDING)


class Interrupting:
    """Counts the lines of some files that this thread executes in a block, and calls a function at one of them.

    Args:
        at: The number of the line, from 1; 0: none.
        act: The function; it raises an interrupt, or does what a signal handler may do.
        files: The files.
    """

    def __init__(self, at: int = 0, act: Callable[[], None] | None = None, files: frozenset[Any] = FILES) -> None:
        self.at, self.where = at, ""
        self.act, self.files = act, files
        self.lines: list[str] = []
        # CPython borrows it for a call, whose frame may be what starts a collection: a finalizer that ends the tracing
        # at its own line must not free it.
        self._traced = self._call

    def __enter__(self) -> Interrupting:
        sys.settrace(self._traced)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        return self._line if code.co_filename in self.files and code.co_name != "__del__" else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            if len(self.lines) == self.at:
                sys.settrace(None)
                self.where = self.lines[-1]
                if self.act is None:
                    raise KeyboardInterrupt
                self.act()
        return self._line


class Program:
    """Statements on a session, and how many of them have ended.

    Attributes:
        ended: The number of assignments that have ended.
        v: What they count in.
    """

    def __init__(self, loopback: Loopback, url: str | None = None) -> None:
        self.loopback = loopback
        self.session = use(session_on(loopback, url=url))
        self.v = tf.Variable(0.0)
        self.row = tf.constant(np.arange(600, dtype=np.float32))
        self.ended = 0

    def shows_progress(self) -> None:
        """From now on a wait shows progress at once."""
        progress.QUIET, progress._STEP = 0.0, 0.001

    def count(self) -> None:
        self.v.assign_add(1.0)
        self.ended += 1


def reads(program: Program) -> None:
    """Ops, assignments and reads."""
    program.count()
    y = program.row * 2.0
    program.count()
    assert y.numpy()[3] == 6.0
    program.count()
    tf.sync()


def reads_shapes(program: Program) -> None:
    """An op that asks for the shape of its result, and several reads at once."""
    program.count()
    assert tf.where(program.row > 597.0).shape == (2, 1)
    program.count()
    first, second = program.row + 1.0, program.row + 2.0
    assert [int(value.numpy()[0]) for value in (first, second)] == [1, 2]


def takes_gradients(program: Program) -> None:
    """A tape, its gradient and an update with it."""
    program.count()
    with tf.GradientTape() as tape:
        tape.watch(program.row)
        y = tf.reduce_sum(program.row * program.row)
    assert tape.gradient(y, program.row).numpy()[2] == 4.0
    program.count()


def calls_functions(program: Program) -> None:
    """A `tf.function` that is traced and called."""

    @tf.function
    def double(x: Any) -> Any:
        return x * 2.0

    program.count()
    assert double(program.row).numpy()[1] == 2.0
    program.count()
    assert double(program.row).numpy()[1] == 2.0


def overflows(program: Program) -> None:
    """A buffer that is sent because it is full, and a step that sends it."""
    for _ in range(3):
        program.count()
    with tf.GradientTape():
        program.row * 2.0
    program.count()


def fails(program: Program) -> None:
    """A failure on the server, raised by a read, and what a program does then."""
    program.count()
    wrong = tf.gather(program.row, tf.cast(program.row, "int32") + 5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        wrong.numpy()
    program.count()
    assert program.v.numpy() == 2.0


def loses_answers(program: Program) -> None:
    """A connection that breaks, before and after the server has executed a batch."""
    program.count()
    program.loopback.mishaps.extend(["lost", "unreached", "busy"])
    tf.sync()
    program.count()
    tf.sync()


def repeats_a_step(program: Program) -> None:
    """A step whose structure the server keeps, and forgets."""
    for mishap in ("fine", "fine", "fine", "lost", "unknown", "fine"):
        program.loopback.mishaps.append(mishap)
        program.count()
        assert (program.row * 2.0).numpy()[1] == 2.0


def watches(program: Program) -> None:
    """A server that computes for long, and the line that shows how far it is."""
    program.count()
    program.loopback.mishaps.extend(["running", "running"])
    program.shows_progress()
    tf.sync()
    program.count()


CASES = [
    reads,
    reads_shapes,
    takes_gradients,
    calls_functions,
    overflows,
    fails,
    loses_answers,
    repeats_a_step,
    watches,
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = senders()
    monkeypatch.setattr(http.random, "random", lambda: -0.5)  # no waits between attempts
    monkeypatch.setattr(channel, "_MOST_COMMANDS", 6)
    monkeypatch.setattr(channel, "_STEP_COMMANDS", 3)
    monkeypatch.setattr(repeats, "_FEWEST", 1)
    monkeypatch.setattr(progress, "QUIET", progress.QUIET)
    monkeypatch.setattr(progress, "_STEP", progress._STEP)
    monkeypatch.setenv("TELETAPE_PROGRESS", "1")
    monkeypatch.setattr(catalogues.describe, "digest", lambda: "the same on both sides")
    monkeypatch.setattr(progress.logs, "get_logger", lambda: _Quiet())
    yield
    use(LocalSession())
    wait_for_senders(before)
    gc.collect()  # while the test's own filters hold: sockets whose closing was interrupted
    assert sys.exception() is None, "an exception that was handled would be the context of every later one"


class _Quiet:
    def warning(self, *message: object) -> None:
        """Says nothing: thousands of interrupts."""

    error = warning


class Way:
    """How the programs of a test reach their servers.

    Args:
        listener: Serves their loopbacks; None: httpx's transport seam.

    Attributes:
        listener: As passed.
        files: Whose lines are interrupted: over a socket those that send, since the others do the same as before.
    """

    def __init__(self, listener: Listener | None) -> None:
        self.listener = listener
        self.files = FILES if listener is None else FILES_OF_SENDING

    def program(self) -> Program:
        loopback = Loopback()
        return Program(loopback, None if self.listener is None else self.listener.url(loopback))


@pytest.fixture(params=["httpx", "socket"])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    listener = Listener() if request.param == "socket" else None
    yield Way(listener)
    if listener is not None:
        listener.close()


def run(case: Callable[[Program], None], way: Way, at: int) -> tuple[Program, Interrupting]:
    progress.QUIET, progress._STEP = 1.0, 0.3
    program = way.program()
    tf.sync()
    interrupting = Interrupting(at, files=way.files)
    try:
        with interrupting:
            case(program)
    except KeyboardInterrupt:
        assert interrupting.where
    else:
        assert not interrupting.where, f"swallowed at {interrupting.where}"
    return program, interrupting


def settle(read: Callable[[], Any]) -> Any:
    """The value of a read, which may first raise what had failed before the interrupt, clearly and once."""
    with suppress(tf.errors.InvalidArgumentError):
        return read()
    return read()


def check(case: Callable[[Program], None], program: Program) -> None:
    """The program goes on: reads return, assignments happened once, a new tape gives its gradients."""
    value = float(settle(program.v.numpy))
    executed = len(assignments(program.loopback))
    if case is fails:  # what is recorded after the failure is dropped with it
        assert program.ended - 1 <= value <= program.ended + 1
    else:
        assert program.ended <= value <= program.ended + 1
    assert value == executed
    program.v.assign_add(1.0)
    with tf.GradientTape() as tape:
        y = program.v * program.v
    assert float(tape.gradient(y, program.v)) == 2 * (value + 1)
    assert program.row.numpy()[5] == 5.0
    assert [batch.seq for batch in unique(program.loopback)] == list(range(1, len(unique(program.loopback)) + 1))
    program.session.close()


def unique(loopback: Loopback) -> list[Any]:
    """The batches, without those that were sent again."""
    return list({batch.nonce: batch for batch in loopback.batches}.values())


def assignments(loopback: Loopback) -> list[Any]:
    return [command for batch in unique(loopback) for command in batch.commands if isinstance(command, Assign)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of httpx's, interrupted
def test_an_interrupt_at_any_line(way: Way) -> None:
    """At each line of the modules once; with TELETAPE_INTERRUPTS=all each time that a case executes it."""
    everything = os.environ.get("TELETAPE_INTERRUPTS") == "all"
    interrupted: set[str] = set()
    wrong = []
    for case in CASES:
        program, counted = run(case, way, 0)
        program.session.close()
        for at, line in enumerate(counted.lines, 1):
            if everything or line not in interrupted:
                interrupted.add(line)
                program, interrupting = run(case, way, at)
                try:
                    check(case, program)
                except Exception as error:
                    wrong.append(f"{case.__name__}, {interrupting.where}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(interrupted) > 180


@pytest.mark.long
def test_a_signal_handler_that_reads_at_any_line_that_sends(way: Way) -> None:
    """Also where the thread that it interrupts sends itself: neither waits for the other, nothing happens twice."""
    program, handled = way.program(), set[str]()
    values: list[float] = []

    def handler() -> None:
        program.count()
        values.append(float(program.v.numpy()) - program.ended)

    def run_at(case: Callable[[Program], None], at: int) -> Interrupting:
        progress.QUIET, progress._STEP = 1.0, 0.3
        values.clear()
        with Interrupting(at, handler, FILES_OF_SENDING) as handling:
            case(program)
        assert values in ([], [0.0], [1.0]), handling.where  # with or without what it interrupted
        assert program.v.numpy() == program.ended, handling.where
        return handling

    for case in (reads, takes_gradients, loses_answers, watches):
        for at, line in enumerate(run_at(case, 0).lines, 1):
            if line not in handled:
                handled.add(run_at(case, at).where)
    program.session.close()
    assert len(handled) > 80
    assert len(assignments(program.loopback)) == program.ended


# ----------------------------------------------------------------------------------------------------------- connecting
class Sessions(Loopback):
    """Makes a session for each new key, as a server does.

    Attributes:
        open: The ids of the sessions that are not deleted yet.
        by_key: The id that was made for an Idempotency-Key.
        interrupts: How many answers to creations are not read because of an interrupt.
        silent: How many creations after that are not answered.
        limits: Seconds for which each creation waits for its answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()
        self.by_key: dict[str, str] = {}
        self.interrupts = self.silent = 0
        self.limits: list[float] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method == "DELETE":
            self.open.discard(path.rpartition("/")[2])
        if path != "/v1/sessions":
            return super().handle_request(request)
        self.limits.append(request.extensions["timeout"]["read"])
        key = request.headers["Idempotency-Key"]
        if key not in self.by_key:
            self.by_key[key] = f"s{len(self.by_key)}"
            self.open.add(self.by_key[key])
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        if self.silent:
            self.silent -= 1
            raise httpx.ReadTimeout("no answer", request=request)
        return httpx.Response(201, json={"id": self.by_key[key]})


def connect(at: int) -> tuple[Sessions, Interrupting]:
    """Connects with an interrupt at that line, and ends the session if there is one."""
    sessions, interrupting = Sessions(), Interrupting(at)
    try:
        with interrupting:
            use(session_on(sessions))
    except KeyboardInterrupt:
        pass
    else:
        current.current().close()
    use(LocalSession())
    return sessions, interrupting


def senders() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "teletape-sender"}


def wait_for_senders(others: set[threading.Thread]) -> None:
    """Waits until the threads of sessions that are closed have ended; each holds what its session has.

    Args:
        others: Threads of other sessions.
    """
    deadline = time.monotonic() + 30
    while senders() - others:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_interrupt_at_any_line_of_connecting_leaves_no_session() -> None:
    gc.collect()  # or what an earlier test has left is finalized among the lines that are counted
    before = senders()
    sessions, counted = connect(0)
    assert not sessions.open
    wrong = []
    for at in range(1, len(counted.lines) + 1):  # each time: the same lines send three requests
        sessions, interrupting = connect(at)
        assert interrupting.where
        if sessions.open:
            gc.collect()
        deadline = time.monotonic() + 20
        while sessions.open and time.monotonic() < deadline:
            time.sleep(0.001)  # its sender's thread ends it
        if sessions.open:
            wrong.append(interrupting.where)
    assert not wrong
    assert len(counted.lines) > 60
    gc.collect()
    wait_for_senders(before)


def test_an_interrupt_while_the_answer_to_a_creation_is_awaited_ends_the_session() -> None:
    sessions = Sessions()
    sessions.interrupts = 1
    with pytest.raises(KeyboardInterrupt):
        session_on(sessions)
    assert (len(sessions.by_key), sessions.open) == (1, set())
    assert sessions.limits[1] == channel._FAREWELL


def test_an_interrupt_that_cannot_end_the_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    logger = _Quiet()
    monkeypatch.setattr(logger, "warning", lambda text, *values: messages.append(text % values), raising=False)
    monkeypatch.setattr(progress.logs, "get_logger", lambda: logger)
    sessions = Sessions()
    sessions.interrupts = sessions.silent = 1
    with pytest.raises(KeyboardInterrupt):
        session_on(sessions)
    assert len(sessions.limits) == 2
    assert "http://loopback, which may have made a session and did not answer again in 1 s" in messages[0]
