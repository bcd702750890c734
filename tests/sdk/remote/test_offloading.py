"""Which loops become one command: what is logged of it, and the settings that decide it."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loopback import Loopback

import teletape as tf
from teletape.core.program import logs
from teletape.core.sessions import current
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.tf.control_flow.purity import impurity
from teletape_engine import commands

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def new_messages(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setattr(logs, "_counts", {})
    SEEN.clear()
    with caplog.at_level(logging.INFO, "teletape"):
        yield


def notes(y: Any) -> Any:
    SEEN.append(1)
    return y * 2.0


def doubles(y: Any) -> Any:
    return y * 2.0


def doubling(body: Callable[[Any], Any]) -> float:
    return float(tf.while_loop(lambda y: y < 50.0, lambda y: (body(y),), [tf.constant(1.0)])[0])


def loops_sent(loopback: Loopback) -> int:
    return len(loopback.commands(commands.While))


# ------------------------------------------------------------------------------------------------------------ messages
def test_what_becomes_of_a_loop_is_logged_once(
    remote: RemoteSession, loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert doubling(doubles) == 64.0
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "runs as one command: its functions only compute" in caplog.text
    assert "test_offloading.py:" in caplog.text
    assert loops_sent(loopback) == 2


def test_why_a_loop_is_no_command_is_logged(
    remote: RemoteSession, loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    def reads(y: Any) -> Any:
        return y * 2.0 if bool(y > 0.0) else y

    assert (doubling(notes), len(SEEN)) == (64.0, 6)
    assert doubling(reads) == 64.0
    assert loops_sent(loopback) == 0
    by_effect, by_trace = caplog.messages
    assert "iteration by iteration: it calls 'body', where it uses the attribute 'append'" in by_effect
    assert "iteration by iteration: its body cannot be traced: it reads a value" in by_trace
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]


def test_maps_and_folds_say_it_too_and_short_ones_nothing(
    remote: RemoteSession, caplog: pytest.LogCaptureFixture
) -> None:
    tf.map_fn(doubles, tf.range(3.0))
    assert not caplog.messages
    tf.map_fn(doubles, tf.range(30.0))
    tf.foldl(lambda total, y: total + notes(y), tf.range(30.0))
    assert ["one command" in message for message in caplog.messages] == [True, False]


def test_nothing_is_logged_in_this_process_or_in_a_trace(
    remote: RemoteSession, caplog: pytest.LogCaptureFixture
) -> None:
    tf.function(lambda: tf.while_loop(lambda y: y < 9.0, lambda y: (notes(y),), [tf.constant(1.0)])[0])()
    current.use(LocalSession())
    doubling(notes)
    assert not caplog.messages


def changes_a_global() -> None:
    global SEEN
    SEEN = []


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (doubles, None),
        (lambda: unheard_of, "it uses 'unheard_of', which has no value"),  # type: ignore[name-defined]  # noqa: F821
        (changes_a_global, "it changes 'SEEN'"),
        (lambda: doubles(notes(1)), "it calls 'notes', where it uses the attribute 'append'"),
        (lambda y: y.numpy(), "it uses the attribute 'numpy'"),
        (lambda y: tf.random.normal([]), "it uses 'teletape.random.normal', which may have an effect or change"),
        (lambda y, memory=[]: y, 'it uses "an argument\'s default", which may have an effect or change'),
        (print, "it is no function written in Python"),
        ((lambda y: (yield y)), "it has the instruction "),
    ],
)
def test_reasons(function: Any, reason: str | None) -> None:
    text = impurity(function)
    assert text == reason or (reason is not None and text is not None and text.startswith(reason))


def test_a_function_that_is_in_no_list_may_have_an_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    def ours(y: Any) -> Any:
        return y

    ours.__module__ = "teletape.tf.ops.something_new"
    assert impurity(lambda y: ours(y)) == "it uses 'ours', which may have an effect or change"
    ours.__module__ = "teletape.tf.ops.linalg.norms"
    assert impurity(lambda y: ours(y)) is None


# ------------------------------------------------------------------------------------------------------------ settings
def test_off_means_iterations(remote: RemoteSession, loopback: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    remote.offload_loops = False
    assert doubling(doubles) == 64.0
    assert loops_sent(loopback) == 0
    assert "iteration by iteration: offload_loops is off" in caplog.text


def test_on_means_one_command_whatever_the_body_does_in_python(
    remote: RemoteSession, loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    remote.offload_loops = True
    assert (doubling(notes), len(SEEN)) == (64.0, 2), "the condition before the first iteration is known here"
    assert loops_sent(loopback) == 1
    assert "runs as one command: offload_loops is on" in caplog.text


def test_on_refuses_what_cannot_be_one_command(remote: RemoteSession) -> None:
    remote.offload_loops = True
    with pytest.raises(tf.errors.UnimplementedError, match=r"body .*its body cannot be traced: it reads a value"):
        doubling(lambda y: y * 2.0 if bool(y > 0.0) else y)
    with pytest.raises(tf.errors.UnimplementedError, match="shape"):
        tf.while_loop(lambda y: tf.reduce_sum(y) < 9.0, lambda y: (tf.concat([y, y], 0),), [tf.constant([1.0])])


@pytest.mark.parametrize(("setting", "expected"), [(None, None), ("0", False), ("1", True)])
@pytest.mark.parametrize("argument", [None, False, True])
def test_the_argument_comes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, expected: bool | None, argument: bool | None
) -> None:
    monkeypatch.delenv("TELETAPE_OFFLOAD_LOOPS", raising=False)
    if setting is not None:
        monkeypatch.setenv("TELETAPE_OFFLOAD_LOOPS", setting)
    session = tf.connect(local=True, offload_loops=argument)
    assert session.offload_loops is (expected if argument is None else argument)
    monkeypatch.setattr(current, "_current", None)
    monkeypatch.delenv("TELETAPE_URL", raising=False)
    assert current.current().offload_loops is expected
