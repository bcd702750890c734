"""A physics-informed network: it learns the solution of u'' + u = 0 from the equation alone (Raissi et al. 2019).

    python examples/pinn.py                    # inside this process; TELETAPE_URL=http://… for a server

The network never sees the solution: its loss is the equation's residual, which takes second derivatives with respect to
the input, and the two conditions u(0) = 0 and u(π/2) = 1. Prints the largest distance from sin on [0, π].
"""

import numpy as np

import teletape as tf

HIDDEN, POINTS, STEPS, RATE = 16, 40, 400, 0.01


class Network(tf.Module):
    """A perceptron of one hidden layer, from points [n, 1] to u [n, 1]."""

    def __init__(self, random: np.random.Generator):
        super().__init__()
        self.w1 = tf.Variable(random.normal(size=(1, HIDDEN)))
        self.b1 = tf.Variable(random.normal(size=HIDDEN))
        self.w2 = tf.Variable(random.normal(size=(HIDDEN, 1)) / np.sqrt(HIDDEN))
        self.b2 = tf.Variable(np.zeros(1))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.tanh(x @ self.w1 + self.b1) @ self.w2 + self.b2


def residual(u: Network, x: tf.Tensor) -> tf.Tensor:
    """u'' + u at the points x [n, 1]."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = u(x)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x) + y


def loss(u: Network, x: tf.Tensor, ends: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """How far u is from the equation, and from the conditions."""
    return tf.reduce_mean(residual(u, x) ** 2) + tf.reduce_sum((u(ends) - values) ** 2)


def main() -> dict[str, float]:
    """Trains with Adam; the losses, and the distance from the solution."""
    random = np.random.default_rng(0)
    u = Network(random)
    variables = u.trainable_variables
    moments = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables]
    x = tf.constant(np.linspace(0, np.pi, POINTS)[:, np.newaxis])
    ends, values = tf.constant([[0.0], [np.pi / 2]], tf.float64), tf.constant([[0.0], [1.0]], tf.float64)
    losses = []
    for step in range(1, STEPS + 1):
        with tf.GradientTape() as tape:
            value = loss(u, x, ends, values)
        rate = RATE * float(np.sqrt(1 - 0.999**step) / (1 - 0.9**step))
        for variable, g, (m, v) in zip(variables, tape.gradient(value, variables), moments, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            variable.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))
        losses.append(value)
    losses = tf.stack(losses[:1] + losses[-1:]).numpy()  # the one read
    error = np.abs(u(x).numpy() - np.sin(x.numpy())).max()
    return {"first loss": losses[0], "last loss": losses[1], "distance from sin": error, "steps": STEPS}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
