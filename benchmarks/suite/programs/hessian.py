"""The Hessian of a loss of 50 parameters: the sum of softplus(x w) over rows."""

import numpy as np

SMALL = {"parameters": 3, "rows": 4}


def inputs(parameters, rows=64):
    random = np.random.default_rng(0)
    return {
        "x": random.standard_normal((rows, parameters)).astype("f4"),
        "w": (random.standard_normal(parameters) * 0.1).astype("f4"),
    }


def tensorflow(tf, data):
    x = tf.constant(data["x"])

    def step(w):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(w)
                loss = tf.reduce_sum(tf.nn.softplus(tf.linalg.matvec(x, w)))
            gradient = inner.gradient(loss, w)
        return [outer.jacobian(gradient, w)]

    return step, [data["w"]]


def by_hand(data):
    x = data["x"]

    def step(w):
        s = 1 / (1 + np.exp(-(x @ w)))
        return [(x.T * (s * (1 - s))) @ x]

    return step, [data["w"]]


def pytorch(torch, data):
    x = torch.from_numpy(data["x"])
    hessian = torch.func.hessian(lambda w: torch.nn.functional.softplus(x @ w).sum())
    return lambda w: [hessian(w)], [data["w"]]


def jax(jax, data):
    x = jax.numpy.asarray(data["x"])
    hessian = jax.hessian(lambda w: jax.nn.softplus(x @ w).sum())
    return lambda w: [hessian(w)], [data["w"]]
