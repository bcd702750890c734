"""A chain of tiny ops (multiply, add, tanh, exp …) on eight float32 numbers, and its gradient.

The chain stays near a fixed point with slope 1, so that no number becomes denormal.
"""

import numpy as np

SCALE, SHIFT = 1.25, -1.2262
SMALL = {"ops": 10}


def inputs(ops):
    return {"x": np.linspace(-1, 0.7, 8, dtype="f4"), "ops": ops}


def tensorflow(tf, data):
    ops = data["ops"]

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in range(ops):
                kind = i % 4
                y = y * SCALE if kind == 0 else y + SHIFT if kind == 1 else tf.tanh(y) if kind == 2 else tf.exp(y)
        return [tape.gradient(y, x)]

    return step, [data["x"]]


def by_hand(data):
    ops = data["ops"]
    values = [np.empty_like(data["x"]) for _ in range(ops + 1)]
    ct, scratch = np.empty_like(data["x"]), np.empty_like(data["x"])
    scale, shift, unit = (np.full(8, number, "f4") for number in (SCALE, SHIFT, 1))

    def step(x):
        np.copyto(values[0], x)
        for i in range(ops):
            kind = i % 4
            if kind == 0:
                np.multiply(values[i], scale, values[i + 1])
            elif kind == 1:
                np.add(values[i], shift, values[i + 1])
            elif kind == 2:
                np.tanh(values[i], values[i + 1])
            else:
                np.exp(values[i], values[i + 1])
        ct.fill(1)
        for i in range(ops - 1, -1, -1):
            kind = i % 4
            if kind == 0:
                np.multiply(ct, scale, ct)
            elif kind == 2:
                np.multiply(values[i + 1], values[i + 1], scratch)
                np.subtract(unit, scratch, scratch)
                np.multiply(ct, scratch, ct)
            elif kind == 3:
                np.multiply(ct, values[i + 1], ct)
        return [ct]

    return step, [data["x"]]


def pytorch(torch, data):
    ops = data["ops"]

    def step(x):
        x = y = x.requires_grad_()
        for i in range(ops):
            kind = i % 4
            y = y * SCALE if kind == 0 else y + SHIFT if kind == 1 else torch.tanh(y) if kind == 2 else torch.exp(y)
        return torch.autograd.grad(y, x, torch.ones_like(y))

    return step, [data["x"]]


def jax(jax, data):
    ops, jnp = data["ops"], jax.numpy

    def chain(x):
        y = x
        for i in range(ops):
            kind = i % 4
            y = y * SCALE if kind == 0 else y + SHIFT if kind == 1 else jnp.tanh(y) if kind == 2 else jnp.exp(y)
        return y.sum()

    return lambda x: [jax.grad(chain)(x)], [data["x"]]
