"""Timeouts of reads: the server stops, the error is the reading line's, and the session goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from loopback import Loopback, session_on
from teletape.errors import DeadlineExceededError, InvalidArgumentError
from test_life_of_a_session import until

import teletape as tf
from serving import KEYS, Server
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.core.sessions.sending import sender
from teletape_server.settings import Settings

LONG = 1 << 30  #: Iterations that take minutes.


@pytest.fixture(scope="module")
def patient() -> Iterator[Server]:
    """A server that lets a loop run for ever, and answers progress after a short time."""
    with Server(Settings(api_keys=KEYS, max_iterations=1 << 40, patience=0.2, shutdown_grace=0.1)).running() as server:
        yield server


@pytest.fixture
def session(patient: Server) -> Iterator[RemoteSession]:
    with tf.connect(patient.url, api_key=KEYS["ann"], timeout=0.3) as session:
        assert isinstance(session, RemoteSession)
        yield session


@tf.function
def counted(limit: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i: i < limit, lambda i: (i + 1,), (tf.constant(0),))[0]


def busy(server: Server) -> int:
    with server.client() as http:
        return sum(facts["running"]["requests"] for facts in http.get("/v1/sessions").json()["sessions"])


# ---------------------------------------------------------------------------------------------------------------- reads
def test_a_late_read_stops_the_server_and_raises_at_its_own_line(session: RemoteSession, patient: Server) -> None:
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    late = counted(tf.constant(LONG))
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=r"not done within 0\.3 s, the timeout of this read") as caught:
        late.numpy()
    assert time.monotonic() - began < 3.0
    frames = [entry for entry in caught.traceback if str(entry.path) == __file__]
    assert "late.numpy()" in str(frames[0].statement)
    until(lambda: not busy(patient))
    assert v.numpy() == 2.0  # what was done before stays, and the session goes on
    with pytest.raises(DeadlineExceededError):  # the value was not made
        late.numpy()


@pytest.mark.parametrize("read", ["float", "sync", "gradient", "description"])
def test_every_wait_has_the_timeout(session: RemoteSession, read: str) -> None:
    with tf.GradientTape() as tape:
        x = tf.constant(1.0)
        tape.watch(x)
        y = x * tf.cast(counted(tf.constant(LONG)), tf.float32)
    reads: dict[str, Callable[[], object]] = {
        "float": lambda: float(y),
        "sync": tf.sync,
        "gradient": lambda: tape.gradient(y, x).numpy(),
        "description": tape.memory,
    }
    with pytest.raises(DeadlineExceededError):
        reads[read]()


def test_a_block_has_a_timeout_of_its_own(patient: Server) -> None:
    with tf.connect(patient.url, api_key=KEYS["ann"]) as session:
        late = counted(tf.constant(LONG))
        with session.with_options(timeout=0.05) as same:
            assert same is session
            with pytest.raises(DeadlineExceededError, match=r"within 0\.05 s"):
                late.numpy()
        assert session.options is not None
        assert session.options.current_timeout is None
        with session.with_options(timeout=60.0):
            assert counted(tf.constant(10)).numpy() == 10
        with tf.connect(local=True, default=False).with_options(timeout=1.0) as other:
            assert other.local


def test_a_block_is_of_its_session_and_of_its_thread(patient: Server) -> None:
    options = {"api_key": KEYS["ann"]}
    with tf.connect(patient.url, **options) as first, tf.connect(patient.url, default=False, **options) as other:
        assert first.options is not None
        assert other.options is not None
        timeouts: list[float | None] = []

        def note() -> None:
            timeouts.extend([first.options.current_timeout, other.options.current_timeout])  # type: ignore[union-attr]

        with first.with_options(timeout=5.0), first.with_options(timeout=2.0):
            note()
            thread = threading.Thread(target=note)
            thread.start()
            thread.join()
        assert timeouts == [2.0, None, None, None]


def test_a_timeout_that_cannot_be_meant(session: RemoteSession) -> None:
    for timeout in (0, -1.0, "2"):
        with pytest.raises(InvalidArgumentError, match="timeout is a number of seconds above 0"):
            session.with_options(timeout=timeout).__enter__()  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="timeout is a number of seconds above 0"):
            session.close(timeout=timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize(("timeouts", "limit"), [((5.0, 9.0), "9.000000"), ((5.0, None), None)])
def test_the_server_gets_as_long_as_the_last_reader_waits(
    timeouts: tuple[float | None, ...], limit: str | None
) -> None:
    """Two threads wait for one batch, which waits for the one before it."""
    limits: list[str | None] = []

    class Noting(Loopback):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/batch"):
                limits.append(request.headers.get("Teletape-Time-Limit"))
            return super().handle_request(request)

    loopback = Noting()
    session = use(session_on(loopback))
    assert isinstance(session, RemoteSession)
    loopback.gate.clear()

    def read(timeout: float | None) -> None:
        with session.with_options(timeout=timeout):
            (tf.ones(3) + 1.0).numpy()

    threads = [threading.Thread(target=read, args=(timeout,)) for timeout in (None, *timeouts)]
    threads[0].start()
    assert loopback.arrived.wait(10)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(session.channel.buffer.replies()) == 2)
    loopback.gate.set()
    for thread in threads:
        thread.join()
    assert limits == [None, limit]
    use(LocalSession())
    session.close()


# ------------------------------------------------------------------------------------- a server that does not keep time
@pytest.fixture
def silent() -> Iterator[RemoteSession]:
    """The program's session, on a server that executes a batch and keeps the answer back."""
    loopback = Loopback()
    session = use(session_on(loopback))
    loopback.gate.clear()
    yield session  # type: ignore[misc]
    loopback.gate.set()
    use(LocalSession())
    session.close()


