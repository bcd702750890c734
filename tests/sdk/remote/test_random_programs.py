"""Random programs give the same in this process, over HTTP, and over HTTP with a request for each op.

A program is a list of steps: ops, variables, assignments, tapes, conditions, loops, functions, strings and errors, with
reads in any order. What is compared: values, dtypes, Nones, and the type and message of errors. `make programs` draws
many more of them, others in each run.
"""

from __future__ import annotations

import os
import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession

#: Programs that are drawn. Without the setting they are the same in each run.
EXAMPLES = int(os.environ.get("TELETAPE_PROGRAMS", "25"))

UNARY = {
    "tanh": tf.tanh,
    "neg": tf.negative,
    "square": tf.square,
    "sum": lambda x: tf.reduce_sum(x, axis=0, keepdims=True),
    "mean": tf.reduce_mean,
    "transpose": tf.transpose,
    "flat": lambda x: tf.reshape(x, [-1]),
    "round": tf.round,
    "stop": tf.stop_gradient,
    "first": lambda x: x[:1],
    "stacked": lambda x: tf.stack([x, x]),
    "to int": lambda x: tf.cast(x, tf.int32),
    "to float": lambda x: tf.cast(x, tf.float32),
    "argmax": lambda x: tf.argmax(tf.reshape(x, [-1])),
    "parts": lambda x: tf.split(tf.tile(tf.reshape(x, [-1]), [2]), 2)[1],
    "traced": tf.function(lambda x: x * 2 + 1),
    "chosen": lambda x: tf.cond(tf.reduce_sum(tf.cast(x, tf.float32)) > 0, lambda: x * 2, lambda: x - 1),
    "looped": lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + y), [0, x])[1],
    "mapped": lambda x: tf.map_fn(lambda row: row * 3, tf.reshape(x, [-1])),
}
BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "@": lambda a, b: a @ b,
    "//": lambda a, b: a // b,
    "maximum": tf.maximum,
    "concat": lambda a, b: tf.concat([a, b], 0),
    "gather": lambda a, b: tf.gather(a, tf.cast(b, tf.int32)),
    "where": lambda a, b: tf.where(a > b, a, b),
    "==": lambda a, b: a == b,
}
KINDS = ("constant", "variable", "unary", "unary", "binary", "binary", "binary", "assign", "gradient", "string", "read")
CONSTANTS = (
    *(1.5, [1.0, 2.0], [[1.0, -2.0], [3.0, 0.5]], [[1.0, 2.0, 3.0]], [0.0] * 20, 3, 0, [0, 1], [2, 1, 0], [9] * 20),
    *(True, [], [[1.0], [2.0]]),
)
#: Errors that depend on values. Over HTTP they come at the next read, and what follows in the program has no effect.
OF_VALUES = re.compile(r"^indices(\[| = )|^Integer division by zero")
WORDS = ("a", ["a", "b"], ["c"])

steps = st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.booleans())


class Run:
    """One run of a program.

    Attributes:
        seen: What the program has seen so far.
        values: Results of its steps.
    """

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.values: list[Any] = [tf.constant([1.0, 2.0]), tf.Variable([0.5, -1.0])]

    def value(self, number: int, kind: type = object) -> Any:
        fitting = [value for value in self.values if isinstance(value, kind)]
        return fitting[number % len(fitting)]

    def step(self, kind: str, a: int, b: int, c: int, flag: bool) -> Any:
        """Runs a step, and returns its result, or None."""
        if kind == "constant":
            return tf.constant(CONSTANTS[a % len(CONSTANTS)])
        if kind == "string":
            words = tf.constant(WORDS[a % len(WORDS)])
            return words + words if flag else tf.gather(tf.reshape(words, [-1]), [0, 0])
        if kind == "variable":
            return tf.Variable(self.value(a))
        if kind == "unary":
            return list(UNARY.values())[a % len(UNARY)](self.value(b))
        if kind == "binary":
            return list(BINARY.values())[a % len(BINARY)](self.value(b), self.value(c))
        if kind == "assign":
            variable = self.value(a, tf.Variable)
            (variable.assign if flag else variable.assign_add)(self.value(b))
            return variable.read_value()
        if kind == "gradient":
            source = self.value(a, tf.Variable)
            with tf.GradientTape() as tape:
                y = list(UNARY.values())[b % len(UNARY)](source * 2 if flag else source)
            return tape.gradient(y, source)
        self.seen.append(shown(self.value(a)))
        return None


def shown(value: Any) -> Any:
    """What a program sees of a value."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    array = np.asarray(value.numpy())
    return value.dtype.name, array.shape, array.tolist() if array.dtype == object else array.tobytes()


def run(program: list[Any]) -> tuple[list[Any], Any, int]:
    """Runs a program up to its first error that depends on values; it catches the others, and goes on.

    Returns:
        What it has seen; the type and the first line of the message of that error, or None; and the number of steps
        before it.
    """
    state = Run()
    done = 0
    try:
        for step in program:
            try:
                result = state.step(*step)
            except Exception as error:
                if OF_VALUES.match(str(error)):
                    raise
                state.seen.append(described(error))
            else:
                state.seen.append("None" if result is None else (result.dtype.name, result.shape.as_list()))
                if result is not None:
                    state.values.append(result)
            done += 1
        state.seen += [shown(value) for value in state.values]
        tf.sync()
    except Exception as error:
        return state.seen, described(error), done
    return state.seen, None, done


def described(error: Exception) -> tuple[str, str]:
    return type(error).__name__, str(error).split("\n")[0]


@pytest.fixture(scope="module")
def sessions():
    """Sessions in this process, over HTTP, and over HTTP with a request for each op."""
    remote, eager = session_on(Loopback()), session_on(Loopback(), lazy=False)
    yield LocalSession(), remote, eager
    use(LocalSession())
    remote.close()
    eager.close()


@hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize="TELETAPE_PROGRAMS" not in os.environ,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(program=st.lists(steps, min_size=1, max_size=25))
@hypothesis.example([("unary", 13, 0, 0, False), ("unary", 9, 0, 0, False), ("binary", 7, 3, 2, False)])
@hypothesis.example([("string", 0, 0, 0, False), ("variable", 2, 0, 0, False), ("assign", 1, 2, 0, False)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities
def test_a_program_gives_the_same_everywhere(sessions, program):
    local, remote, eager = sessions
    use(local)
    seen, error, done = run(program)
    # Over HTTP an error of values comes at the next read: what follows the step that failed here is left out.
    upto = program[: done + 1]
    use(eager)
    assert run(upto) == (seen, error, done)
    use(remote)
    late_seen, late_error, _ = run(upto)
    assert late_error == error
    assert late_seen[: len(seen)] == seen
