"""`tf.onnx.save`: ONNX's own evaluator computes from the file what the function computes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import teletape as tf
from teletape.extras.onnx.export import FORMS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx.md"
ROWS = [tf.TensorSpec([None, 3], name="x")]
IMAGES = [tf.TensorSpec([None, 6, 6, 2], name="x")]
NORMAL = np.random.default_rng(0).normal

W = tf.Variable(NORMAL(size=(3, 4)).astype(np.float32), name="w")
K = tf.Variable(NORMAL(size=(3, 3, 2, 4)).astype(np.float32), name="k")
D = tf.Variable(NORMAL(size=(3, 3, 1, 4)).astype(np.float32), name="d")


def products(x: tf.Tensor) -> dict[str, tf.Tensor]:
    h = tf.nn.relu(x @ W + tf.constant([0.1, -0.1, 0.2, 0.0]))
    return {
        "turned": tf.matmul(x, x, transpose_a=True),
        "parts": tf.reshape(tf.concat([h, -h], 1), [-1, 2, 4]),
        "axes": tf.squeeze(tf.transpose(tf.expand_dims(h, 1), [1, 2, 0]), 0),
        "probabilities": tf.nn.softmax(2.0 * h - 1),
        "logs": tf.nn.log_softmax(h, axis=0),
    }


def elements(x: tf.Tensor) -> dict[str, tf.Tensor]:
    positive = tf.abs(x) + 0.5
    return {
        "first": tf.tanh(x) + tf.sigmoid(x) * tf.exp(x) / positive - tf.math.log(positive) ** 2,
        "second": tf.sqrt(positive) + tf.math.rsqrt(positive) + tf.square(x) + tf.math.reciprocal(positive),
        "third": tf.nn.gelu(x) + tf.nn.silu(x) + tf.nn.elu(x) + tf.nn.selu(x) + tf.nn.softplus(x) + tf.nn.softsign(x),
        "fourth": tf.sin(x) + tf.cos(x) + tf.tan(x / 4) + tf.math.erf(x) + tf.floor(x) + tf.math.ceil(x),
        "fifth": tf.round(x) + tf.sign(x) + tf.maximum(x, 0.0) - tf.minimum(x, 0.5),
        "chosen": tf.where(tf.logical_or(x > 0.5, tf.logical_not(x <= 0.0)), x, -x),
        "half": tf.where(x > 0.0, x, 0.5),
        "equal": tf.logical_and(x >= 0.0, tf.equal(x, tf.abs(x))),
        "less": tf.cast(x < 0.0, tf.int32) + 1,
    }


def reductions(x: tf.Tensor) -> dict[str, tf.Tensor]:
    return {
        "sum": tf.reduce_sum(x),
        "mean": tf.reduce_mean(x, 1),
        "largest": tf.reduce_max(x, axis=[0, 1], keepdims=True),
        "smallest": tf.reduce_min(x, 0),
        "product": tf.reduce_prod(x, -1),
        "logs": tf.reduce_logsumexp(x, 1),
    }


def images(x: tf.Tensor) -> dict[str, tf.Tensor]:
    h = tf.nn.conv2d(x, K, [1, 2, 2, 1], "SAME")
    return {
        "grouped": tf.nn.conv2d(x, D, 1, [[0, 0], [1, 2], [0, 1], [0, 0]], dilations=2),
        "largest": tf.nn.max_pool2d(h, 2, 1, "VALID"),
        "means": tf.nn.avg_pool2d(h, 2, 2, "SAME"),
        "norm": tf.nn.batch_normalization(h, [1.0] * 4, [2.0] * 4, [0.5] * 4, [1.0] * 4, 1e-3),
    }


def both(fn: Any, path: Path, x: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the outputs of the function, and those that ONNX's evaluator computes from the file."""
    onnx.checker.check_model(str(path), full_check=True)
    evaluator = ReferenceEvaluator(str(path))
    results = evaluator.run(None, dict(zip(evaluator.input_names, [x], strict=True)))
    expected = fn(x)
    return expected if isinstance(expected, dict) else {"output": expected}, dict(
        zip(evaluator.output_names, results, strict=True)
    )


@pytest.mark.parametrize(
    ("fn", "signature"), [(products, ROWS), (elements, ROWS), (reductions, ROWS), (images, IMAGES)]
)
def test_a_function_is_saved_for_batches_of_any_size(fn: Any, signature: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "fn.onnx"
    tf.onnx.save(fn, path, signature)
    x = NORMAL(size=(5, *signature[0].shape[1:])).astype(np.float32)
    expected, results = both(fn, path, x)
    assert set(results) == set(expected)
    for name, value in expected.items():
        assert results[name].dtype == value.numpy().dtype
        np.testing.assert_allclose(results[name], value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_model_is_saved_with_its_weights_and_loaded_again(tmp_path: Path) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(3, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4, activation="softmax"),
        ]
    )
    path = tmp_path / "model.onnx"
    tf.onnx.save(model, path)
    x = NORMAL(size=(3, 8, 8, 1)).astype(np.float32)
    expected, results = both(model, path, x)
    np.testing.assert_allclose(results["output"], expected["output"].numpy(), rtol=1e-5, atol=1e-6)
    loaded = tf.onnx.load(path)
    np.testing.assert_allclose(loaded(x).numpy(), expected["output"].numpy(), rtol=1e-5, atol=1e-6)
    assert len(loaded.weights) == len(model.weights)


def test_an_output_may_have_the_name_of_an_input(tmp_path: Path) -> None:
    tf.onnx.save(lambda x: {"x": x + 1.0}, tmp_path / "next.onnx", ROWS)
    x = np.ones((2, 3), np.float32)
    _, results = both(lambda x: {"x": x + 1.0}, tmp_path / "next.onnx", x)
    np.testing.assert_array_equal(results["x.result"], x + 1)


def test_ops_without_a_form_are_named_at_once(tmp_path: Path) -> None:
    def strange(x: tf.Tensor) -> tf.Tensor:
        return tf.sort(tf.math.digamma(x)) + tf.while_loop(lambda y: tf.reduce_sum(y) < 9.0, lambda y: y + 1.0, [x])[0]

    with pytest.raises(tf.errors.UnimplementedError, match=r"While, digamma, sort"):
        tf.onnx.save(strange, tmp_path / "strange.onnx", [tf.TensorSpec([3])])
    assert not list(tmp_path.iterdir())


def test_a_function_needs_a_signature_and_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.onnx\.save: callers have to know"):
        tf.onnx.save(tf.tanh, tmp_path / "tanh.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'teletape[onnx]'")):
        tf.onnx.save(tf.tanh, tmp_path / "tanh.onnx", ROWS)


def test_the_page_lists_the_ops_that_have_a_form() -> None:
    listed = PAGE.read_text().partition("These ops have a form:")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(FORMS)
