"""A prepared process is as one that starts in the usual way; what it would be otherwise in is refused."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import prepared

PYTHON = [sys.executable, "-P", "-c"]


def test_arguments_environment_folder_input_and_status_are_its_own(tmp_path: Path) -> None:
    program = "import os, sys; print(sys.argv, os.getcwd(), os.environ['COLOUR'], input()); sys.exit(3)"
    pipe = subprocess.PIPE
    environment = os.environ | {"COLOUR": "blue"}
    with prepared.Prepared([*PYTHON, program, "x"], cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe) as process:
        out, _ = process.communicate("text\n", timeout=60)
    assert (out, process.returncode) == (f"['-c', 'x'] {tmp_path} blue text\n", 3)
    assert "COLOUR" not in os.environ


def test_a_signal_ends_it_and_is_its_status() -> None:
    """An interrupt: tests/server/app/test_settings.py sends one to a server."""
    sleeping = [*PYTHON, "import time; print(flush=True); time.sleep(100)"]
    for number in (signal.SIGKILL, signal.SIGTERM):
        with prepared.Prepared(sleeping, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert process.poll() is None
            process.send_signal(number)
            assert process.wait(100) == -number


def test_an_error_is_on_stderr_and_its_status_is_1() -> None:
    done = prepared.run([*PYTHON, "1 / 0"])
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_what_it_would_not_see_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").touch()
    for variables in ({"TELETAPE_PLANS": "off"}, {"PYTHONPATH": str(tmp_path)}):
        with pytest.raises(ValueError, match=r"start it with subprocess\.Popen"):
            prepared.run([*PYTHON, ""], env=os.environ | variables)
    with pytest.raises(ValueError, match="python -P with -m or -c"):
        prepared.run([sys.executable, "-c", ""])
