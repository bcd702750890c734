"""The life of a remote session: made once, ended with the program or when nothing holds it, lost with the server."""

from __future__ import annotations

import contextvars
import gc
import io
import json
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from loopback import Loopback, session_on
from teletape.errors import ConnectionFailed, FailedPreconditionError, InvalidArgumentError, SessionEndedError

import teletape as tf
from teletape.core.network import address, http
from teletape.core.network.http import Connection
from teletape.core.network.options import ConnectOptions
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.core.sessions.sending import sealed_batch, sender

ROOT = Path(__file__).resolve().parents[3]


def senders() -> int:
    return sum(thread.name == "teletape-sender" for thread in threading.enumerate())


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Waits for a state, and fails if it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --------------------------------------------------------------------------------------------------------------- making
def test_what_makes_something_carries_one_key_however_often_it_is_sent() -> None:
    keys: list[tuple[str, str | None]] = []

    class Lossy(Loopback):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "POST":
                keys.append((request.url.path, request.headers.get("Idempotency-Key")))
                if [path for path, _ in keys].count(request.url.path) <= 2:
                    raise httpx.ReadError("the answer is lost", request=request)
            return super().handle_request(request)

    session_on(Lossy()).close()
    for path in ("/v1/sessions", "/v1/sessions/s1/attach"):
        sent = [key for requested, key in keys if requested == path]
        assert len(sent) == 3
        assert len(set(sent)) == 1
        assert sent[0]
    assert len({key for _, key in keys}) == 2


@pytest.mark.parametrize("url", ["http://gpu-box:8470", "http://192.168.1.7", "http://localhost.example.org"])
def test_a_key_is_not_sent_unencrypted_to_another_machine(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"unencrypted.*https://.*allow_insecure=True"):
        tf.connect(url, api_key="secret")
    with pytest.raises(InvalidArgumentError, match="unencrypted"):
        tf.connect(url, headers={"Authorization": "Basic c2VjcmV0"})
    Connection(ConnectOptions(url=url))
    Connection(ConnectOptions(url=url, api_key="secret", allow_insecure=True))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8470", "http://localhost:1", "http://[::1]:8470", "http://a.localhost", "https://gpu-box"]
)
def test_a_key_is_sent_to_this_machine_and_encrypted(url: str) -> None:
    Connection(ConnectOptions(url=url, api_key="secret"))


def test_the_environment_can_allow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELETAPE_ALLOW_INSECURE", "1")
    monkeypatch.setattr(http.address, "transport", lambda url, options: Loopback())
    with tf.connect("http://gpu-box:8470", api_key="secret") as session:
        assert isinstance(session, RemoteSession)
    use(LocalSession())


def test_a_session_that_cannot_be_attached_to_is_ended() -> None:
    class Interrupted(Loopback):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/attach"):
                raise KeyboardInterrupt
            return super().handle_request(request)

    loopback = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        session_on(loopback)
    assert loopback.paths[-2:] == ["POST /v1/sessions", "DELETE /v1/sessions/s1"]


# --------------------------------------------------------------------------------------------------------------- ending
def test_connecting_in_a_loop_leaves_neither_threads_nor_sessions() -> None:
    gc.collect()
    before = senders()  # of sessions that other tests have left: Keras holds variables for as long as the process lives
    loopbacks = []
    for _ in range(20):
        loopbacks.append(Loopback())
        use(session_on(loopbacks[-1]))
        v = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = v * v
        assert float(tape.gradient(y, v)) == 2.0
    del v, y, tape
    use(LocalSession())
    gc.collect()
    until(lambda: senders() <= before)
    assert all(loopback.paths[-1] == "DELETE /v1/sessions/s1" for loopback in loopbacks)


def test_an_error_that_was_raised_does_not_keep_its_session() -> None:
    before, loopback = senders(), Loopback()

    def program() -> None:
        session = session_on(loopback)
        use(session)
        rows = tf.gather(tf.Variable(tf.ones(3)), [1, 2])
        loopback.mishaps.append("ended")
        with pytest.raises(SessionEndedError):
            rows.numpy()
        use(LocalSession())

    program()
    gc.collect()
    until(lambda: senders() <= before)


def test_a_session_lives_as_long_as_a_tensor_of_it() -> None:
    loopback = Loopback()
    use(session_on(loopback))
    x = tf.ones(300) * 2.0
    use(LocalSession())
    gc.collect()
    assert x.numpy()[0] == 2.0
    del x
    gc.collect()
    until(lambda: loopback.paths[-1] == "DELETE /v1/sessions/s1")


def test_what_waits_is_delivered_when_nothing_holds_the_session_any_more() -> None:
    loopback = Loopback()
    use(session_on(loopback))
    tf.Variable(1.0).assign_add(1.0)
    use(LocalSession())
    gc.collect()
    until(lambda: loopback.paths[-1] == "DELETE /v1/sessions/s1")
    assert len(loopback.batches) == 1


