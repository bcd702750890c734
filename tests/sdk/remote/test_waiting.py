"""Waiting for a server that computes for long: the line that says how far it is, interrupts, and cancelling."""

import io
import threading
import time
from typing import Any

import pytest
from teletape.errors import CancelledError

import teletape as tf
from teletape.core.network import progress
from teletape.core.sessions.remote import RemoteSession
from teletape.core.sessions.sending.sealed_batch import Reply


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("far", "shown"),
    [
        ({"done": 3, "total": 12}, "teletape [########......................] 3 of 12 commands, 4 s"),
        (
            {"done": 3, "total": 12, "iteration": 500, "iterations": 1000},
            "[###############...............] 3 of 12 commands, iteration 500 of 1,000",
        ),
        (
            {"done": 0, "total": 1, "iteration": 1234567},
            "[..............................] 0 of 1 commands, iteration 1,234,567, 4 s",
        ),
        ({}, "[..............................] waiting, 4 s"),
        ({"wait": {"reason": "it runs", "starts_in_seconds": 0.0}}, "waiting, 4 s"),
        (
            {"wait": {"reason": "ann's request came before it", "starts_in_seconds": 12.4}},
            "] waiting, 4 s; ann's request came before it (starts in about 12 s)",
        ),
        ({"wait": {"reason": "it runs, and shares", "starts_in_seconds": 0.0}}, "waiting, 4 s; it runs, and shares"),
    ],
)
def test_the_line(far: dict[str, Any], shown: str) -> None:
    assert shown in progress.line(far, 4.2)


@pytest.mark.parametrize(
    ("text", "terminal", "shown"),
    [("", True, True), ("", False, False), ("1", False, True), ("0", True, False), ("no", True, False)],
)
def test_when_it_is_shown(monkeypatch: pytest.MonkeyPatch, text: str, terminal: bool, shown: bool) -> None:
    monkeypatch.setenv("TELETAPE_PROGRESS", text)
    assert progress.shown(Terminal() if terminal else io.StringIO()) is shown


def test_nothing_is_shown_of_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, reply = Terminal(), Reply()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    reply.settle()
    progress.wait(reply, dict, lambda: None)
    assert stream.getvalue() == ""


def test_the_line_is_drawn_while_it_runs_and_wiped_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, reply = Terminal(), Reply()
    looks: list[int] = []
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "_STEP", 0.001)

    def look() -> dict[str, int] | None:
        looks.append(len(looks))
        if len(looks) == 4:
            reply.settle()
        return None if len(looks) == 1 else {"done": len(looks), "total": 4}

    progress.wait(reply, look, lambda: None)
    assert "2 of 4 commands" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_an_interrupt_says_that_the_batch_goes_on(remote: RemoteSession, loopback: Any, caplog: Any) -> None:
    x = tf.constant([1.0, 2.0])
    y = x * 2.0
    loopback.gate.clear()
    main = threading.get_ident()

    def interrupt() -> None:
        loopback.arrived.wait()
        import signal

        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        y.numpy()
    assert "tf.session().cancel()" in caplog.text
    loopback.gate.set()
    assert y.numpy().tolist() == [2.0, 4.0]


def test_a_cancelled_loop_raises_at_the_next_read_and_the_session_goes_on(server_url: str) -> None:
    with tf.connect(server_url) as session:
        x = tf.constant(1.0)

        @tf.function
        def spin(x: Any) -> Any:
            return tf.while_loop(lambda y: y > 0.0, lambda y: (y * 1.0,), (x,))[0]

        y = spin(x)
        assert isinstance(session, RemoteSession)
        stop = threading.Thread(target=_cancel_when_it_runs, args=(session,))
        stop.start()
        with pytest.raises(CancelledError, match=r"cancelled, (in a loop|inside a command)"):
            y.numpy()
        stop.join()
        assert (x + 1.0).numpy() == 2.0
        with pytest.raises(CancelledError):
            y.numpy()
    tf.connect(local=True)


def _cancel_when_it_runs(session: RemoteSession) -> None:
    deadline = time.monotonic() + 20
    while not (session.channel.progress() or {}).get("iteration") and time.monotonic() < deadline:
        time.sleep(0.01)
    session.cancel()
