"""What runs a command that takes functions is registered as soon as the table of it can be imported."""

import subprocess
import sys

PROGRAM = """
import teletape as tf

@tf.function
def count(x):
    return tf.while_loop(lambda i: i < 3, lambda i: i + 1, [x])

print(int(count(tf.constant(0))[0]))
"""


def test_a_fresh_process_runs_a_loop_in_a_function() -> None:
    result = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "3"
