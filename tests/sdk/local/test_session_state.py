"""A session in this process and the handlers of a server leave the same state, and answer the same, after a program.

`LocalSession` runs ops, constants and reads on the engine's recorder directly, a server runs the handlers. Each program
runs both ways; values, tapes, provenance logs and memory must be equal.
"""

import gc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.recording.provenance import Event
from teletape_engine.session.entries import TapeEntry

MATRIX = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


def ops(tape: tf.GradientTape) -> Any:
    x = tf.constant(MATRIX)
    tape.watch(x)
    return tf.reduce_sum(tf.tanh(x * 2.0) + x[None, 1]) / 3.0, [x]


def reads_and_returns(tape: tf.GradientTape) -> Any:
    x = tf.constant([0.123, 4.567])
    tape.watch(x)
    y = x * 3.21
    back = tf.constant(y.numpy())
    return tf.reduce_sum(back * float(y[0])), [x]


def variables(tape: tf.GradientTape) -> Any:
    v = tf.Variable([1.5, 2.5], name="v")
    v.assign(v * 2.0)
    v.assign_add([1.0, 1.0])
    v[0].assign(7.0)
    table = tf.Variable(MATRIX)
    table.scatter_nd_add([[1]], [[1.0, 2.0, 3.0]])
    return tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(table, [0, 2, 2])), [v, table, tf.Variable(1.0)]


def functions_and_loops(tape: tf.GradientTape) -> Any:
    w = tf.Variable(2.0)

    @tf.function
    def power(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x * w), [0, tf.ones_like(x)])[1]

    x = tf.constant([1.0, -2.0])
    tape.watch(x)
    return tf.reduce_sum(power(x)), [x, w]


def custom_gradients(tape: tf.GradientTape) -> Any:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.exp(x), lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)

    x = tf.constant([0.5, 3.0])
    tape.watch(x)
    return tf.reduce_sum(clipped(x) * 5.0), [x]


def nested_tapes(tape: tf.GradientTape) -> Any:
    x = tf.constant([1.0, 2.0])
    tape.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = tf.reduce_sum(x**3)
    return tf.reduce_sum(inner.gradient(y, x) * 2.0), [x]


def indices(numbers: dict[Any, int], uids: Iterable[Any]) -> tuple[Any, ...]:
    """Uids as the order in which they first appear: the two sessions count differently."""
    return tuple([None if uid is None else numbers.setdefault(uid, len(numbers)) for uid in uids])


def structure_of(tape: Any) -> list[Any]:
    numbers: dict[Any, int] = {}
    return [
        (plan.bound.name, plan.bound.specs, indices(numbers, inputs), indices(numbers, [output]))
        for plan, inputs, output, *_ in tape.nodes
    ]


def log_of(trail: Iterable[Any]) -> list[Any]:
    return [(kind.value if isinstance(kind, Event) else kind.name, len(inputs)) for kind, inputs, *_ in trail]


def state_after(
    program: Callable[[Any], Any], session: Any, engine_tape: Callable[[Any], Any], batches: list[Any]
) -> dict[str, Any]:
    with use(session):
        replayable = program is not custom_gradients  # whose function only the program could run again
        with tf.GradientTape(persistent=True, replayable=replayable) as tape:
            result, sources = program(tape)
        gradients = tape.gradient(result, sources)
        explained = [explanation.facts() for explanation in tape.explain(result, sources)]
        drawn = tape.graph(result, sources).json
        report = tape.check_gradients(result, sources).facts() if replayable else None
        arrays = [np.asarray(tf.convert_to_tensor(value)) for value in (result, *gradients) if value is not None]
        float(tf.zeros(()) + 1.0)  # the server keeps its last answer: not the one with all these arrays
        gc.collect()  # what only cycles of the program's functions hold is not in use
        session.sync()
        batches.clear()  # the loopback's list would keep the arrays that were sent
        recorded = engine_tape(tape)
        return {
            "values": [array.tobytes() for array in arrays],
            "tape": structure_of(recorded),
            "tracked": len(recorded.tracked),
            "variables": [variable.name for variable in recorded.variables.values()],
            "memory": tape.memory()._asdict(),
            "explanations": explained,
            "graph": drawn,
            "report": report,
        }


@pytest.mark.parametrize(
    "program", [ops, reads_and_returns, variables, functions_and_loops, custom_gradients, nested_tapes]
)
def test_both_sessions_leave_the_same_state(program: Callable[[Any], Any]) -> None:
    local = LocalSession()
    here = state_after(program, local, lambda tape: tape._tape, [])
    loopback = Loopback()
    remote = session_on(loopback)
    engine = loopback.session._state
    there = state_after(program, remote, lambda tape: engine.find(tape._tape.name.id, TapeEntry).tape, loopback.batches)
    assert here == there
    logs = [log_of(log) for log in engine.provenance_logs() if log]
    # The watcher of variables that a custom gradient reads is a tape that does not track `exp`: here it is logged too.
    seen_by_watcher = [("exp", 1)] if program is custom_gradients else []
    assert [[note for note in log_of(trail) if note not in seen_by_watcher] for trail in local.logs if trail] == logs
