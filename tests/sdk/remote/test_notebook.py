"""A notebook's kernel, as Jupyter runs it: what its cells show, their errors, interrupts, and a server that ends."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from serving import Server
from teletape_server.settings import Settings

FOLDER = Path(__file__).resolve().parent
Message = tuple[str, dict[str, Any]]

FIRST = """
import teletape as tf
from teletape.core.network import progress
progress.QUIET = 0.1
x = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="x")
"""
LONG = """
@tf.function
def long(x):
    return tf.while_loop(lambda i, y: i < 10**9, lambda i, y: (i + 1, tf.tanh(y @ y)), [0, x])[1]
large = tf.ones([300, 300])
"""


class Outputs(list[Message]):
    """What a cell has sent: the type and the content of each message."""

    def of(self, *types: str) -> list[dict[str, Any]]:
        return [content for type, content in self if type in types]

    @property
    def printed(self) -> str:
        return "".join(content["text"] for content in self.of("stream"))

    @property
    def value(self) -> dict[str, str]:
        """The value of the cell's last line, by MIME type."""
        assert self.of("error") == []
        [content] = self.of("execute_result")
        return content["data"]

    @property
    def error(self) -> str:
        [content] = self.of("error")
        return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"]))


class Kernel:
    """A kernel in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(connection_file=str(folder / "kernel.json"), transport="ipc")
        command = [sys.executable, "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager._kernel_spec = KernelSpec(argv=command, display_name="Python", language="python")
        settings = {"IPYTHONDIR": str(folder), "JUPYTER_RUNTIME_DIR": str(folder), "PYTHONPATH": str(FOLDER)}
        self.manager.start_kernel(env=os.environ | settings)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=100)

    def run(self, cell: str, until: Callable[[Outputs], bool] | None = None) -> Outputs:
        """Runs a cell. It is interrupted when its outputs are as `until` says."""
        number, outputs = self.client.execute(cell), Outputs()
        while True:
            message = self.client.get_iopub_msg(timeout=100)
            if message["parent_header"].get("msg_id") != number:
                continue
            type, content = message["msg_type"], message["content"]
            if type == "status" and content["execution_state"] == "idle":
                return outputs
            if type not in ("status", "execute_input"):
                outputs.append((type, content))
                if until is not None and until(outputs):
                    until = None
                    self.manager.interrupt_kernel()

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.end()


@pytest.fixture(params=["in its process", "over HTTP"])
def place(request: pytest.FixtureRequest, kernel: Kernel) -> str:
    """Where the kernel computes; it is connected, and has the cell FIRST."""
    url = request.getfixturevalue("server_url") if request.param == "over HTTP" else None
    assert kernel.run(f"{FIRST}\ntf.connect({url!r}, local={url is None})\n{FIRST}").of("error") == []
    return request.param


def test_what_values_show(kernel: Kernel, place: str) -> None:
    session = kernel.run("tf.session()").value
    if place == "over HTTP":
        for fact in ("server", "teletape", "device", "memory", "MiB free", "until"):
            assert fact in session["text/html"]
    assert kernel.run("x").value["text/plain"].startswith("<tf.Variable 'x:0' shape=(2, 2) dtype=float32, numpy=\n")
    tape = kernel.run("with tf.GradientTape() as tape:\n    y = tf.reduce_sum(x @ x)\ntape").value
    assert "ops, " in tape["text/plain"]
    assert " bytes kept" in tape["image/svg+xml"]
    assert re.match(r"<GradientTape paused, \d ops, watching 1>\n<TapeGraph: ", tape["text/plain"])
    assert "[connected]" in kernel.run("tape.explain(y, x)").value["text/html"]
    assert "numpy=\narray([[ 7., 11.],\n" in kernel.run("tape.gradient(y, x)").value["text/plain"]
    profile = kernel.run("with tf.session().profile() as profile:\n    float(y + 1.0)\nprofile").value
    assert "<table>" in profile["text/html"]
    assert ", line 2" in profile["text/html"]


def test_an_error_shows_the_lines_of_the_cell(kernel: Kernel, place: str) -> None:
    error = kernel.run("def f(x):\n    return x @ tf.ones([3, 4])\nf(x)").error
    assert re.findall(r"-+> (\d+)", error) == ["3", "2"]
    assert re.search(r"Cell In\[\d+\], line 2, in f\(x\)", error)
    assert "[Op:MatMul]" in error
    assert "File " not in error
    traced = kernel.run("@tf.function\ndef g(x):\n    y = x * 2.0\n    return y @ tf.ones([3, 4])\ng(x)").error
    assert re.findall(r"-+> (\d+)", traced) == ["5", "4"]
    assert "ipykernel_" not in traced


def test_what_ipython_shows_is_read_by_the_cell(kernel: Kernel, server_url: str) -> None:
    kernel.run(f"{FIRST}\ntf.connect({server_url!r})")
    kernel.run("tf.constant([1.0, 2.0]) * 2.0")
    assert re.search(r"1 reads at Cell In\[\d+\], line 1$", kernel.run("print(tf.session().summary())").printed.strip())


def test_await_while_the_kernels_loop_runs(kernel: Kernel, place: str) -> None:
    kernel.run("import asyncio\nawait asyncio.sleep(0)\nawait tf.sync_async()")
    value = kernel.run("(await (x * 2.0)).tolist()").value
    assert value["text/plain"] == "[[2.0, 4.0], [6.0, 8.0]]"


def test_a_cell_that_connects_again_keeps_its_session(kernel: Kernel, place: str, server_url: str) -> None:
    argument = repr(server_url) if place == "over HTTP" else "local=True"
    cell = f"print(tf.connect({argument}) is tf.session())\ntf.session().place"
    first = kernel.run(cell).value
    kernel.run("z = tf.constant(3.0) * 2.0")
    assert kernel.run(cell).value == first
    assert kernel.run("float(z + 1.0)").value["text/plain"] == "7.0"
    kernel.run("tf.session().close()")
    assert kernel.run(cell).printed == "True\n"
    if place == "over HTTP":
        assert kernel.run("tf.session().place").value != first
        assert "belongs to another session" in kernel.run("z + 1.0").error


def test_progress_is_a_bar_and_an_interrupt_leaves_the_session(kernel: Kernel, server_url: str) -> None:
    kernel.run(f"{FIRST}\ntf.connect({server_url!r})\n{FIRST}{LONG}")
    outputs = kernel.run("long(large).numpy()", until=lambda outputs: len(outputs.of("update_display_data")) == 1)
    [bar] = outputs.of("display_data")
    assert re.fullmatch(r"<progress.*></progress> <code>.* commands, iteration .* s</code>", bar["data"]["text/html"])
    updates = outputs.of("update_display_data")
    assert {update["transient"]["display_id"] for update in updates} == {bar["transient"]["display_id"]}
    assert updates[-1]["data"] == {"text/plain": "", "text/html": ""}
    assert "KeyboardInterrupt" in outputs.error
    assert re.findall(r"Cell In\[\d+\], line 1", outputs.error)
    assert "File " not in outputs.error
    assert "tf.session().cancel() stops it" in outputs.printed
    kernel.run("tf.session().cancel()")
    assert "CancelledError" in kernel.run("x.numpy()\n(x + 1.0).numpy()").error
    assert kernel.run("(x + 1.0).numpy()[0, 0].item()").value["text/plain"] == "2.0"


def test_a_server_that_ends(kernel: Kernel) -> None:
    with Server(Settings(shutdown_grace=0.1)).running() as server:
        kernel.run(f"{FIRST}\ntf.connect({server.url!r})\n{FIRST}\nx.numpy()")
    outputs = kernel.run("(x * 2.0).numpy()", until=lambda outputs: bool(outputs.of("display_data")))
    assert f"no answer from {server.url}, trying again" in outputs.of("display_data")[0]["data"]["text/plain"]
    assert "the next read sends it again" in outputs.printed
    assert "File " not in outputs.error
    assert "[[1.0, 2.0], [3.0, 4.0]]" in kernel.run("x.numpy().tolist()").value["text/plain"]
    kernel.run("tf.connect(local=True)")
