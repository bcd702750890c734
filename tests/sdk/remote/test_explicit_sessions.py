"""Several sessions in one program, their list, their ends, and what a program finds in a session that it joins."""

from __future__ import annotations

import logging
import re
import sys
import threading

import numpy as np
import pytest
from teletape.errors import InvalidArgumentError, RequestError, SessionEndedError

import prepared
import teletape as tf
from serving import KEYS, Server
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession
from teletape.extras.terminal.commands import main
from teletape_server.settings import Settings

ANN = KEYS["ann"]


def test_ops_run_in_the_session_of_their_block_and_thread(server_url: str) -> None:
    home = use(LocalSession())
    far = tf.connect(server_url, default=False)
    assert tf.session() is home
    threads: list[object] = []
    with far.as_default():
        assert tf.session() is far
        w = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * w)
        with home.as_default():
            assert tf.session() is home
        thread = threading.Thread(target=lambda: threads.append(tf.session()))
        thread.start()
        thread.join()
    assert threads == [home]
    assert tf.session() is home
    with far:
        assert tape.gradient(y, w).numpy().tolist() == [2.0, 4.0]
    assert far.closed is not None
    assert tf.session() is home


def test_a_function_runs_in_each_of_several_sessions(server_url: str) -> None:
    @tf.function
    def square(x: tf.Tensor) -> tf.Tensor:
        return x * x

    sessions = [tf.connect(server_url, default=False), LocalSession(), tf.connect(server_url, default=False)]
    for number, session in enumerate(sessions, 2):
        with session:
            result = square(tf.constant(float(number)))
            assert result.session is session
            assert float(result) == number**2


def test_what_a_session_has_is_of_that_session_wherever_it_is_asked(server_url: str) -> None:
    home = use(LocalSession())
    first = tf.connect(server_url, session="shared", default=False)
    with first.as_default():
        w, total = tf.Variable([1.0, 2.0]), tf.constant(np.arange(300.0)) * 2.0
    second = tf.connect(server_url, session="shared", default=False)
    assert isinstance(second, RemoteSession)
    first.sync()
    (variable,), tensors = second.variables(), second.tensors()
    assert {value.session for value in (variable, *tensors)} == {second}
    assert tf.session() is home
    assert variable.numpy().tolist() == [1.0, 2.0]
    with second.as_default():
        variable.assign_add([1.0, 1.0])
    assert variable.numpy().tolist() == [2.0, 3.0]
    with first.as_default():
        assert (w + 0.0).numpy().tolist() == [2.0, 3.0]
    assert total.numpy().tolist() in [tensor.numpy().tolist() for tensor in tensors]
    second.detach()
    first.close()


def test_after_a_block_the_session_before_is_the_programs_again(server_url: str) -> None:
    home = use(LocalSession())
    with tf.connect(server_url) as outer:
        with tf.connect(server_url) as inner:
            assert tf.session() is inner
        assert tf.session() is outer
        with tf.connect(server_url):
            nearer = tf.connect(local=True)
            assert tf.session() is nearer
    assert tf.session() is nearer
    assert home is not nearer


def test_mixing_says_where_both_are_and_what_to_do(server_url: str) -> None:
    use(LocalSession())
    far = tf.connect(server_url, default=False)
    with far.as_default():
        x, v, unread = tf.ones(3), tf.Variable([1.0], name="w"), tf.Variable([1.0])
    pattern = (
        rf"it is in session {far.id} at {server_url}, the op runs in this process\. .*with tensor\.session\.as_default"
    )
    with pytest.raises(InvalidArgumentError, match=pattern):
        x + 1.0
    with pytest.raises(InvalidArgumentError, match=r"variable 'w:0' belongs .*tf\.Variable\(variable\.numpy\(\)\)"):
        v + 1.0
    with x.session.as_default():
        y = x + 1.0
        assert y.numpy().tolist() == [2.0] * 3
        unread.assign_add([1.0])
    far.close()
    with pytest.raises(
        InvalidArgumentError, match=r"which has ended .* known here: tf\.Variable\(variable\.numpy\(\)\)"
    ):
        v + 1.0
    assert v.numpy() == 1.0
    with pytest.raises(
        InvalidArgumentError, match=r"which has ended .* were not read and are lost: .*BackupAndRestore"
    ):
        unread + 1.0
    with far.as_default(), pytest.raises(SessionEndedError, match=r"What was read is still here, t\.numpy\(\)"):
        y * 2.0


