"""`tf.stablehlo.save`: XLA computes from the file what the function computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_functions import NORMAL, elements, images, products, reductions

import teletape as tf
from programs import run
from teletape.extras.exporting import onnx_graphs, stablehlo

PYTHON = Path(__file__).resolve().parents[3] / ".venv/clients/bin/python"
#: Runs each program of a folder, by JAX's client of XLA, on the arrays of its name.
XLA = """
import os
from pathlib import Path
import jax, numpy as np
from jax._src.lib import xla_client
jax.config.update("jax_enable_x64", True)
client = jax.devices()[0].client
devices = xla_client.DeviceList(tuple(jax.devices()[:1]))
for path in Path(os.environ["PROGRAMS"]).glob("*.mlir"):
    with np.load(path.with_suffix(".npz")) as file:
        arrays = [jax.device_put(file[name]) for name in file.files]
    program = client.compile_and_load(path.read_text(), devices, xla_client.CompileOptions())
    results = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    np.savez(path.with_suffix(".results.npz"), *[np.asarray(parts[0]) for parts in results])
"""
STACK = NORMAL(size=(4, 2, 3)).astype(np.float32)


def kinds(x: tf.Tensor, n: tf.Tensor) -> dict[str, tf.Tensor]:
    """Other dtypes than float32, infinities, arrays without elements, products of stacks."""
    return {
        "double": tf.cast(x, tf.float64) * np.array([0.1, 0.2, np.inf]),
        "whole": tf.reduce_max(n, 0) - n,
        "half": tf.cast(tf.constant([0.5, 1.5, -2.0], tf.bfloat16), tf.float32) * x,
        "truth": tf.where(tf.constant([True, False, True]), x, -x),
        "infinite": tf.reduce_logsumexp(tf.math.log(tf.nn.relu(x) * 0.0), 1),
        "none": tf.concat([tf.zeros([0, 3]), x], 0),
        "stack": tf.matmul(tf.reshape(x, [1, 2, 3]), STACK, transpose_b=True),
    }


PROGRAMS: dict[str, tuple[Any, list[Any]]] = {
    "products": (products, [[5, 3]]),
    "elements": (elements, [[5, 3]]),
    "reductions": (reductions, [[5, 3]]),
    "images": (images, [[5, 6, 6, 2]]),
    "kinds": (kinds, [[2, 3], [2]]),
}


def expected(value: Any) -> dict[str, Any]:
    return {name: part.numpy() for name, part in (value if isinstance(value, dict) else {"output": value}).items()}


@pytest.mark.clients
def test_xla_computes_what_the_function_computes(tmp_path: Path) -> None:
    results = {}
    for name, (fn, shapes) in PROGRAMS.items():
        arrays = [
            NORMAL(size=shapes[0]).astype(np.float32),
            *[np.arange(9, 9 + n, dtype=np.int32) for [n] in shapes[1:]],
        ]
        tf.stablehlo.save(fn, tmp_path / f"{name}.mlir", [tf.TensorSpec(array.shape, array.dtype) for array in arrays])
        np.savez(tmp_path / f"{name}.npz", *arrays)
        results[name] = expected(fn(*[tf.constant(array) for array in arrays]))
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((8, 8, 1), batch_size=3), layers.Conv2D(3, 3, activation="relu"), layers.MaxPool2D(),
         layers.Flatten(), layers.Dense(4, activation="softmax")]
    )  # fmt: skip
    image = NORMAL(size=(3, 8, 8, 1)).astype(np.float32)
    tf.stablehlo.save(model, tmp_path / "model.mlir")
    np.savez(tmp_path / "model.npz", image)
    results["model"] = expected(model(image))
    run([str(PYTHON), "-c", XLA], patience=110, PROGRAMS=str(tmp_path), JAX_PLATFORMS="cpu")
    for name, outputs in results.items():
        with np.load(tmp_path / f"{name}.results.npz") as file:
            assert len(file.files) == len(outputs)
            for key, (label, value) in zip(file.files, outputs.items(), strict=True):
                assert (file[key].dtype, file[key].shape) == (value.dtype, value.shape), (name, label)
                np.testing.assert_allclose(file[key], value, rtol=1e-5, atol=1e-5, err_msg=f"{name} {label}")


def test_the_file_says_what_it_takes_and_returns(tmp_path: Path) -> None:
    path = tmp_path / "wave.mlir"
    tf.stablehlo.save(lambda x, w: {"y": tf.tanh(x) * w, "n": w}, path, [tf.TensorSpec([2]), tf.TensorSpec([])])
    lines = path.read_text().splitlines()
    assert lines[:2] == ["// Inputs: x, w", "// Outputs: y, n"]
    assert "@main(%arg0: tensor<2xf32>, %arg1: tensor<f32>) -> (tensor<2xf32>, tensor<f32>)" in lines[3]


def test_what_has_no_form_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "refused.mlir"
    with pytest.raises(tf.errors.UnimplementedError, match=r"StableHLO here: digamma, sort"):
        tf.stablehlo.save(lambda x: tf.sort(tf.math.digamma(x)), path, [tf.TensorSpec([3])])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x: \['batch', 3\]: a program is for one size"):
        tf.stablehlo.save(tf.tanh, path, [tf.TensorSpec([None, 3], name="x")])
    with pytest.raises(tf.errors.UnimplementedError, match="values of complex64"):
        tf.stablehlo.save(tf.abs, path, [tf.TensorSpec([3], tf.complex64)])
    with pytest.raises(tf.errors.UnimplementedError, match="div has no form here for inputs of int32, int32"):
        tf.stablehlo.save(lambda x: x / x, path, [tf.TensorSpec([2], tf.int32)])  # its quotient is float64
    assert not list(tmp_path.iterdir())


def test_the_ops_that_have_a_form_are_those_of_onnx() -> None:
    assert set(stablehlo.FORMS) == set(onnx_graphs.FORMS)
