"""A step of a network 784-512-256-10: the loss of a batch and every gradient, or an update that returns the loss."""

import itertools

import numpy as np

SIZES = (784, 512, 256, 10)
SMALL = {"batch": 4, "sizes": (5, 4, 3, 2)}
RATE = 1e-3


def inputs(batch, sizes=SIZES, update=False):
    random = np.random.default_rng(0)
    return {
        "x": random.standard_normal((batch, sizes[0])).astype("f4"),
        "y": random.integers(0, sizes[-1], batch).astype("i4"),
        "weights": [(random.standard_normal(shape) * 0.05).astype("f4") for shape in itertools.pairwise(sizes)],
        "biases": [np.zeros(n, "f4") for n in sizes[1:]],
        "update": update,
    }


def tensorflow(tf, data):
    weights, biases = [tf.Variable(w) for w in data["weights"]], [tf.Variable(b) for b in data["biases"]]
    variables, update = weights + biases, data["update"]

    def step(x, y):
        with tf.GradientTape() as tape:
            h = x
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                h = tf.nn.relu(tf.matmul(h, w) + b)
            logits = tf.matmul(h, weights[-1]) + biases[-1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        gradients = tape.gradient(loss, variables)
        if not update:
            return [loss, *gradients]
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(RATE * gradient)
        return [loss]

    return step, [data["x"], data["y"]]


def by_hand(data):
    weights, biases = [w.copy() for w in data["weights"]], [b.copy() for b in data["biases"]]
    gradients, update = [np.empty_like(w) for w in weights], data["update"]
    rows = np.arange(len(data["x"]))

    def step(x, y):
        values = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = values[-1] @ w
            h += b
            values.append(np.maximum(h, 0, out=h))
        ct = values[-1] @ weights[-1]
        ct += biases[-1]
        ct -= ct.max(axis=1, keepdims=True)
        picked = ct[rows, y]
        np.exp(ct, ct)
        sums = ct.sum(axis=1, keepdims=True)
        loss = (np.log(sums[:, 0]) - picked).mean()
        ct /= sums
        ct[rows, y] -= 1
        ct /= np.float32(len(x))
        bias_gradients = [None] * len(weights)
        for i in range(len(weights) - 1, -1, -1):
            np.matmul(values[i].T, ct, gradients[i])
            bias_gradients[i] = ct.sum(axis=0)
            if i:
                ct = ct @ weights[i].T
                ct *= values[i] > 0
        if not update:
            return [loss, *gradients, *bias_gradients]
        for variable, gradient in zip(weights + biases, gradients + bias_gradients, strict=True):
            variable -= np.float32(RATE) * gradient
        return [loss]

    return step, [data["x"], data["y"]]


def pytorch(torch, data):
    weights, biases = (
        [torch.tensor(a, requires_grad=True) for a in arrays] for arrays in (data["weights"], data["biases"])
    )
    variables, update = weights + biases, data["update"]

    def step(x, y):
        h = x
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.relu(h @ w + b)
        loss = torch.nn.functional.cross_entropy(h @ weights[-1] + biases[-1], y.long())
        gradients = torch.autograd.grad(loss, variables)
        if not update:
            return [loss, *gradients]
        with torch.no_grad():
            for variable, gradient in zip(variables, gradients, strict=True):
                variable -= RATE * gradient
        return [loss]

    return step, [data["x"], data["y"]]


def jax(jax, data):
    jnp = jax.numpy
    variables = [jnp.asarray(a) for a in data["weights"] + data["biases"]]

    def loss(variables, x, y):
        weights, biases = variables[: len(variables) // 2], variables[len(variables) // 2 :]
        h = x
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = jax.nn.relu(h @ w + b)
        logits = jax.nn.log_softmax(h @ weights[-1] + biases[-1])
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    def step(x, y):
        value, gradients = jax.value_and_grad(loss)(variables, x, y)
        return [value, *gradients]

    return step, [data["x"], data["y"]]
