"""A small convolutional network on scikit-learn's handwritten digits (8 x 8 pixels).

    python examples/convnet.py                 # inside this process; TELETAPE_URL=http://… for a server

Two convolutions, each with a relu and a pooling, then a dense layer; stochastic gradient descent with momentum. A step
is one tf.function: traced once, it is one command. Prints the losses and the accuracy on held-out images.
"""

import numpy as np

import teletape as tf

try:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'teletape[demo]'") from error

BATCH, EPOCHS, RATE, MOMENTUM = 64, 8, 0.08, 0.9


class Network(tf.Module):
    """From images [n, 8, 8, 1] to scores [n, 10]."""

    def __init__(
        self, random: np.random.Generator, channels: tuple[int, int] = (8, 16), dtype: type[np.floating] = np.float32
    ) -> None:
        super().__init__()
        item, two = channels

        def weight(*shape: int) -> tf.Variable:
            fan_in = int(np.prod(shape[:-1]))
            return tf.Variable((random.normal(size=shape) * np.sqrt(2 / fan_in)).astype(dtype))

        self.kernels = [weight(3, 3, 1, item), weight(3, 3, item, two)]
        self.biases = [tf.Variable(np.zeros(n, dtype)) for n in channels]
        self.dense, self.offset = weight(2 * 2 * two, 10), tf.Variable(np.zeros(10, dtype))

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        x = images
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"), bias))
            x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
        return tf.reshape(x, [x.shape[0], -1]) @ self.dense + self.offset


def loss(network: Network, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross-entropy of the labels [n]."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=network(images)))


def main() -> dict[str, float]:
    """Trains and tests; the losses, the accuracy, the steps taken."""
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels.astype(np.int32)
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.25, random_state=0)
    random = np.random.default_rng(0)
    network = Network(random)
    weights = network.trainable_variables
    velocities = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
    losses = []

    @tf.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = loss(network, images, labels)
        for weight, velocity, gradient in zip(weights, velocities, tape.gradient(value, weights), strict=True):
            velocity.assign(MOMENTUM * velocity + gradient)
            weight.assign_sub(RATE * velocity)
        return value

    for _ in range(EPOCHS):
        order = random.permutation(len(x_train))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            value = step(tf.constant(x_train[rows]), tf.constant(y_train[rows]))
            losses.append(float(value))  # one read a step: one request
    predicted = tf.argmax(network(tf.constant(x_test)), axis=1).numpy()
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "accuracy": float(np.mean(predicted == y_test)),
        "steps": len(losses),
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