def test_the_list_of_sessions(server: Server) -> None:
    with tf.connect(server.url, ANN, session="mine"):
        other = tf.connect(server.url, ANN, default=False)
        listing = tf.sessions()
        assert [session.id for session in listing] == ["mine", other.id]
        assert all(session.is_mine for session in listing)
        assert listing["mine"].device == "cpu"
        text = repr(listing)
        assert text.startswith(f"2 sessions at {server.url}\nsession")
        assert re.search(r"\nmine \(this program\) +cpu +0\.0 of 64 MiB +live", text)
        assert "<td>mine (this program)</td>" in listing._repr_html_()
        with pytest.raises(InvalidArgumentError, match=r"no session 'mnie' at .*did you mean 'mine'\?"):
            listing.end("mine", "mnie")
        listing[1].end()
        assert [session.id for session in tf.sessions()] == ["mine"]
        with other.as_default(), pytest.raises(SessionEndedError, match="it was deleted"):
            tf.ones(3).numpy()


def test_an_old_list_does_nothing_to_a_later_session_of_an_id(server: Server) -> None:
    with server.client() as http:
        http.post("/v1/sessions", json={"id": "mine"}).raise_for_status()
        listing = tf.sessions(server.url, ANN)
        http.post("/v1/sessions", json={"id": "mine", "replace": True}).raise_for_status()
        for act in (listing.cancel, listing.end):
            with pytest.raises(InvalidArgumentError, match=r"'mine' of this list.*has ended, and another of that id"):
                act("mine")
        assert [session.id for session in tf.sessions(server.url, ANN)] == ["mine"]
        tf.sessions(server.url, ANN).end("mine")
        with pytest.raises(SessionEndedError, match="it was deleted"):
            listing.cancel("mine")


def test_a_program_joins_a_session_that_computes_and_stops_it(
    server: Server, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tf.connect(server.url, ANN, session="mine")
    weights = tf.Variable([1.0, 2.0], name="weights")

    @tf.function
    def endless(x: tf.Tensor) -> tf.Tensor:
        return tf.while_loop(lambda i, a: i < 10_000_000, lambda i, a: (i + 1, tf.tanh(a @ a)), [0, x])[1]

    x = tf.random.normal([64, 64])
    weights.assign_add([1.0, 1.0])
    tf.sync()
    far = endless(x)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            far.numpy()
        except tf.errors.CancelledError as error:
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    while not tf.sessions(server.url, ANN)["mine"].running:
        pass
    joined = tf.connect(server.url, ANN, session="mine")
    assert re.search(
        rf"session mine computes.*python -m teletape sessions {server.url} --cancel mine` stops it", caplog.text
    )
    assert thread.is_alive()
    assert main(["sessions", server.url, "--api-key", ANN, "--cancel", "mine"]) == 0
    assert capsys.readouterr().out.startswith("cancelled: mine\n1 session at")
    thread.join()
    assert failures
    assert [variable.numpy().tolist() for variable in joined.variables()] == [[2.0, 3.0]]
    assert main(["sessions", server.url, "--api-key", ANN, "--cancel", "other"]) == 1
    joined.detach()
    first.close()


def test_an_admin_sees_whose_a_session_is(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        Server(Settings(api_keys=KEYS, admins=frozenset({"ann"}))).running() as server,
        tf.connect(server.url, KEYS["bob"], session="a"),
        tf.connect(server.url, ANN, session="a"),
    ):
        assert main(["sessions", server.url, "--api-key", ANN]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"session +owner +device", shown)
        assert re.search(r"\nbob:a +bob +cpu", shown)
        assert re.search(r"\na \(this program\) +ann +cpu", shown)
        assert "owner" not in repr(tf.sessions(server.url, KEYS["bob"]))
        tf.sessions(server.url, ANN).end("bob:a")
        assert [session.id for session in tf.sessions(server.url, ANN)] == ["a"]


def test_a_list_without_an_address() -> None:
    use(LocalSession())
    with pytest.raises(InvalidArgumentError, match="pass the server's address, or set TELETAPE_URL"):
        tf.sessions()


def test_sessions_of_killed_programs_are_ended_so_that_another_one_begins(server: Server) -> None:
    program = f"""
import os, teletape as tf
tf.connect({server.url!r}, {ANN!r}, session="lost")
weights = tf.Variable([1.0, 2.0], name="weights")
weights.assign_add([1.0, 1.0])
total = tf.ones(3) * 2.0
tf.sync()
for _ in range(2):
    tf.connect({server.url!r}, {ANN!r})
os._exit(9)  # as a kernel that is killed
"""
    assert prepared.run([sys.executable, "-P", "-c", program]).returncode == 9
    with pytest.raises(
        RequestError, match=r"the limit is 3.*tf\.sessions\('http://.*python -m teletape sessions .*--end"
    ):
        tf.connect(server.url, ANN)
    with tf.connect(server.url, ANN, session="lost") as session:
        (weights,), (total,) = session.variables(), session.tensors()
        assert weights.name == "weights:0"
        assert weights.numpy().tolist() == [2.0, 3.0]
        assert total.numpy().tolist() == [2.0] * 3
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights)
        weights.assign_sub(tape.gradient(loss, weights))
        del weights, total
        assert session.variables()[0].numpy().tolist() == [-2.0, -3.0]
        tf.sessions().end()
        assert [session.id for session in tf.sessions()] == ["lost"]
        tf.connect(server.url, ANN).close()


