"""The SDK on a system without what only Unix has: no forks, no Unix sockets, no `poll`, no files in memory."""

import subprocess
import sys

PROGRAM = """
import os, select, signal, socket, sys

for module, names in [
    (os, "fork forkpty register_at_fork memfd_create sched_getaffinity getuid geteuid getpgid killpg"),
    (socket, "AF_UNIX CMSG_LEN SCM_RIGHTS"),
    (select, "poll epoll"),
    (signal, "SIGALRM SIGKILL SIGHUP setitimer alarm pthread_sigmask"),
]:
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("grp", "pwd", "resource", "termios", "trio"):
    sys.modules[name] = None  # its import fails; that of trio, which httpx looks for, needs what is not there

import teletape as tf

with tf.connect(sys.argv[1]):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.function(lambda x: x * x)(x))
    print(tape.gradient(y, x).numpy().tolist(), len(tf.sessions(sys.argv[1])) > 0)
"""


def test_a_program_connects_and_computes(server_url: str) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM, server_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[2.0, 4.0] True\n", "")
