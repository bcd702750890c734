"""Servers whose sessions are on GPUs, of processes with the substitute for CuPy."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from rest_client import op

from prepared import Prepared

AS_CUPY = Path(__file__).with_name("as_cupy")
SERVE = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0"]


def environment(**variables: str) -> dict[str, str]:
    """The environment of a server that finds the substitute under CuPy's name."""
    return os.environ | {"PYTHONPATH": str(AS_CUPY)} | variables


@contextmanager
def serving_on_gpus(count: int, **variables: str) -> Iterator[httpx.Client]:
    """A client of a server process that has this many GPUs, which are the substitute; X-Pid says which process."""
    with serving_with(environment(CUPY_SUBSTITUTE_GPUS=str(count), **variables)) as http:
        yield http


@contextmanager
def serving_with(
    variables: dict[str, str], popen: Callable[..., subprocess.Popen[str]] = Prepared
) -> Iterator[httpx.Client]:
    """A client of a server process with this environment, whose default is a GPU; X-Pid says which process."""
    with popen([*SERVE, "--device", "auto"], env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with httpx.Client(base_url=url, trust_env=False, timeout=60, headers={"X-Pid": str(process.pid)}) as http:
            yield http
        process.terminate()


#: The gradient of the sum of squares at 1.5 and -2.
SQUARES = {
    "commands": [
        {"do": "variable", "id": "x", "value": [1.5, -2.0]},
        {"do": "tape.open", "id": "t"},
        {"do": "op", **op("mul", "x", "x", to="y")},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
    ],
    "fetch": ["dx"],
}