def test_a_server_that_says_nothing_is_left_at_the_timeout_and_nothing_is_lost(silent: RemoteSession) -> None:
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    value = v + 0.0
    with (
        silent.with_options(timeout=0.05),
        pytest.raises(DeadlineExceededError, match=r"no answer within 0\.05 s, the timeout"),
    ):
        value.numpy()
    gate = silent.channel.http.options.http_client._transport.gate  # type: ignore[union-attr]
    gate.set()
    assert v.numpy() == 2.0


def test_a_batch_that_is_sent_again_after_its_reader_has_left_has_no_limit() -> None:
    """What was recorded is executed, however long that takes: only the reader's time was over."""
    limits: list[str | None] = []

    class Noting(Loopback):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/batch"):
                limits.append(request.headers.get("Teletape-Time-Limit"))
            return super().handle_request(request)

    loopback = Noting()
    session = use(session_on(loopback))
    loopback.mishaps.extend(["unreached"] * 1000)
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    with session.with_options(timeout=0.1), pytest.raises(DeadlineExceededError):
        v.numpy()
    in_time = len(limits)
    until(lambda: len(limits) > in_time)  # it is sent again
    loopback.mishaps.clear()
    assert v.numpy() == 2.0
    assert limits[0] == "0.100000"
    assert set(limits[in_time:]) == {None}
    use(LocalSession())
    session.close()


def test_a_server_that_cannot_be_reached_is_named(loopback: Loopback) -> None:
    session = use(session_on(loopback))
    loopback.mishaps.extend(["unreached"] * 1000)
    x = tf.ones(3)
    with (
        session.with_options(timeout=0.1),
        pytest.raises(DeadlineExceededError, match="no answer from http://loopback"),
    ):
        (x + 1.0).numpy()
    loopback.mishaps.clear()
    use(LocalSession())
    session.close()


# ----------------------------------------------------------------------------------------------------------------- ends
def test_a_close_with_a_timeout_stops_the_server_and_ends_the_session(patient: Server) -> None:
    session = tf.connect(patient.url, api_key=KEYS["ann"])
    late = counted(tf.constant(LONG))
    assert late.shape == ()
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        session.close(timeout=0.3)
    assert time.monotonic() - began < 3.0
    assert session.closed == "it was not done within the timeout of its end"
    with patient.client() as http:
        assert session.id not in [facts["id"] for facts in http.get("/v1/sessions").json()["sessions"]]  # type: ignore[attr-defined]


def test_a_close_in_time_delivers_what_waits(patient: Server) -> None:
    with tf.connect(patient.url, api_key=KEYS["ann"], session="kept") as session:
        v = tf.Variable(1.0, name="v")
        v.assign_add(1.0)
        session.detach()  # type: ignore[attr-defined]
    session = tf.connect(patient.url, api_key=KEYS["ann"], session="kept")
    assert [float(v) for v in session.variables()] == [2.0]  # type: ignore[attr-defined]
    session.close(timeout=5.0)
    assert session.closed == "it was closed by the program"


def test_a_block_that_an_interrupt_leaves_ends_within_two_seconds_though_the_server_is_silent() -> None:
    class Silent(Loopback):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "DELETE" and not self.gate.is_set():
                self.gate.wait(request.extensions["timeout"]["read"])
                raise httpx.ReadTimeout("nothing came", request=request)
            return super().handle_request(request)

    assert sender._FAREWELL <= 1.0
    loopback = Silent()

    def program() -> None:
        with session_on(loopback):
            tf.ones(300)
            loopback.gate.clear()
            threading.Thread(target=tf.sync, daemon=True).start()
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        program()
    assert time.monotonic() - began < 5.0  # on a busy machine
    loopback.gate.set()


PROGRAM = """
import sys

import teletape as tf

with tf.connect(sys.argv[1], api_key=sys.argv[2]):
    late = tf.function(lambda x: tf.while_loop(lambda y: y > 0.0, lambda y: (y * 1.0,), (x,))[0])(tf.constant(1.0))
    late.numpy()
"""


def test_ctrl_c_in_a_block_ends_the_program_and_frees_the_server(patient: Server) -> None:
    program = subprocess.Popen([sys.executable, "-P", "-c", PROGRAM, patient.url, KEYS["bob"]], stderr=subprocess.PIPE)
    try:
        with patient.client("bob") as http:

            def sessions() -> list[dict[str, Any]]:
                listed: list[dict[str, Any]] = http.get("/v1/sessions").json()["sessions"]
                return listed

            until(lambda: any(facts["running"].get("iteration") for facts in sessions()), 30.0)
            began = time.monotonic()
            program.send_signal(signal.SIGINT)
            _, errors = program.communicate(timeout=30)
            assert time.monotonic() - began < 10.0  # two seconds, and the end of the interpreter on a busy machine
            until(lambda: sessions() == [])
    finally:
        program.kill()
    assert program.returncode != 0
    assert b"KeyboardInterrupt" in errors
