"""A gradient through a gradient: a critic's mean (‖∂critic/∂x‖ - 1)², differentiated by the critic's weights."""

import itertools

import numpy as np

SMALL = {"batch": 3, "sizes": (2, 4, 3, 1)}
SIZES = (32, 128, 128, 1)


def inputs(batch, sizes=SIZES):
    random = np.random.default_rng(0)
    return {
        "x": random.standard_normal((batch, sizes[0])).astype("f4"),
        "weights": [
            (random.standard_normal((m, n)) * (2 / m) ** 0.5).astype("f4") for m, n in itertools.pairwise(sizes)
        ],
    }


def tensorflow(tf, data):
    weights = [tf.Variable(w) for w in data["weights"]]

    def step(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                h = x
                for w in weights[:-1]:
                    h = tf.tanh(tf.matmul(h, w))
                scores = tf.matmul(h, weights[-1])
            slopes = inner.gradient(scores, x)
            loss = tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1) + 1e-12) - 1.0))
        return [loss, *outer.gradient(loss, weights)]

    return step, [data["x"]]


def by_hand(data):
    """Written out for three layers: h₁ = tanh(x W₁), h₂ = tanh(h₁ W₂), the slope s = ((W₃ᵀ d₂) W₂ᵀ · d₁) W₁ᵀ."""
    first, second, last = data["weights"]

    def step(x):
        h1 = np.tanh(x @ first)
        h2 = np.tanh(h1 @ second)
        d1, d2 = 1 - h1 * h1, 1 - h2 * h2
        a2 = d2 * last[:, 0]
        p1 = a2 @ second.T
        a1 = p1 * d1
        slopes = a1 @ first.T
        norm = np.sqrt((slopes * slopes).sum(axis=1, keepdims=True) + np.float32(1e-12))
        loss = np.square(norm - 1).mean()
        slopes_ct = slopes * (2 * (norm - 1) / norm / np.float32(len(x)))
        a1_ct = slopes_ct @ first
        first_ct = slopes_ct.T @ a1
        p1_ct, h1_ct = a1_ct * d1, -2 * h1 * (a1_ct * p1)
        a2_ct = p1_ct @ second
        second_ct = p1_ct.T @ a2
        last_ct = (a2_ct * d2).sum(axis=0)[:, None]
        z2_ct = -2 * h2 * (a2_ct * last[:, 0]) * d2
        second_ct += h1.T @ z2_ct
        h1_ct += z2_ct @ second.T
        first_ct += x.T @ (h1_ct * d1)
        return [loss, first_ct, second_ct, last_ct]

    return step, [data["x"]]


def pytorch(torch, data):
    weights = [torch.tensor(w, requires_grad=True) for w in data["weights"]]

    def step(x):
        x = h = x.requires_grad_()
        for w in weights[:-1]:
            h = torch.tanh(h @ w)
        scores = h @ weights[-1]
        (slopes,) = torch.autograd.grad(scores, x, torch.ones_like(scores), create_graph=True)
        loss = torch.square(torch.sqrt(torch.square(slopes).sum(1) + 1e-12) - 1.0).mean()
        return [loss, *torch.autograd.grad(loss, weights)]

    return step, [data["x"]]


def jax(jax, data):
    jnp = jax.numpy
    weights = [jnp.asarray(w) for w in data["weights"]]

    def critic(x, weights):
        h = x
        for w in weights[:-1]:
            h = jnp.tanh(h @ w)
        return (h @ weights[-1]).sum()

    def penalty(weights, x):
        slopes = jax.grad(critic)(x, weights)
        return jnp.square(jnp.sqrt(jnp.square(slopes).sum(1) + 1e-12) - 1.0).mean()

    def step(x):
        value, gradients = jax.value_and_grad(penalty)(weights, x)
        return [value, *gradients]

    return step, [data["x"]]
