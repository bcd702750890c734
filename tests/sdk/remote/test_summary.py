"""tf.summary over HTTP: summaries wait, and their values are read together."""

import gc
import subprocess
import sys
import time

import pytest
from event_files import scalars

import prepared
import teletape as tf
from serving import Server
from teletape_server.settings import Settings


def test_ten_summaries_cost_one_request(remote, tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    x = tf.ones([3])
    tf.sync()
    requests = remote.requests
    with writer.as_default():
        for step in range(10):
            tf.summary.scalar("loss", tf.reduce_sum(x) * step, step=step)
    assert remote.requests == requests + 1
    writer.close()
    assert [value for _, _, value in scalars(tmp_path)] == [3.0 * step for step in range(10)]


ENDS = {
    "the program ends": "tf.connect(url); write()",
    "its block ends": """
with tf.connect(url):
    write()
""",
    "the session is closed": "session = tf.connect(url); write(); session.close()",
    "the program leaves the session": "session = tf.connect(url, session=name); write(); session.detach()",
    "nothing holds the writer": "tf.connect(url); write(); del writer",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_last_summaries_are_written_before_the_session_ends(server_url, tmp_path, how):
    program = f"""
import sys
import teletape as tf

url, folder, name = sys.argv[1:]
writer = tf.summary.create_file_writer(folder)
w = None

def write():
    global w
    w = tf.Variable(1.0)
    writer.set_as_default()
    for step in range(7):
        w.assign_add(1.0)
        tf.summary.scalar("loss", w * 2.0, step=step)

{ENDS[how]}
"""
    arguments = [server_url, str(tmp_path), tmp_path.name.replace("_", "-")]
    done = prepared.run([sys.executable, "-P", "-c", program, *arguments])
    assert (done.returncode, done.stderr) == (0, "")
    assert [value for _, _, value in scalars(tmp_path)] == [2.0 * (step + 2) for step in range(7)]


def test_a_program_that_ends_does_not_wait_for_a_server_that_is_gone(tmp_path):
    """Elsewhere a call is patient for a minute."""
    program = """
import sys
import teletape as tf

url, folder = sys.argv[1:]
tf.connect(url)
tf.summary.create_file_writer(folder).set_as_default()
tf.summary.scalar("loss", tf.Variable(1.0) * 2.0, step=1)
print(flush=True)
input()
"""
    with Server(Settings(shutdown_grace=0.1)).running() as server:
        command = [sys.executable, "-P", "-c", program, server.url, str(tmp_path)]
        pipe = subprocess.PIPE
        child = prepared.Prepared(command, stdin=pipe, stdout=pipe, stderr=pipe)
        child.stdout.readline()
    began = time.monotonic()
    errors = child.communicate("\n")[1]
    assert "the last 1 summaries" in errors
    assert time.monotonic() - began < 50


def test_a_finalizer_reads_nothing(remote, tmp_path):
    """Python may run it in any thread, also in the one that sends."""
    writer = tf.summary.create_file_writer(tmp_path / "a")
    with writer.as_default():
        tf.summary.scalar("first", tf.reduce_sum(tf.ones([3])), step=1)
        writer._pending, waiting = [], writer._pending  # leaving the block would write it
    writer._pending = waiting
    requests = remote.requests
    del writer
    gc.collect()
    assert remote.requests == requests
    tf.summary.create_file_writer(tmp_path / "b")
    assert remote.requests == requests + 1
    assert [value for _, _, value in scalars(tmp_path / "a")] == [3.0]


def test_summaries_wait_on_while_the_server_cannot_be_reached(remote, loopback, tmp_path, monkeypatch):
    from teletape.core.network import http

    monkeypatch.setattr(http, "_PATIENCE", 0.0)
    writer = tf.summary.create_file_writer(tmp_path)
    total = tf.reduce_sum(tf.ones([3]))
    loopback.mishaps.append("unreached")
    with pytest.raises(tf.errors.ConnectionFailed), writer.as_default():
        tf.summary.scalar("loss", total, step=1)
    writer.close()
    assert [value for _, _, value in scalars(tmp_path)] == [3.0]
