"""A session on a server takes no numbers from the program's generators."""

import sys

import prepared

PROGRAM = """
import random, sys
import numpy as np
import teletape as tf

random.seed(1)
np.random.seed(1)
before = random.getstate(), np.random.get_state()[2]
with tf.connect(sys.argv[1]):
    for factor in range(3):
        tf.fill([2], 1.0 * factor).numpy()
print((random.getstate(), np.random.get_state()[2]) == before)
"""


def test_a_seeded_program_draws_the_same_numbers_with_a_server(server_url: str) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM, server_url]
    done = prepared.run(command)
    assert (done.stdout, done.stderr) == ("True\n", "")
