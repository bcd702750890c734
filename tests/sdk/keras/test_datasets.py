"""Keras's loops over datasets, arrays and generators: the same in this process and over HTTP, and what they send."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession

ROWS, BATCH = 64, 8
X = np.random.default_rng(1).normal(size=(ROWS, 20)).astype("float32")
Y = (X.sum(-1) > 0).astype("int64")
Dataset = tf.data.Dataset


def perceptron() -> Any:
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.Input((20,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def batches() -> Any:
    return Dataset.from_tensor_slices((X, Y)).batch(BATCH)


def generator() -> Iterator[Any]:
    while True:
        for at in range(0, ROWS, BATCH):
            yield X[at : at + BATCH], Y[at : at + BATCH]


def sequence() -> Any:
    """The batches as Keras's own kind of dataset; Keras is imported here, which takes seconds."""

    class Sequence(tf.keras.utils.PyDataset):  # type: ignore[misc]  # Keras has no types
        def __len__(self) -> int:
            return ROWS // BATCH

        def __getitem__(self, index: int) -> Any:
            return X[index * BATCH : (index + 1) * BATCH], Y[index * BATCH : (index + 1) * BATCH]

    return Sequence()


def losses(data: Any, *more: Any, **options: Any) -> list[float]:
    history = perceptron().fit(data, *more, epochs=2, verbose=0, shuffle=False, **options)
    return [float(loss) for loss in history.history["loss"]]


def test_all_kinds_of_data_train_alike(connected: Any) -> None:
    expected = losses(X, Y, batch_size=BATCH)
    steps = {"steps_per_epoch": ROWS // BATCH}
    kinds = [
        losses(batches()),
        losses(batches().prefetch(tf.data.AUTOTUNE)),
        losses(Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 1.0, y)).batch(BATCH)),
        losses(batches().repeat(), **steps),
        losses(generator(), **steps),
        losses(sequence()),
    ]
    for kind in kinds:
        assert kind == pytest.approx(expected, rel=1e-5)


def test_class_weights_and_other_loops(connected: Any) -> None:
    weighted = losses(batches(), class_weight={0: 1.0, 1: 2.0})
    assert weighted == pytest.approx(losses(X, Y, batch_size=BATCH, class_weight={0: 1.0, 1: 2.0}), rel=1e-5)
    model = perceptron()
    assert model.evaluate(batches(), verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)
    rows = Dataset.from_tensor_slices(X).batch(BATCH)
    np.testing.assert_allclose(model.predict(rows, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
    history = model.fit(batches(), validation_data=batches(), verbose=0, shuffle=False).history
    assert sorted(history) == ["loss", "val_loss"]


def test_preprocessing_layers_map_and_adapt(connected: Any) -> None:
    layer = tf.keras.layers.Normalization()
    layer.adapt(Dataset.from_tensor_slices(X).batch(BATCH))
    np.testing.assert_allclose(layer.mean.numpy()[0], X.mean(0), rtol=1e-4, atol=1e-5)
    [first, *_] = Dataset.from_tensor_slices(X).batch(BATCH).map(layer)
    np.testing.assert_allclose(first.numpy(), (X[:BATCH] - X.mean(0)) / X.std(0), rtol=1e-3, atol=1e-4)
    windows = tf.keras.utils.timeseries_dataset_from_array(
        np.arange(9.0), np.arange(9.0), sequence_length=3, batch_size=4
    )
    assert [(x.shape, y.numpy().tolist()) for x, y in windows] == [([4, 3], [0, 1, 2, 3]), ([3, 3], [4, 5, 6])]


@pytest.fixture
def sent(server_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each array that is sent to a server."""
    sizes: list[int] = []
    with tf.connect(server_url) as session:
        constant = session.constant

        def counted(array: Any) -> Any:
            sizes.append(array.nbytes)
            return constant(array)

        monkeypatch.setattr(session, "constant", counted)
        yield sizes
    use(LocalSession())


@pytest.mark.parametrize("kind", ["arrays", "dataset"])
def test_data_is_sent_once_for_all_epochs(sent: list[int], kind: str) -> None:
    model = perceptron()
    data, options = ((X, Y), {"batch_size": BATCH}) if kind == "arrays" else ((batches(),), {"shuffle": False})
    model.fit(X[:BATCH], Y[:BATCH], verbose=0)  # makes the optimizer's variables
    tf.sync()
    del sent[:]
    before = current().requests
    model.fit(*data, epochs=4, verbose=0, **options)
    assert current().requests - before <= 5
    small = [size for size in sent if size <= 2 * BATCH * 8]  # indices, labels and Keras's own numbers
    large = sum(sent) - sum(small)
    assert large <= X.nbytes + Y.nbytes + BATCH * (20 * 4 + 8)


def test_arrays_that_are_too_large_are_sent_batch_by_batch(sent: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELETAPE_DATASET_BYTES", "1000")
    perceptron().fit(X, Y, batch_size=BATCH, epochs=2, verbose=0)
    assert max(sent) <= max(BATCH * 20 * 4, 20 * 8 * 4)
    assert sum(size for size in sent if size == BATCH * 20 * 4) >= 2 * X.nbytes
