"""The demo trains a Keras model with Adam on a server: one request a step, and accurate enough."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "digits.py"


def test_a_step_is_one_request(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--out", str(tmp_path / "digits.png")])
    try:
        with tf.connect(server_url):
            status = runpy.run_path(str(EXAMPLE))["main"]()
    finally:
        use(LocalSession())
    output = capsys.readouterr().out
    marks = re.search(r"test accuracy ([\d.]+) .*\nrequests a training step ([\d.]+) ", output)
    assert marks, output
    assert (status, marks[2]) == (0, "1.00")
    assert float(marks[1]) > 0.95
    assert (tmp_path / "digits.png").stat().st_size > 1000