def test_the_end_of_a_program_waits_for_all_sessions_together(monkeypatch: pytest.MonkeyPatch, caplog) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sender, "EXIT_PATIENCE", 0.2)
    loopbacks = [Loopback() for _ in range(5)]
    sessions = []
    for loopback in loopbacks:
        loopback.gate.clear()  # no batch is answered
        sessions.append(use(session_on(loopback)))
        tf.ones(3)
    use(LocalSession())
    began = time.monotonic()
    sender.end_all()
    assert time.monotonic() - began < 5  # and not 0.2 for each
    assert caplog.text.count("were not delivered") == 5
    assert all("DELETE /v1/sessions/s1" in loopback.paths for loopback in loopbacks)  # ended all the same
    for loopback in loopbacks:
        loopback.gate.set()


def test_the_end_of_a_program_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 and later refuse it then."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(sender, "EXIT_PATIENCE", 0.2)
    loopbacks = [Loopback() for _ in range(3)]
    for loopback in loopbacks:
        loopback.gate.clear()
        use(session_on(loopback))
        tf.ones(3)
    use(LocalSession())
    with monkeypatch.context() as ending:
        ending.setattr(threading.Thread, "start", refused)
        sender.end_all()
    assert all("DELETE /v1/sessions/s1" in loopback.paths for loopback in loopbacks)
    for loopback in loopbacks:
        loopback.gate.set()


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_an_error_that_leaves_the_block_ends_the_session_at_once(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr(sender, "_FAREWELL", 0.2)
    others: list[BaseException] = []

    def read() -> None:
        try:
            x.numpy()
        except BaseException as raised:
            others.append(raised)

    def program() -> None:
        nonlocal x
        with session:
            x = tf.ones(300)
            loopback.gate.clear()  # the server computes on
            threads.append(threading.Thread(target=contextvars.copy_context().run, args=(read,)))
            threads[0].start()
            assert loopback.arrived.wait(10)
            tf.Variable(1.0).assign_add(1.0)  # waits
            raise error("the program's own")

    session, x, threads = session_on(loopback), None, list[threading.Thread]()
    with pytest.raises(error, match="the program's own"):
        program()
    assert loopback.paths[-1] == "DELETE /v1/sessions/s1"
    assert len(loopback.batches) == 1
    assert session.closed == "the program left its block by an error"
    loopback.gate.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert loopback.paths.count("DELETE /v1/sessions/s1") == 1
    until(lambda: senders() == 0)


def test_a_read_in_a_thread_that_sends_is_refused(loopback: Loopback) -> None:
    """As by a finalizer that Python runs there: no thread would send what it asks."""
    errors: list[BaseException] = []
    session = use(session_on(loopback))
    x, y = tf.ones(300), tf.ones(300) * 2.0

    def finalizer() -> None:
        for read in (y.numpy, tf.sync):
            try:
                read()
            except FailedPreconditionError as error:
                errors.append(error)

    handle, loopback.handle_request = loopback.handle_request, None  # type: ignore[method-assign,assignment]

    def handled(request: httpx.Request) -> httpx.Response:
        assert threading.current_thread().name == "teletape-sender"
        if not errors:
            finalizer()
        return handle(request)

    loopback.handle_request = handled  # type: ignore[method-assign]
    assert x.numpy()[0] == 1.0
    assert y.numpy()[0] == 2.0
    assert len(errors) == 2
    assert "read before, and keep the value" in str(errors[0])
    loopback.handle_request = handle  # type: ignore[method-assign]
    session.close()
    use(LocalSession())


def test_a_program_ends_in_seconds_although_its_server_is_silent(tmp_path: Path) -> None:
    """A real process, a server that takes connections and says nothing after the session was made."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            sys.path.insert(0, sys.argv[1])
            from loopback import Loopback, session_on
            import teletape as tf
            from teletape.core.sessions.current import use
            loopback = Loopback()
            session = use(session_on(loopback))
            tf.sync()
            loopback.gate.clear()
            tf.ones(3)
            """
        )
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", str(program), str(Path(__file__).parent)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "the last commands of session s1 were not delivered" in done.stderr
    assert time.monotonic() - began < 50


# ------------------------------------------------------------------------------------------------ a server that is gone
class Restarting(Loopback):
    """A server that is restarted: for some requests nothing answers, then one that knows no session does.

    Attributes:
        refusals: The number of requests that nothing answers; None: it has not been restarted.
    """

    refusals: int | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/info":
            return httpx.Response(200, json={"version": "0", "catalogue": self.catalogue, "boot_id": "first"})
        if self.refusals is None:
            return super().handle_request(request)
        if self.refusals > 0:
            self.refusals -= 1
            raise httpx.ConnectError("refused", request=request)
        problem = {
            "code": "unknown_session",
            "title": "Unknown session",
            "detail": "there is no session 's1'",
            "details": {"boot_id": "second", "started": "2026-11-22T15:00:00Z"},
        }
        return httpx.Response(404, stream=httpx.ByteStream(json.dumps(problem).encode()))


