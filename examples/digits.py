"""Trains a Keras model on scikit-learn's handwritten digits with Adam, written as one writes it for TensorFlow.

    make demo                                  # through a server on loopback
    python examples/digits.py                  # inside this process; TELETAPE_URL=http://… for a server

Prints the test accuracy and the requests a training step took, and draws the loss curve and, for four images, the
gradient of the loss with respect to the pixels. Exits with 1 if the accuracy or the requests miss their marks.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import teletape as tf

try:
    import matplotlib
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'teletape[demo]'") from error

matplotlib.use("agg")
from matplotlib import pyplot  # after the choice of a backend that needs no screen

HIDDEN, BATCH, EPOCHS, RATE = 64, 64, 15, 0.005
ACCURACY, REQUESTS_A_STEP = 0.95, 1.0
SHOWN = 4


keras: Any = tf.keras  # Keras has no types for checkers


def network() -> Any:
    """From images [n, 64] to scores [n, 10]."""
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((64,)), layers.Dense(HIDDEN, activation="relu"), layers.Dropout(0.1), layers.Dense(10)]
    )


def main() -> int:
    """Trains, reports, draws; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/digits.png"), help="where the picture goes")
    args = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    parts = train_test_split(images, labels.astype(np.int32), test_size=0.2, random_state=0, stratify=labels)
    x_train, x_test, y_train, y_test = map(np.asarray, parts)
    print(f"{len(images)} images of handwritten digits: {len(x_train)} to train on, {len(x_test)} held out")

    keras.utils.set_random_seed(0)
    order = np.random.default_rng(0)
    model = network()
    optimizer = keras.optimizers.Adam(RATE)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x: Any, y: Any) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss: tf.Tensor = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    session = tf.session()
    tf.sync()
    before = session.requests
    losses = []
    steps = EPOCHS * (len(x_train) // BATCH)
    with tqdm(total=steps, desc="training", unit="step", file=sys.stdout, mininterval=0.5) as bar:
        for _ in range(EPOCHS):
            shuffled = order.permutation(len(x_train))
            for start in range(0, len(x_train) - BATCH + 1, BATCH):
                rows = shuffled[start : start + BATCH]
                losses.append(float(step(x_train[rows], y_train[rows])))  # one read a step: one request
                bar.update()
    a_step = (session.requests - before) / steps

    predicted = tf.argmax(model(x_test), axis=1).numpy()
    accuracy = float(np.mean(predicted == y_test))
    draw(x_test[:SHOWN], y_test[:SHOWN], model, losses, args.out)
    print(f"test accuracy {accuracy:.3f} (mark: {ACCURACY})")
    print(f"requests a training step {a_step:.2f} (mark: {REQUESTS_A_STEP})")
    print(f"picture {args.out}")
    return 0 if accuracy >= ACCURACY and a_step <= REQUESTS_A_STEP else 1


def draw(x: np.ndarray, y: np.ndarray, model: Any, losses: list[float], out: Path) -> None:
    """The loss curve, and each image next to the gradient of its loss with respect to its pixels."""
    pixels = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(pixels)
        loss = keras.losses.sparse_categorical_crossentropy(y, model(pixels), from_logits=True)
    gradient = tape.gradient(loss, pixels).numpy()

    figure = pyplot.figure(figsize=(10, 4.5), layout="constrained")
    grid = figure.add_gridspec(2, 2 + SHOWN)
    curve = figure.add_subplot(grid[:, :2])
    curve.plot(losses, color="0.7", linewidth=0.8, label="each step")
    window = 22
    curve.plot(
        np.arange(window - 1, len(losses)),
        np.convolve(losses, np.ones(window) / window, "valid"),
        label="mean of an epoch",
    )
    curve.set(xlabel="training step", ylabel="cross-entropy", title="loss", yscale="log")
    curve.legend()
    for i in range(len(x)):
        image = figure.add_subplot(grid[0, 2 + i])
        image.imshow(x[i].reshape(8, 8), cmap="gray_r")
        image.set(title=f"a {y[i]}", xticks=[], yticks=[])
        heat = figure.add_subplot(grid[1, 2 + i])
        limit = float(np.abs(gradient[i]).max()) or 1.0
        heat.imshow(gradient[i].reshape(8, 8), cmap="coolwarm", vmin=-limit, vmax=limit)
        heat.set(title="d loss / d pixel", xticks=[], yticks=[])
        heat.title.set_fontsize("small")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
