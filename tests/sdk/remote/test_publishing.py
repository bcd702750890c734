"""`tf.publish`: functions and Keras models become functions of the server, with their variables as weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import teletape as tf
from teletape.extras.terminal.commands import main
from teletape.service import Client

ROWS = tf.TensorSpec([None, 2], name="x")


@pytest.fixture
def client(server_url: str) -> Iterator[Client]:
    with tf.connect(server_url), Client(server_url) as client:
        yield client


def test_a_function_takes_its_variables_along(client: Client) -> None:
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="dense/w")
    shift = tf.constant([0.5, -0.5])

    @tf.function
    def layer(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.tanh(x @ w + shift)}

    published = tf.publish(layer, "layer", [ROWS], examples=[{"x": [[1.0, 2.0]]}])
    assert published.inputs == (("x", "float32", ("batch", 2)),)
    assert published.outputs == (("y", "float32", ("batch", 2)),)
    assert published.weights == ("dense.w", "constant_1")
    assert published.batched
    x = tf.constant([[0.1, 0.2], [0.3, 0.4], [0.5, -0.6]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)["y"]
    expected = tape.gradient(y, x)
    w.assign(w * 2.0)  # what is published stays as it is
    answer = client.published["layer"].value_and_gradient(x=x.numpy())
    np.testing.assert_allclose(answer.values["y"], y.numpy(), rtol=1e-6)
    np.testing.assert_allclose(answer["x"], expected.numpy(), rtol=1e-5)


def test_a_keras_model_is_published_as_it_predicts(client: Client) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3, activation="relu"), layers.Dropout(0.5)])
    published = tf.publish(model, "model", visibility="everybody")
    assert published.inputs[0][1:] == ("float32", ("batch", 4))
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    values = client.published["model"].call([x]).values
    np.testing.assert_allclose(values["output"], model(x).numpy(), rtol=1e-5)


def test_arrays_that_a_function_makes_are_the_same_for_every_size(client: Client) -> None:
    def moved(x: tf.Tensor) -> tf.Tensor:
        return x + tf.constant([0.5, -0.5])

    assert tf.publish(moved, "moved", [ROWS]).inputs == (("x", "float32", ("batch", 2)),)
    np.testing.assert_allclose(client.published["moved"].call(x=[[1.0, 1.0]]).values["output"], [[1.5, 0.5]])


def test_an_onnx_network_is_published_with_the_names_of_its_file(client: Client) -> None:
    folder = Path(__file__).resolve().parents[1] / "onnx_models"
    recorded = np.load(folder / "networks.npz")
    for name in ("cnn", "block_by_dynamo", "recurrent"):
        net = tf.onnx.load(folder / f"{name}.onnx")
        published = tf.publish(net, name)
        assert published.inputs[0][2][0] == "batch"
        assert "out.weight" in published.weights or "embed.weight" in published.weights
        answer = client.published[name].call([recorded[f"{name}|x"]])
        np.testing.assert_allclose(answer.values["output"], recorded[f"{name}|y"], rtol=1e-4, atol=1e-5)


def test_a_reshape_to_the_size_of_the_batch_is_one_for_every_size(client: Client) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4, 2)), layers.Flatten(), layers.Reshape((2, 4)), layers.Dense(3)])
    assert tf.publish(model, "flat").inputs[0][2] == ("batch", 4, 2)
    x = np.random.default_rng(0).normal(size=(5, 4, 2)).astype(np.float32)
    np.testing.assert_allclose(client.published["flat"].call([x]).values["output"], model(x).numpy(), rtol=1e-5)


def test_arguments_and_results_of_any_structure_have_names(client: Client) -> None:
    def loss(batch: dict[str, tf.Tensor], scale: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        error = batch["x"] * scale - batch["y"]
        return tf.reduce_mean(error**2), [error]

    vector = tf.TensorSpec([None])
    published = tf.publish(loss, "loss", [{"x": vector, "y": vector}, tf.TensorSpec([])])
    assert [name for name, _, _ in published.inputs] == ["batch.x", "batch.y", "scale"]
    assert [(name, shape) for name, _, shape in published.outputs] == [("output.0", ()), ("output.1.0", ("batch",))]


def test_a_function_of_any_number_of_arguments_names_them_by_position(client: Client) -> None:
    published = tf.publish(lambda *values: values[0] * values[1], "product", [tf.TensorSpec([]), tf.TensorSpec([])])
    assert [name for name, _, _ in published.inputs] == ["values.0", "values.1"]
    answer = client.published["product"].value_and_gradient([np.float32(2.0), np.float32(3.0)])
    assert [derivative.value for derivative in answer.derivatives] == [3.0, 2.0]


def test_the_same_content_is_the_same_version(client: Client) -> None:
    versions = [tf.publish(lambda x: x * 2.0, "double", [ROWS]).version for _ in range(2)]
    assert versions[0] == versions[1]
    assert tf.publish(lambda x: x * 3.0, "double", [ROWS]).version != versions[0]
    assert len(client.published["double"].versions().versions) == 2
    functions = client.sessions[tf.session().id].functions.list().functions
    assert not [function.id for function in functions if str(function.id).startswith("published")]


def test_what_cannot_be_published_says_why(client: Client) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"give input_signature"):
        tf.publish(lambda x: x, "wrong")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"for the sizes 2 and 3 it has the steps tile"):
        tf.publish(lambda x: tf.tile(x, [x.shape[0], 1]), "wrong", [ROWS])
    rows = tf.TensorSpec([None])

    def loop(x: tf.Tensor) -> tf.Tensor:
        def is_small(value: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(value) < 100.0

        return tf.while_loop(is_small, lambda value: [value * 2.0], [x], maximum_iterations=x.shape[0])[0]

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'maximum_iterations': 2.*'maximum_iterations': 3"):
        tf.publish(loop, "wrong", [rows])
    with pytest.raises(tf.errors.InvalidArgumentError, match="draws random numbers"):
        tf.publish(lambda x: x + tf.random.normal([2]), "wrong", [ROWS])
    with pytest.raises(tf.errors.InvalidArgumentError, match="output is no dense tensor"):
        tf.publish(lambda x: None, "wrong", [ROWS])
    with pytest.raises(tf.errors.InvalidArgumentError, match="known rank"):
        tf.publish(lambda x: x, "wrong", [tf.TensorSpec(None)])
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.TeletapeError, match="assigns to"):
        tf.publish(lambda x: v.assign_add(x), "wrong", [tf.TensorSpec([2])])
    assert "wrong" not in [function.name for function in client.published.list().published]


def test_without_a_server_it_says_to_connect() -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match="Connect first"):
        tf.publish(lambda x: x, "nowhere", [ROWS])


def test_the_terminal_publishes(
    client: Client,
    server_url: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "squares.py").write_text("def square(x):\n    return x * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    where = ["square", server_url, "--function", "squares:square", "--input", "x=float32[batch]"]
    assert main(["publish", *where, "--visibility", "everybody"]) == 0
    assert capsys.readouterr().out.startswith("square@")
    assert client.published["square"].call(x=np.array([3.0], np.float32)).values["output"] == 9.0
    assert main(["publish", "square", server_url, "--function", "squares:cube"]) == 1
    assert "expected MODULE:NAME" in capsys.readouterr().err
    assert main(["publish", "wave", server_url, "--text", "y = sin(x)", "--input", "x"]) == 1
    assert "x=float32[batch,784]" in capsys.readouterr().err
    assert main(["publish", "wave", server_url, "--text", "y = sin(x) * x", "--input", "x=float64[n]"]) == 0
    assert client.published["wave"].call(x=np.array([1.0, 2.0])).values["y"].dtype == np.float64
    assert capsys.readouterr().out.startswith("wave@")
