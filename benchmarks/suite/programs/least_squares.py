"""A service's call: the value and the gradient of a small least squares loss, all inputs with each call."""

import numpy as np

SMALL = {"rows": 3, "columns": 2}
CALLS_OF_A_TASK = 5  #: One after the other, as the callers of a service make them.
TEXT = "sum((x @ w - y)**2)"  #: The loss, as a server of functions takes it.


def inputs(rows=20, columns=5, tasks=0):
    random = np.random.default_rng(0)
    arrays = {name: random.standard_normal(shape) for name, shape in _shapes(rows, columns).items()}
    return {**arrays, "tasks": tasks} if tasks else arrays


def _shapes(rows, columns):
    return {"x": (rows, columns), "w": (columns,), "y": (rows,)}


def tensorflow(tf, data):
    def step(x, w, y):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(tf.square(tf.linalg.matvec(x, w) - y))
        return [loss, tape.gradient(loss, w)]

    return step, [data[name] for name in ("x", "w", "y")]


def by_hand(data):
    def step(x, w, y):
        error = x @ w - y
        return [np.sum(error**2), 2 * (x.T @ error)]

    return step, [data[name] for name in ("x", "w", "y")]
