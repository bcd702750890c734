"""The loss of a logistic regression and its gradient by weights and bias."""

import numpy as np

SMALL = {"rows": 6, "columns": 3}


def inputs(rows, columns):
    random = np.random.default_rng(0)
    return {
        "x": random.standard_normal((rows, columns)).astype("f4"),
        "y": (random.random((rows, 1)) > 0.5).astype("f4"),
        "w": (random.standard_normal((columns, 1)) * 0.1).astype("f4"),
    }


def tensorflow(tf, data):
    w, b = tf.Variable(data["w"]), tf.Variable(np.zeros(1, "f4"))

    def step(x, y):
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, w) + b
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        return [loss, *tape.gradient(loss, [w, b])]

    return step, [data["x"], data["y"]]


def by_hand(data):
    w, b = data["w"], np.zeros(1, "f4")

    def step(x, y):
        z = x @ w
        z += b
        e = np.exp(-np.abs(z))
        loss = (np.maximum(z, 0) - z * y + np.log1p(e)).mean()
        ct = np.where(z >= 0, 1, e) / (1 + e)
        ct -= y
        ct /= np.float32(len(x))
        return [loss, x.T @ ct, ct.sum(axis=0)]

    return step, [data["x"], data["y"]]


def pytorch(torch, data):
    w, b = torch.tensor(data["w"], requires_grad=True), torch.zeros(1, requires_grad=True)

    def step(x, y):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y)
        return [loss, *torch.autograd.grad(loss, [w, b])]

    return step, [data["x"], data["y"]]


def jax(jax, data):
    jnp = jax.numpy
    variables = [jnp.asarray(data["w"]), jnp.zeros(1, "f4")]

    def loss(variables, x, y):
        z = x @ variables[0] + variables[1]
        return (jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()

    def step(x, y):
        value, gradients = jax.value_and_grad(loss)(variables, x, y)
        return [value, *gradients]

    return step, [data["x"], data["y"]]
