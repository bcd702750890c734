"""Requests of Keras's loops: training needs none of its own, what a callback or the program reads comes in one."""

import importlib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession

STEPS = 20
X = np.random.default_rng(1).normal(size=(STEPS * 8, 6)).astype("float32")
Y = (X.sum(-1) > 0).astype("int64")


@pytest.fixture
def session(server_url: str) -> Iterator[Any]:
    with tf.connect(server_url) as connected:
        yield connected
    use(LocalSession())


def perceptron() -> Any:
    layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["sparse_categorical_crossentropy"])
    model.fit(X[:8], Y[:8], batch_size=8, verbose=0)
    tf.sync()
    return model


def requests(session: Any, action: Callable[[], Any]) -> int:
    before: int = session.requests
    action()
    return session.requests - before


def last_loss() -> Any:
    """A callback that reads the logs of each batch; Keras is imported here, which takes seconds."""

    class LastLoss(tf.keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
        def __init__(self) -> None:
            super().__init__()
            self.losses: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.losses.append(logs["loss"] + logs["sparse_categorical_crossentropy"])

    return LastLoss()


def test_a_model_is_built_without_a_request(session: Any) -> None:
    def build() -> None:
        tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(8), tf.keras.layers.BatchNormalization()])

    assert requests(session, build) == 0


def test_fit_waits_for_the_metrics_at_the_end_of_an_epoch(session: Any) -> None:
    model = perceptron()
    assert requests(session, lambda: model.fit(X, Y, batch_size=8, verbose=0)) <= 3


def test_fit_with_a_callback_of_batches_makes_one_request_a_step(session: Any) -> None:
    model, last = perceptron(), last_loss()
    count = requests(session, lambda: model.fit(X, Y, batch_size=8, verbose=0, callbacks=[last]))
    assert STEPS <= count <= STEPS + 2
    assert len(last.losses) == STEPS


def _generated() -> Iterator[Any]:
    for i in range(STEPS):
        yield X[i * 8 : i * 8 + 8], Y[i * 8 : i * 8 + 8]


ROWS = tf.data.Dataset.from_tensor_slices((X, Y))
SOURCES = {
    "dataset": lambda: ROWS.batch(8).prefetch(tf.data.AUTOTUNE),
    "shuffled": lambda: ROWS.shuffle(64).batch(8),
    "mapped": lambda: ROWS.map(lambda x, y: (x * 2.0, y)).batch(8),
    "filtered": lambda: ROWS.filter(lambda x, y: y >= 0).batch(8),
    "generator": _generated,
    "dataset_of_a_generator": lambda: tf.data.Dataset.from_generator(
        _generated, output_signature=(tf.TensorSpec((None, 6)), tf.TensorSpec((None,), tf.int64))
    ),
}


@pytest.mark.filterwarnings("ignore:Your input ran out of data", "ignore:`shuffle=True` was passed")  # as TensorFlow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("callbacks", [False, True])
def test_fit_on_other_data_makes_at_most_one_request_a_step(session: Any, source: str, callbacks: bool) -> None:
    model = perceptron()
    read = [last_loss()] if callbacks else []
    data = SOURCES[source]()
    count = requests(session, lambda: model.fit(data, verbose=0, callbacks=read))
    assert count <= STEPS + 4, f"{count} requests"
    assert all(len(last.losses) == STEPS for last in read)


def test_evaluate_and_predict_read_once(session: Any) -> None:
    model = perceptron()
    assert requests(session, lambda: model.evaluate(X, Y, batch_size=8, verbose=0)) <= 3
    assert requests(session, lambda: model.predict(X, batch_size=8, verbose=0)) <= 3


def test_an_epoch_that_a_program_writes_reads_only_what_it_asks(session: Any) -> None:
    model, optimizer = perceptron(), tf.keras.optimizers.Adam(0.01)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        optimizer.apply_gradients(
            zip(tape.gradient(value, model.trainable_variables), model.trainable_variables, strict=True)
        )
        return value

    def epoch() -> None:
        for i in range(STEPS):
            value = step(X[i * 8 : i * 8 + 8], Y[i * 8 : i * 8 + 8])
        assert float(value) > 0

    assert requests(session, epoch) <= 3


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy")  # of Keras's own variables
def test_weights_are_read_and_written_in_one_request(session: Any, tmp_path: Path) -> None:
    model = perceptron()
    assert requests(session, model.get_weights) == 1
    weights = model.get_weights()

    def write() -> None:
        model.set_weights(weights)
        tf.sync()

    assert requests(session, write) == 1
    model.fit(X[:8], Y[:8], batch_size=8, verbose=0)
    tf.sync()
    assert requests(session, lambda: model.save(tmp_path / "m.keras")) == 1
    model.fit(X[:8], Y[:8], batch_size=8, verbose=0)
    tf.sync()
    assert requests(session, lambda: model.save_weights(tmp_path / "m.weights.h5")) == 1

    def load() -> None:
        tf.keras.models.load_model(tmp_path / "m.keras")
        tf.sync()

    assert requests(session, load) == 1


def test_shapes_are_inferred_without_a_request_and_without_computing(session: Any) -> None:
    def describe() -> None:
        spec = tf.keras.KerasTensor((None, 4, 6))
        reshaped = tf.keras.ops.reshape(tf.keras.ops.matmul(spec, np.ones((6, 3), np.float32)), (-1, 3))
        assert (reshaped.shape, reshaped.dtype) == ((None, 3), "float32")
        huge = tf.keras.ops.ones_like(tf.keras.KerasTensor((1 << 20, 1 << 20)))
        assert huge.shape == (1 << 20, 1 << 20)
        backend = importlib.import_module("keras.src.backend")
        left = backend.compute_output_spec(lambda x: tf.concat([x, x], 1), tf.keras.KerasTensor((None, None, 3)))
        assert left.shape == (None, None, 3)

    assert requests(session, describe) == 0
    assert current() is session


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_a_recurrent_layer_is_one_command(kind: str) -> None:
    layer = getattr(tf.keras.layers, kind)(3, recurrent_initializer="zeros")
    layer.build((None, None, 2))

    def commands(steps: int) -> int:
        traced = tf.function(layer).get_concrete_function(tf.TensorSpec((2, steps, 2)))._traced
        return len(traced.function.commands)

    assert commands(4) == commands(40) < 30


@pytest.mark.parametrize("optimizer", ["rmsprop", "adagrad", "adam"])
def test_embeddings_are_trained_by_traced_steps(session: Any, optimizer: str, caplog: pytest.LogCaptureFixture) -> None:
    layers = [
        tf.keras.Input((4,)),
        tf.keras.layers.Embedding(9, 3),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1),
    ]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer, "mse")
    x, y = np.arange(STEPS * 8 * 4).reshape(-1, 4) % 9, Y.astype("float32")
    model.fit(x[:8], y[:8], batch_size=8, verbose=0)
    tf.sync()
    assert requests(session, lambda: model.fit(x, y, batch_size=8, verbose=0)) <= STEPS
    assert not [record for record in caplog.records if "op by op" in record.message]


def test_an_error_in_fit_shows_the_line_of_the_program_and_two_frames_more(session: Any) -> None:
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    labels = np.array([0, 1, 9, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 9") as caught:
        model.fit(np.ones((4, 4), np.float32), labels, verbose=0)
    names = [entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names[0] == __file__
    assert len(names) <= 3
