"""Attention (Vaswani et al. 2017) of queries to keys and values, all of one length: the loss and every gradient."""

import numpy as np

SMALL = {"batch": 2, "heads": 2, "length": 3, "width": 4}


def inputs(batch, heads, length, width):
    random = np.random.default_rng(0)
    names = ("queries", "keys", "values")
    return {name: random.standard_normal((batch, heads, length, width)).astype("f4") for name in names}


def _arguments(data):
    return [data["queries"], data["keys"], data["values"]]


def tensorflow(tf, data):
    scale = data["queries"].shape[-1] ** -0.5

    def step(q, k, v):
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * scale)
            loss = tf.reduce_mean(tf.square(tf.matmul(weights, v)))
        return [loss, *tape.gradient(loss, [q, k, v])]

    return step, _arguments(data)


def by_hand(data):
    scale = np.float32(data["queries"].shape[-1] ** -0.5)

    def step(q, k, v):
        weights = q @ k.swapaxes(-1, -2)
        weights *= scale
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, weights)
        weights /= weights.sum(-1, keepdims=True)
        y = weights @ v
        loss = np.square(y).mean()
        ct = y * np.float32(2 / y.size)
        v_ct = weights.swapaxes(-1, -2) @ ct
        scores_ct = ct @ v.swapaxes(-1, -2)
        scores_ct -= (scores_ct * weights).sum(-1, keepdims=True)
        scores_ct *= weights
        scores_ct *= scale
        return [loss, scores_ct @ k, scores_ct.swapaxes(-1, -2) @ q, v_ct]

    return step, _arguments(data)


def pytorch(torch, data):
    tensors = [torch.tensor(argument, requires_grad=True) for argument in _arguments(data)]

    def step():
        loss = torch.square(torch.nn.functional.scaled_dot_product_attention(*tensors)).mean()
        return [loss, *torch.autograd.grad(loss, tensors)]

    return step, []


def jax(jax, data):
    jnp, scale = jax.numpy, data["queries"].shape[-1] ** -0.5

    def loss(q, k, v):
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * scale)
        return jnp.square(weights @ v).mean()

    def step(q, k, v):
        value, gradients = jax.value_and_grad(loss, argnums=(0, 1, 2))(q, k, v)
        return [value, *gradients]

    return step, _arguments(data)