def test_a_session_with_a_name_is_left_and_joined_again(server_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "teletape")
    session = tf.connect(server_url, session="mine")
    assert not session.joined
    w = tf.Variable(3.0, name="w")
    session.detach()
    with pytest.raises(SessionEndedError, match="the program has left it"):
        w.assign(1.0)
    with tf.connect(server_url, session="mine") as session:
        assert session.joined
        assert re.search(r"session mine is joined: its last request ended at 20\d\d-\S+Z", caplog.text)
        assert [float(variable) for variable in session.variables()] == [3.0]
    with tf.connect(server_url, session="mine") as session:  # the former one has been closed
        assert not session.joined
    with tf.connect(server_url) as nameless, pytest.raises(InvalidArgumentError, match="has no name"):
        nameless.detach()


def test_names_that_no_session_can_have(server_url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is no name for a session"):
        tf.connect(server_url, session="my session")
    with pytest.raises(InvalidArgumentError, match="there is no address of one"):
        tf.connect(local=True, session="mine")
    with (
        tf.connect(server_url, session="mine"),
        pytest.raises(InvalidArgumentError, match="computes on cpu, and device='gpu' was passed"),
    ):
        tf.connect(server_url, session="mine", device="gpu")


def test_the_device_of_a_tensor_is_where_it_is(server_url: str) -> None:
    use(LocalSession())
    assert tf.ones(2).device == "/job:localhost/replica:0/task:0/device:CPU:0"
    with tf.connect(server_url):
        device = tf.ones(2).device
        assert (
            device
            == tf.Variable(1.0).device
            == f"/job:127.0.0.1:{server_url.rpartition(':')[2]}/replica:0/task:0/device:CPU:0"
        )
        with tf.device(device):
            pass


JOINS = """
import sys

import teletape as tf

session = tf.connect(sys.argv[1], session="notebook")
print([variable.name for variable in session.variables()], [tensor.shape.as_list() for tensor in session.tensors()])
session.close()
"""


def test_a_program_that_has_made_nothing_sees_what_the_former_one_has_made(server_url: str) -> None:
    """Of the modules of variables and tensors it has used none."""
    session = tf.connect(server_url, session="notebook")
    assert isinstance(session, RemoteSession)
    v, x = tf.Variable(2.0, name="v"), tf.ones([2, 3]) * 2.0
    session.detach()
    done = prepared.run([sys.executable, "-P", "-c", JOINS, server_url])
    assert (done.stdout.split("] ")[0], done.stderr) == ("['v:0'", "")
    assert "[2, 3]" in done.stdout
    del v, x
    tf.connect(local=True)
