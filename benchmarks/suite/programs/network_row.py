"""One row of a network 784-512-256-10: its value, and the gradient by the row, as many callers of a model ask."""

import numpy as np

from suite.programs import mlp

SMALL = {"sizes": (5, 4, 3, 2)}
#: The network as a server of functions takes it; the result is the logarithm of the sum of the exponentials.
TEXT = """\
h0 = relu(x @ w0 + b0)
h1 = relu(h0 @ w1 + b1)
result = sum(log(sum(exp(h1 @ w2 + b2), axis=1)))
"""


def inputs(sizes=mlp.SIZES):
    data = mlp.inputs(1, sizes)
    return {"x": data["x"], "weights": data["weights"], "biases": data["biases"]}


def named(data):
    """The weights by their names in the text."""
    weights = {f"w{number}": array for number, array in enumerate(data["weights"])}
    return weights | {f"b{number}": array for number, array in enumerate(data["biases"])}


def tensorflow(tf, data):
    w0, w1, w2, b0, b1, b2 = (tf.constant(array) for array in (*data["weights"], *data["biases"]))

    def step(x):
        with tf.GradientTape() as tape:
            x = tf.convert_to_tensor(x)
            tape.watch(x)
            h = tf.nn.relu(tf.nn.relu(x @ w0 + b0) @ w1 + b1)
            value = tf.reduce_sum(tf.reduce_logsumexp(h @ w2 + b2, axis=1))
        return [value, tape.gradient(value, x)]

    return step, [data["x"]]


def by_hand(data):
    (w0, w1, w2), (b0, b1, b2) = data["weights"], data["biases"]

    def step(x):
        h0 = np.maximum(x @ w0 + b0, 0)
        h1 = np.maximum(h0 @ w1 + b1, 0)
        exponentials = np.exp(h1 @ w2 + b2)
        sums = exponentials.sum(axis=1, keepdims=True)
        ct = ((exponentials / sums) @ w2.T) * (h1 > 0)
        ct = (ct @ w1.T) * (h0 > 0)
        return [np.log(sums).sum(), ct @ w0.T]

    return step, [data["x"]]


def pytorch(torch, data):
    w0, w1, w2, b0, b1, b2 = (torch.tensor(array) for array in (*data["weights"], *data["biases"]))

    def step(x):
        x = x.detach().requires_grad_()
        h = torch.relu(torch.relu(x @ w0 + b0) @ w1 + b1)
        value = torch.logsumexp(h @ w2 + b2, dim=1).sum()
        return [value, *torch.autograd.grad(value, x)]

    return step, [data["x"]]