def test_a_restarted_server_is_recognized_and_what_is_lost_is_said() -> None:
    loopback = Restarting()
    session = use(session_on(loopback))
    v = tf.Variable(tf.ones(300))
    tf.sync()
    v.assign_add(tf.ones(300))
    loopback.refusals = 3
    with pytest.raises(SessionEndedError) as caught:
        v.numpy()
    text = str(caught.value)
    assert "was restarted (2026-11-22T15:00:00Z)" in text
    assert "tensors, variables, functions and tapes is lost" in text
    assert "; 3 recorded commands were not executed; " in text  # ones and the assignment
    assert "tf.connect makes a new one" in text
    for call in (v.numpy, tf.sync, lambda: v + 1.0):
        with pytest.raises(SessionEndedError, match="was restarted"):
            call()
    assert loopback.refusals == 0
    session.close()
    use(LocalSession())
    assert "DELETE /v1/sessions/s1" not in loopback.paths


def test_the_waits_between_attempts_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a restarted server is recognized soon after it is there."""
    loopback = Restarting()
    session = use(session_on(loopback))
    waits: list[float] = []
    monkeypatch.setattr(http.time, "sleep", waits.append)
    loopback.refusals = 20
    tf.ones(3)
    with pytest.raises(SessionEndedError):
        tf.sync()
    assert len(waits) == 20
    assert max(waits) <= 1.5
    session.close()
    use(LocalSession())


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_silent_network_ends_and_is_reported(
    silent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http, "_READ_LIMIT", 0.05)
    monkeypatch.setattr(http, "_PATIENCE", 1.0)
    monkeypatch.setattr(http.progress, "QUIET", 0.0)
    with pytest.raises(ConnectionFailed, match=r"no answer \(ReadTimeout"):
        tf.connect(silent)
    assert f"teletape: no answer from {silent}, trying again, 0 s of 1\n" in capsys.readouterr().err


def test_a_waiting_read_reports_what_is_wrong_without_a_terminal(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Notebook(io.StringIO):
        """What the stderr of a notebook is: no terminal."""

    stream = Notebook()
    monkeypatch.setattr(http.progress, "QUIET", 0.0)
    monkeypatch.setattr(http.progress, "_STEP", 0.001)
    monkeypatch.setattr(http.progress.sys, "stderr", stream)
    session = use(session_on(loopback))
    x = tf.ones(300)
    loopback.mishaps.extend(["unreached"] * 4)
    assert x.numpy()[0] == 1.0
    assert "teletape: no answer from http://loopback, trying again, 0 s of 60\n" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    use(LocalSession())
    session.close()


def test_an_interrupt_while_it_does_not_answer_says_so_and_stops_at_once(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = use(session_on(loopback))
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    loopback.mishaps.extend(["unreached"] * 8)

    def interrupted(self: object, seconds: float = -1) -> bool:
        until(lambda: session.channel.http.trouble() is not None)
        raise KeyboardInterrupt

    with monkeypatch.context() as waiting:
        waiting.setattr(sealed_batch.Reply, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            v.numpy()
    assert "interrupted: no answer from http://loopback, trying again, 0 s of 60." in caplog.text
    assert "Nothing recorded is lost: the next read sends it again" in caplog.text
    loopback.mishaps.clear()
    assert v.numpy() == 2.0
    session.close()
    use(LocalSession())


def test_connections_are_kept_alive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        transport = address.transport(url, ConnectOptions(url=url))
        assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in transport._pool._socket_options
        transport.close()
    assert http._READ_LIMIT > 20  # the server answers 202 after 20 s


def test_a_defect_in_applying_an_answer_is_raised_and_no_thread_waits_for_ever(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = use(session_on(loopback))
    x = tf.ones(300)
    monkeypatch.setattr(sealed_batch.SealedBatch, "answered", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.numpy()
    with pytest.raises(SessionEndedError, match="could not be applied"):
        x.numpy()
    session.close()
    use(LocalSession())
    assert loopback.paths[-1] == "DELETE /v1/sessions/s1"


def test_a_read_while_another_thread_closes_the_session_does_not_wait_for_ever(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = use(session_on(loopback))
    x = tf.ones(300)
    tf.sync()
    buffer, request = session.channel.buffer, session.channel.buffer.request
    with monkeypatch.context() as late:  # after the first look
        late.setattr(buffer, "request", lambda *entries: (session.channel._sender.close(), request(*entries)))
        with pytest.raises(SessionEndedError, match="closed by the program"):
            x.numpy()
    use(LocalSession())


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_a_program_without_stderr_computes_all_the_same(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, stderr: str | None
) -> None:
    stream = None
    if stderr == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(http.progress.sys, "stderr", stream)
    monkeypatch.setattr(http.progress, "QUIET", 0.0)
    monkeypatch.setattr(http.progress, "_STEP", 0.001)
    session = use(session_on(loopback))
    loopback.mishaps.extend(["unreached", "running", "unreached"])
    assert tf.ones(300).numpy()[0] == 1.0
    session.close()
    use(LocalSession())
