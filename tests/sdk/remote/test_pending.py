"""What `session.pending()` says: what waits to be sent, what a read would fetch, and that it sends nothing."""

from __future__ import annotations

import threading

import numpy as np
from loopback import Loopback

import teletape as tf
from serving import until
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession


def test_commands_that_wait_are_counted_by_op_and_line(remote: RemoteSession, loopback: Loopback) -> None:
    requests = remote.requests
    x = tf.constant(np.zeros(300, np.float32))
    for _ in range(3):
        x = x * 2.0
    pending = remote.pending()
    assert [(line.number, line.command, line.nbytes) for line in pending] == [(1, "constant", 1200), (3, "mul", 0)]
    assert all("test_pending.py:" in line.where for line in pending)
    assert (pending.commands, pending.nbytes, pending.computes) == (4, 1200, False)
    text = repr(pending)
    assert text.startswith(
        "4 commands wait to be sent, with 1,200 bytes of tensors: a read sends all; 3 dropped values"
    )
    assert text.splitlines()[1].split() == ["count", "command", "bytes", "recorded", "at"]
    assert remote.requests == requests
    assert loopback.batches == []
    tf.sync()
    until(lambda: repr(remote.pending()) == "nothing waits to be sent")
    y = x * 2.0
    del x
    assert repr(remote.pending()).splitlines()[0] == (
        "1 command waits to be sent, with 0 bytes of tensors: a read sends all; 1 dropped value is released then"
    )
    del y
    tf.sync()
    sent = [command for command in loopback.commands() if command.verb in ("constant", "op")]
    assert len(sent) == pending.commands + 1
    assert repr(remote.pending()) == "nothing waits to be sent"


def test_what_a_read_would_fetch_is_what_it_fetches(remote: RemoteSession, loopback: Loopback) -> None:
    first, *others = tf.split(tf.range(900.0), 3)
    v = tf.Variable(tf.ones(300))
    v.assign_add(first)
    pending = remote.pending(first, tf.constant(1.0))  # a small constant is known here
    assert [(line.number, line.nbytes, line.where) for line in pending.reads] == [
        (1, 1200, "it is read"),
        (3, 3600, "it comes along"),
    ]
    assert "it comes along" in repr(pending)
    first.numpy()
    assert len([command for command in loopback.commands() if command.verb == "fetch"]) == 4
    assert [remote.pending(value).reads for value in (first, v, *others)] == [()] * 4


def test_what_a_read_would_have_computed_is_what_it_computes(remote: RemoteSession, loopback: Loopback) -> None:
    weights = [tf.Variable(tf.fill([size], 2.0)) for size in (300, 400, 500)]

    def changed() -> None:
        for weight in weights:
            weight.assign_add(tf.ones_like(weight))

    def read() -> list[float]:
        return [float(tf.reduce_sum(weight * weight)) for weight in weights]

    for _ in range(3):
        changed()
        read()
    changed()
    first = tf.reduce_sum(weights[0] * weights[0])
    requests, commands = remote.requests, len(loopback.commands())
    reads = remote.pending(first).reads
    assert (2, 8, "it is computed and comes along, as the last time") in [
        (line.number, line.nbytes, line.where) for line in reads
    ]
    assert (remote.requests, len(loopback.commands())) == (requests, commands)
    assert read() == [36.0 * 300, 36.0 * 400, 36.0 * 500]
    assert remote.requests == requests + 1
    other = tf.reduce_max(weights[0])
    assert not any("computed" in line.where for line in remote.pending(other).reads)


def test_a_batch_that_is_under_way_is_named(remote: RemoteSession, loopback: Loopback) -> None:
    loopback.gate.clear()
    tf.ones(300)
    thread = threading.Thread(target=remote.sync)
    thread.start()
    assert loopback.arrived.wait(10)
    x = tf.ones(300) * 2.0
    pending = remote.pending(x)
    assert (pending.commands, pending.computes) == (3, True)
    assert "; an earlier batch is under way, which it waits for" in repr(pending)
    loopback.gate.set()
    thread.join()


def test_a_notebook_shows_a_table(remote: RemoteSession) -> None:
    tf.ones(3)
    page = remote.pending()._repr_html_()
    assert page.startswith("<p>2 commands wait to be sent")
    assert "<th>command</th>" in page
    assert "<td>fill</td>" in page


def test_in_this_process_nothing_waits() -> None:
    session = LocalSession()
    with session.as_default():
        assert len(session.pending(tf.ones(3))) == 0
    assert session.pending()[:] == []
    assert session.pending()._repr_html_() == "<p>nothing waits to be sent</p>"
