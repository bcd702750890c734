"""A Wasserstein GAN with gradient penalty on a ring of eight points in the plane (Gulrajani et al. 2017, algorithm 1).

    python examples/wgan_gp.py                 # inside this process; TELETAPE_URL=http://… for a server

The critic's loss holds the norm of its own gradient with respect to its input, so training it differentiates through a
gradient. Prints the distance between what the generator draws and the ring, before and after.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import teletape as tf

NOISE, HIDDEN, BATCH, STEPS, CRITIC, PENALTY, RATE = 4, 32, 64, 120, 3, 0.1, 3e-3


class Perceptron(tf.Module):
    """Two hidden layers: [n, inputs] to [n, outputs]."""

    def __init__(
        self,
        random: np.random.Generator,
        inputs: int,
        outputs: int,
        hidden: int = HIDDEN,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        super().__init__()
        sizes = [inputs, hidden, hidden, outputs]
        self.weights = [
            tf.Variable((random.normal(size=(m, n)) * np.sqrt(2 / m)).astype(dtype)) for m, n in pairwise(sizes)
        ]
        self.biases = [tf.Variable(np.zeros(n, dtype)) for n in sizes[1:]]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = tf.nn.leaky_relu(x @ w + b)
        return x @ self.weights[-1] + self.biases[-1]


class Adam:
    """Adam without its first moment's memory (beta 0 and 0.9), as the paper uses it."""

    def __init__(self, variables: Sequence[tf.Variable], rate: float = RATE) -> None:
        self.variables, self.rate, self.steps = variables, rate, 0
        self.moments = [tf.Variable(tf.zeros_like(v)) for v in variables]

    def apply(self, gradients: Sequence[tf.Tensor]) -> None:
        self.steps += 1
        rate = self.rate * float(np.sqrt(1 - 0.9**self.steps))
        for variable, v, g in zip(self.variables, self.moments, gradients, strict=True):
            v.assign(0.9 * v + 0.1 * g * g)
            variable.assign_sub(rate * g / (tf.sqrt(v) + 1e-7))


def penalty(critic: Perceptron, real: tf.Tensor, fake: tf.Tensor, mix: tf.Tensor) -> tf.Tensor:
    """E (‖∂critic/∂x‖ - 1)² at points between the real and the fake ones."""
    x = mix * real + (1 - mix) * fake
    with tf.GradientTape() as tape:
        tape.watch(x)
        scores = critic(x)
    slopes = tape.gradient(scores, x)
    return tf.reduce_mean((tf.sqrt(tf.reduce_sum(slopes**2, axis=1) + 1e-12) - 1) ** 2)


def critic_loss(critic: Perceptron, real: tf.Tensor, fake: tf.Tensor, mix: tf.Tensor) -> tf.Tensor:
    """The critic's error in separating fake from real, and how far its slope is from 1."""
    apart = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
    return apart + PENALTY * penalty(critic, real, fake, mix)


def ring(random: np.random.Generator, count: int) -> np.ndarray:
    """Points near eight places on a circle of radius 2."""
    angles = 2 * np.pi * random.integers(8, size=count) / 8
    centres = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return (centres + 0.05 * random.normal(size=(count, 2))).astype(np.float32)


def sliced_distance(a: np.ndarray, b: np.ndarray) -> float:
    """The Wasserstein-1 distance between two clouds, averaged over 32 directions."""
    angles = np.linspace(0, np.pi, 32, endpoint=False)
    along = np.stack([np.cos(angles), np.sin(angles)])
    return float(np.abs(np.sort(a @ along, axis=0) - np.sort(b @ along, axis=0)).mean())


def main() -> dict[str, float]:
    """Trains both; the distances, and the steps of either network."""
    random = np.random.default_rng(0)
    generator, critic = Perceptron(random, NOISE, 2), Perceptron(random, 2, 1)
    for_generator, for_critic = Adam(generator.trainable_variables), Adam(critic.trainable_variables)

    def noise(count: int = BATCH) -> tf.Tensor:
        return tf.constant(random.normal(size=(count, NOISE)).astype(np.float32))

    target, probe = ring(random, 500), noise(500)
    before = sliced_distance(generator(probe).numpy(), target)
    first = 0.0
    for step in range(STEPS):
        for turn in range(CRITIC):
            real, fake = tf.constant(ring(random, BATCH)), generator(noise())
            mix = tf.constant(random.uniform(size=(BATCH, 1)).astype(np.float32))
            with tf.GradientTape() as tape:
                loss = critic_loss(critic, real, fake, mix)
            for_critic.apply(tape.gradient(loss, critic.trainable_variables))
            if step == turn == 0:
                first = float(loss)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(noise())))
        for_generator.apply(tape.gradient(loss, generator.trainable_variables))
    after = sliced_distance(generator(probe).numpy(), target)
    return {"first loss": first, "distance before": before, "distance after": after, "steps": STEPS * (CRITIC + 1)}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
