"""A program goes on, with the same numbers, while its server is killed and stopped: it waits, and says so."""

import logging
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest

import teletape as tf
from prepared import Prepared
from teletape.extras.terminal.commands import main


class Restarted:
    """`teletape serve` with a folder for data, at one address from start to start."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        serve = ["-P", "-m", "teletape_server.cli", "serve", "--port", str(port)]
        self._command = [sys.executable, *serve, "--data-dir", str(folder)]
        self._process: subprocess.Popen[str] | None = None
        self._starting: threading.Thread | None = None

    def start(self, popen: Callable[..., subprocess.Popen[str]] = Prepared) -> None:
        self._process = popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        assert re.search("http://", self._process.stdout.readline())

    def end(self, how: str) -> None:
        """Ends the server at once or in order; waits until it has ended."""
        if self._starting is not None:
            self._starting.join()
        assert self._process is not None
        getattr(self._process, how)()
        self._process.communicate()

    def end_and_start(self, how: str) -> None:
        """Ends the server, and starts another one while the program goes on: as slowly as users meet it."""
        self.end(how)
        self._starting = threading.Thread(target=self.start, args=[partial(subprocess.Popen, text=True)])
        self._starting.start()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Restarted]:
    server = Restarted(tmp_path)
    server.start()
    yield server
    server.end("kill")


def trained(server: Restarted, ends: Mapping[int, str]) -> np.ndarray:
    """The weights after steps with momentum, before some of which the server ends."""
    weights, momentum = tf.Variable(np.linspace(0, 1, 8, dtype=np.float32)), tf.Variable(np.zeros(8, np.float32))
    for step in range(30):
        if step in ends:
            server.end_and_start(ends[step])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(weights) * weights)
        momentum.assign(0.9 * momentum + tape.gradient(loss, weights))
        weights.assign_sub(0.1 * momentum)
        float(loss)
    return weights.numpy()


@pytest.mark.long
def test_a_training_goes_on_with_the_same_numbers(
    server: Restarted, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "teletape")
    with tf.connect(server.url, session="mine"):
        undisturbed = trained(server, {})
        assert np.array_equal(trained(server, {7: "kill", 21: "terminate"}), undisturbed)
        server.end("kill")
        server.start()
        tf.connect(server.url, session="mine", default=False).detach()
    assert "trying again" in capfd.readouterr().err
    assert re.search("session mine is joined as its last answer left it: the server started again at 20", caplog.text)


@pytest.mark.long
def test_the_terminal_parks_a_session_and_its_program_goes_on(
    server: Restarted, capsys: pytest.CaptureFixture[str]
) -> None:
    with tf.connect(server.url, session="mine", durability="journal-sync"):
        assert httpx.get(f"{server.url}/v1/sessions/mine", trust_env=False).json()["durability"] == "journal-sync"
        weights = tf.Variable([1.0, 2.0])
        tf.sync()
        assert main(["sessions", server.url, "--park", "mine"]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"parked: mine\n.*\nmine \(this program\) .* MiB +\d+\.\d MiB +parked ", shown, re.S)
        assert weights.assign_add([1.0, 1.0]).numpy().tolist() == [2.0, 3.0]
        assert tf.sessions()["mine"].state == "live"
