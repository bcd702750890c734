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
from saved_functions import NORMAL, elements, images, products, reductions

import teletape as tf
from teletape.extras.exporting.onnx_graphs import FORMS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx.md"
ROWS = [tf.TensorSpec([None, 3], name="x")]
IMAGES = [tf.TensorSpec([None, 6, 6, 2], name="x")]


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
