"""Who sends: the thread that reads, if it can; the sender's thread in every other case, and what it takes over."""

from __future__ import annotations

import operator
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from loopback import Listener, Loopback, session_on
from teletape.errors import RequestError

import teletape as tf
from teletape.core.network import frame_socket, progress
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.core.sessions.sending import sender
from teletape.core.sessions.sending.exclusive import Exclusive
from teletape.core.sessions.sending.sealed_batch import Position
from teletape_engine.commands import Assign


@pytest.fixture
def session(loopback: Loopback) -> Iterator[RemoteSession]:
    """A session over a socket, whose connection for batches is open."""
    listener = Listener()
    session = session_on(loopback, url=listener.url(loopback))
    use(session)
    session.channel.round_trip()
    yield session
    loopback.gate.set()
    use(LocalSession())
    session.close()
    listener.close()


def turns(session: RemoteSession) -> int:
    """How often the sender's thread was woken."""
    return session.channel._sender._wakes


def start(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Waits for a state, and fails if it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


# ------------------------------------------------------------------------------------------------------- in this thread
def test_a_read_sends_in_its_own_thread(session: RemoteSession, loopback: Loopback) -> None:
    woken, requests = turns(session), session.requests
    v = tf.Variable(1.0)
    for _ in range(5):
        v.assign_add(1.0)
        v.numpy()
    tf.sync()
    assert v.numpy() == 6.0
    assert turns(session) == woken
    assert session.requests == requests + 5
    assert [batch.seq for batch in loopback.batches] == list(range(1, 7))


def test_through_httpx_the_senders_thread_does(loopback: Loopback) -> None:
    session = use(session_on(loopback))
    assert isinstance(session, RemoteSession)
    tf.ones(300).numpy()
    assert turns(session) == 1
    use(LocalSession())
    session.close()


def test_a_large_batch_is_left_to_the_senders_thread(session: RemoteSession) -> None:
    woken = turns(session)
    x = tf.constant(np.ones(sender._LARGE // 4, np.float32))
    tf.sync()
    assert turns(session) == woken + 1
    assert x.numpy().sum() == sender._LARGE // 4
    assert turns(session) == woken + 1


@pytest.mark.parametrize(
    ("mishap", "sent"), [("lost", 2), ("unreached", 2), ("busy", 2), ("running", 2), ("garbled", 1), ("page", 1)]
)
def test_what_is_not_expected_is_left_to_the_senders_thread(
    session: RemoteSession, loopback: Loopback, mishap: str, sent: int
) -> None:
    """Which then goes on from the answer that is here, and does not ask again."""
    v = tf.Variable(1.0)
    tf.sync()
    before, woken = len(loopback.batches), turns(session)
    v.assign_add(1.0)
    loopback.mishaps.append(mishap)
    if sent == 1:
        with pytest.raises((RequestError, OSError)):
            tf.sync()
    else:
        assert v.numpy() == 2.0
    assert turns(session) == woken + 1
    assert len(loopback.batches) == before + sent
    assert len({batch.nonce for batch in loopback.batches[before:]}) == 1


def test_a_failure_is_applied_by_the_senders_thread(session: RemoteSession, loopback: Loopback) -> None:
    x = tf.constant([1.0, 2.0]) * 1.0
    before = len(loopback.batches)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        tf.gather(x, tf.cast(x * 100.0, "int32")).numpy()
    assert len(loopback.batches) == before + 1
    assert x.numpy().tolist() == [1.0, 2.0]


def test_silence_is_left_to_the_senders_thread_with_the_connection(
    session: RemoteSession, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.01)
    v = tf.Variable(1.0)
    woken, before = turns(session), len(loopback.batches)
    loopback.gate.clear()
    v.assign_add(1.0)
    values: list[float] = []
    reader = start(lambda: values.append(float(v.numpy())))
    until(lambda: turns(session) > woken)
    loopback.gate.set()
    reader.join(20)
    assert values == [2.0]
    assert len(loopback.batches) == before + 1  # sent once: the connection on which the answer comes was passed on


# ------------------------------------------------------------------------------------------------------ several threads
def test_a_reader_takes_what_other_threads_wait_for_with_it(session: RemoteSession, loopback: Loopback) -> None:
    x = tf.ones(300)
    tf.sync()
    before = len(loopback.batches)
    loopback.gate.clear()
    values: dict[float, float] = {}

    def read(factor: float) -> None:
        values[factor] = float((x * factor).numpy()[0])

    first = start(lambda: read(2.0))
    until(lambda: len(loopback.batches) == before + 1)
    others = [start(partial(read, factor)) for factor in (3.0, 4.0)]
    until(lambda: len(session.channel.buffer.replies()) == 2)
    loopback.gate.set()
    for thread in (first, *others):
        thread.join(20)
    assert values == {2.0: 2.0, 3.0: 3.0, 4.0: 4.0}
    assert len(loopback.batches) == before + 2


def test_many_threads_that_read_at_once(session: RemoteSession, loopback: Loopback) -> None:
    v = tf.Variable(0.0)
    tf.sync()

    def program() -> None:
        for _ in range(20):
            v.assign_add(1.0)
            v.numpy()

    for thread in [start(program) for _ in range(8)]:
        thread.join(60)
        assert not thread.is_alive()
    assert v.numpy() == 160.0
    assert len(loopback.commands(Assign)) == 160
    assert [batch.seq for batch in loopback.batches] == list(range(1, len(loopback.batches) + 1))


def interrupt_when(condition: Callable[[], object]) -> threading.Thread:
    """Interrupts the main thread while it receives; again if Python missed the signal just before the wait."""
    main = threading.main_thread().ident
    assert main is not None
    here = [frame_socket._Link._receive_into.__code__]

    def interrupt() -> None:
        until(condition)
        while sys._current_frames()[main].f_code in here:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.05)

    return start(interrupt)


def receiving() -> bool:
    main = threading.main_thread().ident
    assert main is not None
    return sys._current_frames()[main].f_code is frame_socket._Link._receive_into.__code__


def test_an_interrupted_reader_sends_the_same_bytes_again(
    session: RemoteSession, loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    v = tf.Variable(1.0)
    tf.sync()
    before = len(loopback.batches)
    v.assign_add(1.0)
    loopback.gate.clear()
    thread = interrupt_when(lambda: len(loopback.batches) > before and receiving())
    with pytest.raises(KeyboardInterrupt):
        v.numpy()
    thread.join(20)
    assert "the next read waits for it" in caplog.text
    sealed = session.channel._sender.in_flight
    assert sealed is not None
    assert not session.channel.http.open_for_frames  # its connection was dropped
    v.assign_add(1.0)
    loopback.gate.set()
    assert v.numpy() == 3.0
    assert [batch.nonce for batch in loopback.batches[before:]].count(sealed.batch.nonce) == 2
    assert len({batch.nonce for batch in loopback.batches[before:]}) == 2


def test_what_another_thread_waits_for_comes_although_the_reader_that_sent_it_was_interrupted(
    session: RemoteSession, loopback: Loopback
) -> None:
    x = tf.ones(300)
    tf.sync()
    before = len(loopback.batches)
    y, z = x * 2.0, x * 3.0
    values: list[float] = []
    reply = session.channel.buffer
    with_other = threading.Event()
    advance = reply.advance

    def late(here: Position) -> Any:
        """Seals after the other thread's question is here too."""
        with_other.set()
        until(lambda: len(reply.replies()) == 2)
        return advance(here)

    reply.advance = late  # type: ignore[method-assign]
    loopback.gate.clear()

    def other() -> None:
        with_other.wait(20)
        values.append(float(z.numpy()[0]))

    waiting = start(other)
    thread = interrupt_when(lambda: len(loopback.batches) > before and receiving())
    with pytest.raises(KeyboardInterrupt):
        y.numpy()
    thread.join(20)
    reply.advance = advance  # type: ignore[method-assign]
    loopback.gate.set()
    waiting.join(20)  # no other read wakes the sender
    assert values == [3.0]
    assert len({batch.nonce for batch in loopback.batches[before:]}) == 1


# --------------------------------------------------------------------------------------------------- the right to send
def test_one_function_at_a_time_has_it() -> None:
    exclusive, entered, leave = Exclusive(), threading.Event(), threading.Event()
    thread = start(lambda: exclusive.run(lambda: (entered.set(), leave.wait(20))))
    assert entered.wait(20)
    assert not exclusive.run(lambda: pytest.fail("two at once"))
    assert not exclusive.mine
    leave.set()
    thread.join(20)
    assert exclusive.run(lambda: None)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_whatever_is_raised_it_is_free_again(error: type[BaseException]) -> None:
    exclusive = Exclusive()

    def fail() -> None:
        assert exclusive.mine
        assert not exclusive.run(lambda: pytest.fail("two at once"))
        raise error

    with pytest.raises(error):
        exclusive.run(fail)
    assert not exclusive.mine
    assert exclusive.run(lambda: None)


def test_a_position_is_entered_once_and_has_one_successor() -> None:
    recordings = [1, 2, 3, 4]
    here = Position(1)
    there = Position(2, removals=(partial(operator.delitem, recordings, slice(0, 2)),))
    here.next.extend([there, Position(2)])
    for _ in range(3):
        here.next[0].enter()
    assert recordings == [3, 4]
