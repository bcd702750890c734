"""The Jacobian of a network of three tanh layers for one example, at once or by a backward pass for each row."""

import numpy as np

SMALL = {"width": 3}
LAYERS = 3


def inputs(width, way="jacobian"):
    random = np.random.default_rng(0)
    return {
        "x": random.normal(size=(1, width)).astype("f4"),
        "weights": [(random.normal(size=(width, width)) / width**0.5).astype("f4") for _ in range(LAYERS)],
        "way": way,
    }


def tensorflow(tf, data):
    weights, way, width = [tf.constant(w) for w in data["weights"]], data["way"], data["x"].size
    units = [tf.constant(unit[None]) for unit in np.eye(width, dtype="f4")]

    def step(x):
        with tf.GradientTape(persistent=way == "rows") as tape:
            tape.watch(x)
            y = x
            for w in weights:
                y = tf.tanh(tf.matmul(y, w))
        if way == "rows":
            return [tf.concat([tape.gradient(y, x, output_gradients=unit) for unit in units], 0)]
        return [tf.reshape(tape.jacobian(y, x), [width, width])]

    return step, [data["x"]]


def by_hand(data):
    """The product of the layers' Jacobians: D₃ W₃ᵀ D₂ W₂ᵀ D₁ W₁ᵀ."""
    weights, units = data["weights"], np.eye(data["x"].size, dtype="f4")

    def step(x):
        jacobian = units
        for w in weights:
            x = np.tanh(x @ w)
            jacobian = (1 - x * x).T * (w.T @ jacobian)
        return [jacobian]

    return step, [data["x"]]


def pytorch(torch, data):
    weights = [torch.from_numpy(w) for w in data["weights"]]

    def network(x):
        for w in weights:
            x = torch.tanh(x @ w)
        return x[0]

    jacobian = torch.func.jacrev(network)
    return lambda x: [jacobian(x)[:, 0]], [data["x"]]


def jax(jax, data):
    weights, jnp = [jax.numpy.asarray(w) for w in data["weights"]], jax.numpy

    def network(x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x[0]

    return lambda x: [jax.jacrev(network)(x)[:, 0]], [data["x"]]
