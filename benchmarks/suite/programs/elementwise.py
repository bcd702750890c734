"""A chain of elementwise functions of a large array, its sum, and the gradient."""

import numpy as np

SMALL = {"elements": 1000}
TILE = 1 << 16


def inputs(elements):
    return {"x": np.random.default_rng(0).random(elements, "f4")}


def tensorflow(tf, data):
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(2):
                y = tf.exp(tf.tanh(y * 0.5 + 0.1))
            loss = tf.reduce_sum(y)
        return [loss, tape.gradient(loss, x)]

    return step, [data["x"]]


def by_hand(data):
    """In tiles that stay in the cache."""
    half, shift, unit = np.float32(0.5), np.float32(0.1), np.float32(1)
    buffers = [np.empty(TILE, "f4") for _ in range(4)]
    gradient = np.empty_like(data["x"])

    def step(x):
        loss = 0.0
        for start in range(0, x.size, TILE):
            part, g = x[start : start + TILE], gradient[start : start + TILE]
            a, b, c, d = (buffer[: part.size] for buffer in buffers)
            np.multiply(part, half, a)
            np.add(a, shift, a)
            np.tanh(a, a)
            np.exp(a, b)
            np.multiply(b, half, c)
            np.add(c, shift, c)
            np.tanh(c, c)
            np.exp(c, d)
            loss += d.sum(dtype="f8")
            np.multiply(c, c, c)
            np.subtract(unit, c, c)
            np.multiply(d, c, g)
            np.multiply(g, half, g)
            np.multiply(g, b, g)
            np.multiply(a, a, a)
            np.subtract(unit, a, a)
            np.multiply(g, a, g)
            np.multiply(g, half, g)
        return [np.float32(loss), gradient]

    return step, [data["x"]]


def pytorch(torch, data):
    def step(x):
        x = y = x.requires_grad_()
        for _ in range(2):
            y = torch.exp(torch.tanh(y * 0.5 + 0.1))
        loss = y.sum()
        return [loss, *torch.autograd.grad(loss, x)]

    return step, [data["x"]]


def jax(jax, data):
    jnp = jax.numpy

    def loss(x):
        y = x
        for _ in range(2):
            y = jnp.exp(jnp.tanh(y * 0.5 + 0.1))
        return y.sum()

    return jax.value_and_grad(loss), [data["x"]]
