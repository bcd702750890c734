"""benchmarks/: each row has its programs, programs are right, absent peers are named, the page is the result's."""

import importlib
import importlib.util
import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import teletape as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from gpu import rows as gpu_rows
from suite import bindings, callers, page, sampling, units
from suite.processes import Failed, Process
from suite.rows import ROWS, Goal, Row
from suite.systems import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.stem for path in (ROOT / "benchmarks/suite/programs").glob("[a-z]*.py"))
#: How a program is written for each binding; a server's client sends the bytes of those by hand.
WAYS = {
    "NumPy": "by_hand",
    "Torch": "pytorch",
    "Jax": "jax",
    "FastApi": "pytorch",
    "Floor": "by_hand",
    "Health": "inputs",
    "Tcp": "inputs",
}


def program(name: str) -> ModuleType:
    return importlib.import_module(f"suite.programs.{name}")


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_a_program_for_each_of_its_systems(name: str) -> None:
    row = ROWS[name]
    for system in row.systems:
        binding = SYSTEMS[system].binding
        assert hasattr(bindings, binding)
        assert hasattr(program(row.program), WAYS.get(binding, "tensorflow")), system
    for goal in row.goals:
        assert {goal.system, *goal.peers} <= set(row.systems)
        assert row.memory or not goal.memory


def test_nothing_is_registered_that_no_row_uses() -> None:
    rows = [*ROWS.values(), *gpu_rows.ROWS.values()]
    assert sorted({row.program for row in rows}) == PROGRAMS
    assert set(gpu_rows.SYSTEMS) == {system for row in gpu_rows.ROWS.values() for system in row.systems}
    assert gpu_rows.ROWS.keys() == gpu_rows.SMALL.keys()
    assert set(SYSTEMS) == {system for row in ROWS.values() for system in row.systems}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("hop", "diffusion")])
def test_a_program_computes_what_numpy_computes(name: str) -> None:
    module = program(name)
    step, arguments = module.by_hand(module.inputs(**module.SMALL))
    expected = [np.array(result) for result in step(*arguments)]
    with tf.connect(local=True):
        step, arguments = module.tensorflow(tf, module.inputs(**module.SMALL))
        tensors = [tf.constant(argument) for argument in arguments]
        function = tf.function(step)
        for call in (step, function, function, function):
            results = call(*tensors)
            assert len(results) == len(expected)
            for result, array in zip(results, expected, strict=True):
                np.testing.assert_allclose(result.numpy(), array, rtol=1e-4, atol=1e-6)


def test_diffusion_begins_with_the_loss_that_numpy_computes_and_a_function_trains_as_eager_steps_do() -> None:
    module = program("diffusion")
    data = module.inputs(**module.SMALL)
    step, arguments = module.by_hand(data)
    [loss] = step(*arguments)
    with tf.connect(local=True):
        step, _ = module.tensorflow(tf, data)
        eager = [step(*map(tf.constant, arguments))[0].numpy() for _ in range(4)]
        step, _ = module.tensorflow(tf, data)
        function = tf.function(step)
        compiled = [function(*map(tf.constant, arguments))[0].numpy() for _ in range(4)]
    np.testing.assert_allclose(eager[0], loss, rtol=1e-5)
    np.testing.assert_allclose(compiled, eager, rtol=1e-5)
    assert eager[3] < eager[0]


def test_an_update_changes_the_weights_as_numpy_does() -> None:
    module = program("mlp")
    data = module.inputs(**module.SMALL, update=True)
    step, arguments = module.by_hand(data)
    expected = [step(*arguments)[0] for _ in range(3)]
    with tf.connect(local=True):
        step, arguments = module.tensorflow(tf, data)
        np.testing.assert_allclose([step(*arguments)[0].numpy() for _ in range(3)], expected, rtol=1e-5)
    assert expected[0] > expected[2]


@pytest.mark.parametrize("call", ["read", "up", "down"])
def test_a_call_that_computes_next_to_nothing(call: str) -> None:
    module = program("hop")
    data = module.inputs(call)
    with tf.connect(local=True):
        step, arguments = module.tensorflow(tf, data)
        results = [result.numpy() for result in step(*arguments)]
    step, arguments = module.by_hand(data)
    np.testing.assert_array_equal(results, step(*arguments))


def test_absent_peers_are_named_and_the_others_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [
        sys.executable,
        "benchmarks/run.py",
        "--only",
        "hessian",
        "--quick",
        "--seconds",
        "0",
        "--peers",
        str(tmp_path),
    ]
    done = subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    peers = {"torch", "tf", "tf-function", "jax"}
    assert set(result["absent"]) == peers
    assert "absent: PyTorch: its environment is absent: make bench-peers" in done.stdout
    measured = result["rows"]["hessian"]
    assert all("bench-peers" in measured[peer]["error"] for peer in peers)
    for system in ("eager", "function", "numpy"):
        assert len(measured[system]["samples"]) == 3
        assert all(measured[system][call] > 0 for call in ("first", "tenth", "thousandth"))
    assert {"date", "commit", "processor", "load", "load after"} <= set(result["run"])


