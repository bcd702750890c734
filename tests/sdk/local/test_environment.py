"""The environment variables of the SDK: read in one file, with their defaults."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import teletape
from teletape.core import environment

PACKAGE = Path(teletape.__file__).parent
VARIABLES = ("URL", "API_KEY", "DEVICE", "LAZY", "WHERE", "PROGRESS", "OFFLOAD_LOOPS")


def test_no_other_file_reads_the_environment() -> None:
    readers = [path.name for path in PACKAGE.rglob("*.py") if "os.environ" in path.read_text(encoding="utf-8")]
    assert readers == ["environment.py"]


@pytest.mark.parametrize(
    ("mode", "threads", "expected"),
    [
        ("off", "2", "Policy(enabled=False, compiled=True, first=2, compared=False, threads=2)"),
        ("fast", "", "ValueError"),
    ],
)
def test_the_sdk_passes_on_how_functions_run(mode: str, threads: str, expected: str) -> None:
    program = "import teletape; from teletape_engine.plans.policy import POLICY; print(teletape.constant(1.0), POLICY)"
    variables = {"TELETAPE_PLANS": mode, "OPENBLAS_NUM_THREADS": threads}
    command = [sys.executable, "-P", "-c", program]
    result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert expected in result.stdout + result.stderr
    if result.returncode:
        assert "TELETAPE_PLANS is 'fast': it must be one of on, off, python, force" in result.stderr


@pytest.mark.parametrize(("text", "threads"), [("", None), ("0", None), ("4,2", None), ("3", 3)])
def test_threads_of_linear_algebra(monkeypatch: pytest.MonkeyPatch, text: str, threads: int | None) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert environment.blas_threads() == threads


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"TELETAPE_{name}", raising=False)
    assert (environment.url(), environment.api_key(), environment.device()) == (None, None, None)
    assert (environment.lazy(), environment.call_sites(), environment.progress()) == (True, True, None)
    assert environment.offload_loops() is None


@pytest.mark.parametrize(
    ("variable", "value", "function", "expected"),
    [
        ("PLANS", "off", environment.plans, "off"),
        ("URL", "http://host:1", environment.url, "http://host:1"),
        ("URL", "", environment.url, None),
        ("API_KEY", "secret", environment.api_key, "secret"),
        ("DEVICE", "gpu:1", environment.device, "gpu:1"),
        ("LAZY", "0", environment.lazy, False),
        ("LAZY", "no", environment.lazy, False),
        ("LAZY", "1", environment.lazy, True),
        ("WHERE", "0", environment.call_sites, False),
        ("WHERE", "false", environment.call_sites, False),
        ("WHERE", "no", environment.call_sites, False),
        ("WHERE", "1", environment.call_sites, True),
        ("PROGRESS", "1", environment.progress, True),
        ("PROGRESS", "false", environment.progress, False),
        ("PROGRESS", "", environment.progress, None),
        ("OFFLOAD_LOOPS", "0", environment.offload_loops, False),
        ("OFFLOAD_LOOPS", "1", environment.offload_loops, True),
        ("OFFLOAD_LOOPS", "", environment.offload_loops, None),
        ("DATASET_BYTES", "1000", environment.dataset_bytes, 1000),
        ("DATASET_BYTES", "", environment.dataset_bytes, 256 << 20),
    ],
)
def test_a_variable_is_read_at_each_call(variable, value, function, expected, monkeypatch) -> None:
    monkeypatch.setenv(f"TELETAPE_{variable}", value)
    assert function() == expected
