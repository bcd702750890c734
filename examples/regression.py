"""Linear and logistic regression by gradient descent, written as one writes them for TensorFlow.

    python examples/regression.py              # inside this process; TELETAPE_URL=http://… for a server

Prints how far the linear weights are from the exact least-squares solution, and how many of the two classes' points the
logistic model puts on the right side.
"""

from collections.abc import Callable

import numpy as np

import teletape as tf

POINTS, FEATURES = 400, 5
Loss = Callable[..., tf.Tensor]


def linear_loss(w: tf.Variable, b: tf.Variable, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Mean squared error of x [n, k] @ w [k] + b against y [n]."""
    return tf.reduce_mean(tf.square(tf.linalg.matmul(x, w[:, tf.newaxis])[:, 0] + b - y))


def logistic_loss(w: tf.Variable, b: tf.Variable, x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross-entropy of the labels [n], 0 or 1, with a little weight decay."""
    logits = tf.linalg.matmul(x, w[:, tf.newaxis])[:, 0] + b
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(entropy) + 1e-3 * tf.nn.l2_loss(w)


def descend(
    loss: Loss, w: tf.Variable, b: tf.Variable, data: tuple[tf.Tensor, ...], *, rate: float, steps: int
) -> float:
    """Gradient descent in place; the loss before the last step."""
    value = tf.constant(np.inf)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            value = loss(w, b, *data)
        dw, db = tape.gradient(value, [w, b])
        w.assign_sub(rate * dw)
        b.assign_sub(rate * db)
    return float(value)  # the only number read: the steps before it travel together


def fit_line(random: np.random.Generator) -> dict[str, float]:
    """Least squares by descent, compared with the exact solution."""
    x = random.normal(size=(POINTS, FEATURES))
    y = x @ np.linspace(-2, 2, FEATURES) + 0.5 + 0.1 * random.normal(size=POINTS)
    w, b = tf.Variable(tf.zeros([FEATURES], tf.float64)), tf.Variable(tf.zeros([], tf.float64))
    loss = descend(linear_loss, w, b, (tf.constant(x), tf.constant(y)), rate=0.3, steps=120)
    exact, *_ = np.linalg.lstsq(np.column_stack([x, np.ones(POINTS)]), y, rcond=None)
    error = np.abs(np.append(w.numpy(), b.numpy()) - exact).max()
    return {"linear loss": loss, "largest distance from the exact solution": float(error)}


def fit_classes(random: np.random.Generator) -> dict[str, float]:
    """Two clouds of points, one on each side."""
    labels = (random.uniform(size=POINTS) < 0.5).astype(np.float32)
    x = random.normal(size=(POINTS, FEATURES)).astype(np.float32)
    x[:, :2] += 2.4 * (labels[:, None] - 0.5)
    w, b = tf.Variable(tf.zeros([FEATURES])), tf.Variable(0.0)
    inputs = tf.constant(x)
    loss = descend(logistic_loss, w, b, (inputs, tf.constant(labels)), rate=0.5, steps=100)
    predicted = tf.linalg.matmul(inputs, w[:, tf.newaxis])[:, 0] + b > 0
    accuracy = np.mean(predicted.numpy() == (labels > 0.5))
    return {"logistic loss": loss, "accuracy": float(accuracy)}


def main() -> dict[str, float]:
    """Fits both; what they reached."""
    random = np.random.default_rng(0)
    return fit_line(random) | fit_classes(random)


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