def test_an_unknown_row_is_refused() -> None:
    command = [sys.executable, "benchmarks/run.py", "--only", "chian"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no row is called 'chian'" in done.stderr


class FakeProcess:
    """A system whose calls take a second, and give one number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        return {"summary": [[self.number, self.number]], "first": 3.0, "last": 4.0, "seconds": 1.0}


def test_a_system_with_other_results_is_not_compared() -> None:
    row = Row("", "chain", {}, ("numpy", "torch", "jax"))
    processes = {"numpy": FakeProcess(2.0), "torch": FakeProcess(2.001), "jax": FakeProcess(3.0)}
    result = sampling.measure(row, processes.__getitem__, 0)  # type: ignore[arg-type]
    assert result["torch"]["samples"] == [1.0] * 5
    assert result["torch"]["thousandth"] == pytest.approx(4.0 + 990)
    assert result["torch"]["extrapolated"]
    assert "results differ" in result["jax"]["error"]


class MortalProcess(FakeProcess):
    """A process that ends in its third run."""

    runs = 0

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self.runs += do == "run"
        if self.runs == 3:
            raise Failed("out of memory")
        return super().ask(do, **fields)


def test_a_system_that_ends_in_the_middle_is_named_and_the_others_go_on() -> None:
    row = Row("", "chain", {}, ("torch", "numpy"))
    processes = {"torch": MortalProcess(2.0), "numpy": FakeProcess(2.0)}
    result = sampling.measure(row, processes.__getitem__, 0)  # type: ignore[arg-type]
    assert result["torch"] == {"error": "out of memory"}
    assert len(result["numpy"]["samples"]) == 5


def test_a_process_that_is_killed_says_so_and_can_be_closed_again() -> None:
    process = Process("numpy")
    process.ask("load", program="hessian", size={"parameters": 2})
    process._process.kill()
    process._process.wait()
    for _ in range(2):
        with pytest.raises(Failed, match=r"no answer|its process has ended"):
            process.ask("run", repeats=1)
    process.close()


def test_a_system_that_cannot_start_is_named() -> None:
    def process_of(system: str) -> Any:
        raise Failed("no memory")

    assert sampling.measure(Row("", "chain", {}, ("torch",)), process_of, 0) == {"torch": {"error": "no memory"}}


def test_a_ratio_is_the_median_of_the_rounds_ratios_to_the_best_peer() -> None:
    systems = {
        "function": {"samples": [1.0, 20.0, 3.0], "memory": 10.0},
        "torch": {"samples": [2.0, 10.0, 2.0], "memory": 0.1},
        "jax": {"samples": [4.0, 40.0, 4.0]},
    }
    assert units.ratio(systems, Goal("function", 1, ("torch", "jax"))) == (1.5, "torch")
    assert units.ratio(systems, Goal("function", 1, ("torch", "jax"), memory=True)) == (10.0, "torch")
    assert units.ratio(systems, Goal("function", 1, ("tf",))) is None
    assert units.ratio(systems, Goal("eager", 1, ("torch",))) is None


def test_units() -> None:
    assert units.amount(Row("", "chain", {}), 0.25) == 250
    assert units.amount(Row("", "chain", {}, unit="µs", per=100), 0.001) == pytest.approx(10)
    assert units.amount(Row("", "hop", {}, unit="GB/s", per=4 * 10**9), 2) == 2
    assert [units.digits(number) for number in (1234.5, 12.34, 1.234, 0.1234, 0.01234)] == (
        ["1,234", "12.3", "1.23", "0.123", "0.0123"]
    )


def test_the_page_and_its_charts_are_those_of_the_result() -> None:
    result = json.loads(page.RESULT.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert set(result["rows"]) == set(ROWS), "a row is missing from the result: make bench ARGS=--publish"
    assert page.filled(text, result) == text, "run make bench ARGS=--publish"
    for name, svg in page.charts(result).items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == svg
        assert f"]({name})" in text
    for row in ROWS.values():
        assert f"| {row.label} |" in text


# ----------------------------------------------------------------------------------------------------------- on a GPU
def on_gpu(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """What `make gpu` runs."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "benchmarks"), path]))
    command = [sys.executable, "-P", "-m", "gpu", *arguments]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="there may be a GPU: make gpu measures it")
def test_without_a_gpu_the_command_says_why_there_is_none() -> None:
    run = on_gpu()
    assert run.returncode == 2
    assert "make gpu: there is no GPU here that can be used: CuPy is not installed" in run.stderr


def test_the_command_measures_the_substitute_for_cupy() -> None:
    run = on_gpu("--small", "--no-tests", "--only", "matmul", "--seconds", "0", path=str(ROOT / "tests/server/as_cupy"))
    assert run.returncode == 0, run.stderr
    assert re.search(r"\| product of 8192 x 8192, float32 \| [\d.]+ \|  \| [\d.]+ \|", run.stdout), run.stdout
    assert "Substitute, CUDA 13.1" in run.stdout


# ------------------------------------------------------------------------------------------------------- many callers
@contextmanager
def server(answer: bytes) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    """A server that answers every line with the same bytes; its address, and the lines."""
    lines: list[bytes] = []

    class Lines(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                lines.append(line)
                self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines) as listening:
        listening.block_on_close = False
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield listening.server_address[:2], lines
        listening.shutdown()
        thread.join()


def callers_of(address: tuple[str, int], count: int, repeats: int) -> float:
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(count)]
        return callers.seconds(connections, b"question\n", repeats, time.perf_counter)


def test_each_caller_gets_as_many_answers_as_it_asks_for():
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello") as (address, lines):
        assert callers_of(address, 5, 7) > 0
    assert lines == [b"question\n"] * 35


def test_a_caller_that_is_refused_ends_the_measurement():
    refusing = server(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    with refusing as (address, _), pytest.raises(ConnectionError, match="503 busy"):
        callers_of(address, 2, 3)
