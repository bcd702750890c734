"""The gradient of Rosenbrock's function, float64."""

import numpy as np

SMALL = {"n": 5}


def inputs(n):
    return {"x": np.random.default_rng(0).random(n)}


def tensorflow(tf, data):
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b = x[:-1], x[1:]
            value = tf.reduce_sum(100.0 * tf.square(b - a * a) + tf.square(1.0 - a))
        return [tape.gradient(value, x)]

    return step, [data["x"]]


def by_hand(data):
    def step(x):
        a, b = x[:-1], x[1:]
        d = b - a * a
        gradient = np.zeros_like(x)
        gradient[1:] = 200 * d
        gradient[:-1] -= 400 * a * d + 2 * (1 - a)
        return [gradient]

    return step, [data["x"]]


def pytorch(torch, data):
    def step(x):
        x = x.requires_grad_()
        a, b = x[:-1], x[1:]
        value = torch.sum(100.0 * torch.square(b - a * a) + torch.square(1.0 - a))
        return torch.autograd.grad(value, x)

    return step, [data["x"]]


def jax(jax, data):
    def value(x):
        a, b = x[:-1], x[1:]
        return (100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2).sum()

    return lambda x: [jax.grad(value)(x)], [data["x"]]
