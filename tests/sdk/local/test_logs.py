"""tf.get_logger() and messages said only a few times. TensorFlow 2.21 logs the same way, under its own name."""

import logging
import subprocess
import sys

import pytest

from teletape.core.program.logs import get_logger, log_first_n


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


def test_the_logger() -> None:
    assert get_logger() is get_logger() is logging.getLogger("teletape")


def test_warnings_are_seen_once_on_stderr() -> None:
    done = run(
        "from teletape.core.program.logs import get_logger\n"
        "get_logger().info('not this')\n"
        "get_logger().warning('hello %s', 'x')\n"
        "get_logger().warning('bye')\n"
    )
    assert done.stderr == "WARNING:teletape:hello x\nWARNING:teletape:bye\n"
    assert done.stdout == ""


def test_a_configured_root_logger_is_left_to_it() -> None:
    done = run(
        "import logging; logging.basicConfig(format='root %(message)s')\n"
        "from teletape.core.program.logs import get_logger\n"
        "get_logger().warning('hello')\n"
    )
    assert done.stderr == "root hello\n"


def test_an_interactive_interpreter_gets_info_on_stdout() -> None:
    done = run(
        "import sys; sys.ps1 = '>'\nfrom teletape.core.program.logs import get_logger\nget_logger().info('hello')\n"
    )
    assert done.stdout == "INFO:teletape:hello\n"
    assert done.stderr == ""


def test_the_first_n_of_a_key(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="teletape"):
        for i in range(7):
            log_first_n(logging.WARNING, f"100% of {i}", 5, "test_the_first_n_of_a_key")
        log_first_n(logging.WARNING, "another key", 1, "test_the_first_n_of_a_key/2")
    assert caplog.messages == [*(f"100% of {i}" for i in range(5)), "another key"]


def test_a_level_that_is_off_still_counts(caplog: pytest.LogCaptureFixture) -> None:
    key = "test_a_level_that_is_off_still_counts"
    with caplog.at_level(logging.WARNING, logger="teletape"):
        log_first_n(logging.INFO, "quiet", 1, key)
        log_first_n(logging.WARNING, "too late", 1, key)
    assert caplog.messages == []


def test_what_numpy_warns_of_inside_an_op_is_not_said() -> None:
    done = run(
        "import numpy as np, teletape as tf\n"
        "x = tf.Variable([0.0, -1.0])\n"
        "with tf.GradientTape() as tape:\n"
        "    y = tf.sqrt(x) / 0.0 + tf.math.log(x)\n"
        "print(y.numpy(), tape.gradient(y, x).numpy(), tf.exp(1000.0).numpy())\n"
        "np.log(np.zeros(1))\n"
    )
    assert done.stdout == "[nan nan] [inf nan] inf\n"
    assert done.stderr.count("RuntimeWarning") == 1  # the program's own
