"""No op in this process warns, as in TensorFlow, and the program's own NumPy behaves as without Teletape."""

import contextlib
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession

HUGE = np.float32(3e38)


def ops() -> None:
    x = tf.constant([HUGE, 0.0, -1.0])
    x * x, x / 0.0, tf.math.log(x), tf.cast(x, tf.int32), tf.reduce_sum([HUGE, HUGE]), tf.sqrt(x), tf.pow(x, 2.5)
    tf.add_n([x, x, x]), tf.cast(tf.constant(1e300, tf.float64), tf.float32), tf.linalg.norm(x), tf.nn.softmax(x * x)


def numbers() -> None:
    tf.constant(1.0) * 1e300, tf.Variable(1.0).assign_add(3.9e38), tf.constant(1e300, tf.float32)


def assignments() -> None:
    v = tf.Variable([HUGE, 1.0])
    v.assign_add([HUGE, HUGE])
    v.scatter_div(tf.IndexedSlices(tf.constant([0.0]), tf.constant([1])))
    v[1:].assign([0.0])


def gradients() -> None:
    x = tf.constant([0.0, HUGE])
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sqrt(x) * x * HUGE)
        z = tf.gather(x, [0, 0]) / x
    tape.gradient(y, x), tape.jacobian(z, x), tape.gradient([y, z], x)


def second_derivatives() -> None:
    x = tf.constant([0.0, HUGE])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sqrt(x) / x)
        first = tape.gradient(y, x)
    outer.gradient(first, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sqrt(x) / x)
    tape.hessian(y, x)


def forward_mode() -> None:
    x = tf.constant([0.0, HUGE])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([HUGE, HUGE])) as accumulator:
        y = tf.sqrt(x) * x
    accumulator.jvp(y)


def functions_and_loops() -> None:
    @tf.function
    def grows(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 9, lambda i, y: (i + 1, y * y), [0, x])[1] / 0.0

    grows(tf.constant([HUGE]))
    tf.scan(lambda a, b: a * b, tf.constant([HUGE, HUGE, 0.0]))


def explanations() -> None:
    x = tf.constant([0.0, HUGE])
    with tf.GradientTape(replayable=True, persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sqrt(x) * HUGE)
    str(tape.explain(y, x))
    with contextlib.suppress(ValueError):  # not finite: the check may refuse that, and does not warn of it
        tape.check_gradients(y, x)


PROGRAMS = [
    ops,
    numbers,
    assignments,
    gradients,
    second_derivatives,
    forward_mode,
    functions_and_loops,
    explanations,
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("state", ["warn", "raise"])
def test_no_op_warns_or_raises(program: Callable[[], None], state: Any) -> None:
    """Whatever the program has made of NumPy's errors, for its own arrays."""
    with warnings.catch_warnings(), np.errstate(all=state), use(LocalSession()):
        warnings.simplefilter("error")
        before = list(warnings.filters), np.geterr()
        program()
        assert (list(warnings.filters), np.geterr()) == before


def test_import_and_use_leave_filters_and_numpy_alone() -> None:
    program = """
        import warnings
        import numpy as np
        before = list(warnings.filters), np.geterr()
        import teletape as tf
        x = tf.constant([3e38, 0.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x / 0.0
        tape.gradient(y, x)
        assert (list(warnings.filters), np.geterr()) == before
        try:
            np.ones(1, np.float32) / np.zeros(1, np.float32)
        except RuntimeWarning:
            print("as without")
    """
    command = [sys.executable, "-P", "-W", "error", "-c", textwrap.dedent(program)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "as without\n"


def test_functions_of_the_program_have_its_error_state() -> None:
    states = []

    @tf.custom_gradient
    def identity(x: Any) -> Any:
        states.append(np.geterr()["over"])

        def gradient(upstream: Any) -> Any:
            states.append(np.geterr()["over"])
            return upstream

        return tf.identity(x), gradient

    def host(x: Any) -> Any:
        states.append(np.geterr()["over"])
        return x

    with np.errstate(over="print"), tf.GradientTape(persistent=True) as tape:
        x = tf.constant([1.0, 2.0])
        tape.watch(x)
        y = tf.numpy_function(host, [identity(x)], tf.float32)
        z = identity(x)
        tape.gradient([y, z], x), tape.jacobian(z, x)
        calls = len(states)
        tf.debugging.check_gradients(lambda x: x * (1.0 if host(1.0) else 2.0), x)
    assert (calls >= 4, len(states) > calls + 2) == (True, True)
    assert set(states) == {"print"}


def test_an_op_inside_an_op() -> None:
    """A finalizer can run inside a kernel, and may call ops."""
    x = tf.constant([3e38])
    recorder: Any = current().recorder()
    results = recorder.kernel_call(lambda: [(x * x).numpy(), tf.reduce_sum(x * 1.0, keepdims=True).numpy()])
    assert [float(result[0]) for result in results] == [np.inf, HUGE]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sqrt(x - x)
    gradients = recorder.pass_call(lambda: [tape.gradient(y, x), tape.gradient(y, x)])
    assert [np.isnan(gradient.numpy()[0]) for gradient in gradients] == [True, True]
    assert np.geterr()["over"] == "warn"
