"""An LSTM written out by hand that learns to add two marked numbers of a sequence (Hochreiter, Schmidhuber 1997).

    python examples/lstm.py                    # inside this process; TELETAPE_URL=http://… for a server

Each step of a sequence shows a number in [0, 1] and a mark; the answer is the sum of the two marked numbers, which is
0.167 off on average (squared) for who always says 1. Prints the error on sequences that training never saw.
"""

from collections.abc import Sequence

import numpy as np

import teletape as tf

LENGTH, HIDDEN, BATCH, STEPS, RATE = 10, 24, 64, 220, 0.02


def sequences(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs [count, LENGTH, 2] and their answers [count]."""
    numbers, marks = random.uniform(size=(count, LENGTH)), np.zeros((count, LENGTH))
    for row in marks:
        row[random.choice(LENGTH, 2, replace=False)] = 1
    return np.stack([numbers, marks], axis=-1).astype(np.float32), (numbers * marks).sum(1).astype(np.float32)


class LSTM(tf.Module):
    """One layer of LSTM cells and a linear read-out of the last state."""

    def __init__(
        self, random: np.random.Generator, inputs: int = 2, hidden: int = HIDDEN, dtype: type[np.floating] = np.float32
    ) -> None:
        super().__init__()
        kernel = random.normal(size=(inputs + hidden, 4 * hidden)) / np.sqrt(inputs + hidden)
        bias = np.concatenate([np.zeros(hidden), np.ones(hidden), np.zeros(2 * hidden)])  # gates: remember at first
        self.kernel, self.bias = tf.Variable(kernel.astype(dtype)), tf.Variable(bias.astype(dtype))
        self.readout = tf.Variable((random.normal(size=(hidden, 1)) / np.sqrt(hidden)).astype(dtype))
        self.offset = tf.Variable(np.zeros((), dtype))
        self.hidden = hidden

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """The answers [n] to sequences x [n, length, inputs]."""
        h = c = tf.zeros([x.shape[0], self.hidden], x.dtype)
        for step in tf.unstack(x, axis=1):
            gates = tf.matmul(tf.concat([step, h], axis=1), self.kernel) + self.bias
            i, f, g, o = tf.split(gates, 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        return tf.squeeze(tf.matmul(h, self.readout), axis=1) + self.offset


class Adam:
    """Kingma, Ba 2015, algorithm 1."""

    def __init__(self, variables: Sequence[tf.Variable], rate: float) -> None:
        self.variables, self.rate, self.step = variables, rate, 0
        self.m = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.v = [tf.Variable(tf.zeros_like(v)) for v in variables]

    def apply(self, gradients: Sequence[tf.Tensor]) -> None:
        self.step += 1
        rate = self.rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        for variable, m, v, g in zip(self.variables, self.m, self.v, gradients, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * tf.square(g))
            variable.assign_sub(float(rate) * m / (tf.sqrt(v) + 1e-7))


def loss(model: LSTM, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Mean squared error."""
    return tf.reduce_mean(tf.square(model(x) - y))


@tf.function
def slopes(model: LSTM, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """The loss and its gradients, clipped: traced once, with the loop over the sequence unrolled."""
    with tf.GradientTape() as tape:
        error = loss(model, x, y)
    return error, [tf.clip_by_value(g, -1.0, 1.0) for g in tape.gradient(error, model.trainable_variables)]


def main() -> dict[str, float]:
    """Trains and tests; the errors, and the steps taken."""
    random = np.random.default_rng(0)
    model = LSTM(random)
    adam = Adam(model.trainable_variables, RATE)
    first = 0.0
    for step in range(STEPS):
        x, y = map(tf.constant, sequences(random, BATCH))
        error, gradients = slopes(model, x, y)
        adam.apply(gradients)
        if step == 0:
            first = float(error)
    x, y = map(tf.constant, sequences(random, 400))
    return {"first error": first, "test error": float(loss(model, x, y)), "steps": STEPS}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
