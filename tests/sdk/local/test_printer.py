"""`tf.print`: where it writes. What it writes is conformance's."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.tf.print_op import summarized


def test_to_the_standard_streams_of_the_moment(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    import sys

    tf.print("x:", tf.constant([1.0, 2.5]))
    tf.print("out", output_stream=sys.stdout, end="")
    assert capsys.readouterr() == ("out", "x: [1 2.5]\n")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    tf.print(tf.constant("caught"))
    assert sys.stderr.getvalue() == "caught\n"  # type: ignore[attr-defined]  # the stream above


@pytest.mark.parametrize(
    ("stream", "level"),
    [(logging.info, "INFO"), (logging.WARNING, "WARNING"), (logging.error, "ERROR")],
)
def test_to_the_log(stream: Any, level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "teletape")
    tf.print("seen", tf.constant(3), output_stream=stream)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [(level, "seen 3")]


def test_to_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for step in range(2):
        tf.print("step", step, output_stream=f"file://{path}")
    assert path.read_text() == "step 0\nstep 1\n"


@pytest.mark.parametrize("stream", [io.StringIO(), "nope", 3, print])
def test_anything_else_is_no_stream(stream: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported output stream, logging level, or file"):
        tf.print("x", output_stream=stream)


def test_a_large_tensor_is_shown_by_its_ends_alone() -> None:
    assert summarized(np.zeros((1000, 1000)), 1) == "[[0 ... 0]\n ...\n [0 ... 0]]"
