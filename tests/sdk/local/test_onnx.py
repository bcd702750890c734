"""`tf.onnx.load` computes what ONNX Runtime computes, and has the gradients of PyTorch; both are recorded."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import CASES

import teletape as tf
from teletape.extras.onnx import operators
from teletape.extras.onnx.reading import SPECIAL

FOLDER = Path(__file__).resolve().parents[1] / "onnx_models"
ANSWERS = dict(np.load(FOLDER / "answers.npz"))
NETWORKS = dict(np.load(FOLDER / "networks.npz"))
EXPORTED = sorted(path.stem for path in FOLDER.glob("*.onnx"))
PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx.md"


def network(
    nodes: list[Any], inputs: dict[str, tuple[int, list[Any]]], outputs: list[str], opset: int = 17, **arrays: Any
) -> bytes:
    """Returns a model of nodes; the inputs are dtypes and shapes."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model.SerializeToString()  # type: ignore[no-any-return]  # bytes


FLOATS = (TensorProto.FLOAT, ["batch", 6])


# ---------------------------------------------------------------------------------------------------------- operators
@pytest.mark.parametrize("label", CASES)
def test_an_operator_gives_what_onnx_runtime_gives(label: str) -> None:
    case = CASES[label]
    result = tf.onnx.load(case.model)(**case.inputs)
    results = list(result.values()) if isinstance(result, dict) else [result]
    expected = [ANSWERS[f"{label}|{number}"] for number in range(len(results))]
    for value, answer in zip(results, expected, strict=True):
        assert value.numpy().dtype == answer.dtype
        np.testing.assert_allclose(value.numpy(), answer, rtol=2e-5, atol=2e-6)


def test_every_operator_of_the_table_has_a_case_and_is_on_the_page() -> None:
    tf.onnx.load(CASES["Abs"].model)
    tested = {node.op_type for case in CASES.values() for node in onnx.load_model_from_string(case.model).graph.node}
    aliases = {"BitwiseNot", "BitwiseOr", "BitwiseXor"}  # the same call of another function
    assert set(operators.names()) - aliases == tested
    listed = PAGE.read_text().partition("## Operators")[2].partition("##")[0]
    assert set(re.findall(r"`([A-Z]\w+)`", listed)) == {*operators.names(), *SPECIAL}


# ----------------------------------------------------------------------------------------------------------- networks
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_network_has_the_values_of_onnx_runtime_and_the_gradients_of_pytorch(name: str) -> None:
    net = tf.onnx.load(FOLDER / f"{name}.onnx")
    x = tf.constant(NETWORKS[f"{name}|x"])
    with tf.GradientTape() as tape:
        if x.dtype.is_floating:
            tape.watch(x)
        y = net(x)
        loss = tf.reduce_sum(y**2)
    np.testing.assert_allclose(y.numpy(), NETWORKS[f"{name}|y"], rtol=1e-5, atol=1e-6)
    answers = {key.rpartition("|")[2]: value for key, value in NETWORKS.items() if key.startswith(f"{name}|gradient")}
    sources = {label: x if label == "x" else net.weights[label] for label in answers}
    for label, gradient in tape.gradient(loss, sources).items():
        scale = np.abs(answers[label]).max()
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient).numpy(), answers[label], rtol=1e-4, atol=1e-5 * scale, err_msg=label
        )


@pytest.mark.parametrize("name", EXPORTED)
def test_a_traced_network_takes_batches_of_any_size(name: str) -> None:
    net = tf.onnx.load(FOLDER / f"{name}.onnx")
    traced = tf.function(net, input_signature=net.input_signature)
    x = NETWORKS[f"{name}|x"]
    for rows in (2, 1):
        np.testing.assert_allclose(traced(x[:rows]).numpy(), net(x[:rows]).numpy(), rtol=1e-5, atol=1e-6)


def test_the_weights_of_a_network_can_be_trained_and_saved(tmp_path: Path) -> None:
    net = tf.onnx.load(FOLDER / "cnn.onnx")
    assert not net.weights["norm.running_mean"].trainable
    assert {variable.name for variable in net.trainable_variables} >= {"first.weight:0", "out.bias:0"}
    path = tf.train.Checkpoint(net=net).save(str(tmp_path / "net"))
    x = NETWORKS["cnn|x"]
    before = net(x).numpy()
    for variable in net.trainable_variables:
        variable.assign(variable * 0.0)
    assert np.abs(net(x).numpy() - before).max() > 0.1
    tf.train.Checkpoint(net=net).restore(path)
    np.testing.assert_array_equal(net(x).numpy(), before)


# -------------------------------------------------------------------------------------------------------------- sizes
def shape_steps() -> list[Any]:
    """Nodes that reshape x [batch, 6] by sizes that they compute: to [batch, 3, 2] and to [batch · 3, 2]."""
    return [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "first"], ["row"]),
        helper.make_node("Concat", ["row", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["parts"]),
        helper.make_node("Mul", ["row", "three"], ["many"]),
        helper.make_node("Concat", ["many", "two"], ["flat_shape"], axis=0),
        helper.make_node("Reshape", ["parts", "flat_shape"], ["flat"]),
        helper.make_node("Concat", ["row", "three"], ["state_shape"], axis=0),
        helper.make_node("ConstantOfShape", ["state_shape"], ["zeros"]),
    ]


def test_sizes_that_follow_from_shapes_leave_the_batch_open() -> None:
    arrays = {"zero": 0, "first": [0], "rest": [3, 2], "three": [3], "two": [2]}
    net = tf.onnx.load(network(shape_steps(), {"x": FLOATS}, ["parts", "flat", "zeros"], **arrays))
    concrete = tf.function(net).get_concrete_function(*net.input_signature)
    steps = [
        [(step.command.op, step.command.attrs, step.inputs) for step in concrete.traced_with(size).function.steps]
        for size in (2, 3)
    ]
    assert steps[0] == steps[1]
    assert Counter(op for op, _, _ in steps[0])["reshape"] == 2
    results = net(tf.ones([5, 6]))
    assert [tuple(result.shape) for result in results.values()] == [(5, 3, 2), (15, 2), (5, 3)]
    assert set(results) == {"parts", "flat", "zeros"}


def test_a_choice_between_graphs_depends_on_sizes_or_on_values() -> None:
    def branch(name: str, factor: float) -> Any:
        nodes = [helper.make_node("Mul", ["x", name + "_by"], [name])]
        by = numpy_helper.from_array(np.array([factor], np.float32), name + "_by")
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)], [by])

    choice = {"then_branch": branch("then", 2.0), "else_branch": branch("other", -1.0)}
    by_value = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "limit"], ["is_large"]),
        helper.make_node("If", ["is_large"], ["y"], **choice),
    ]
    net = tf.onnx.load(network(by_value, {"x": FLOATS}, ["y"], limit=np.float32(3)))
    assert sorted(net.weights) == ["limit", "other_by", "then_by"]
    for run in (net, tf.function(net)):
        assert run(tf.ones([1, 6])).numpy()[0, 0] == 2
        assert run(tf.zeros([1, 6]) + 0.25).numpy()[0, 0] == -0.25
    by_size = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Greater", ["size", "limit"], ["is_large"]),
        helper.make_node("If", ["is_large"], ["y"], **choice),
    ]
    net = tf.onnx.load(network(by_size, {"x": FLOATS}, ["y"], limit=np.int64(6)))
    assert net(tf.ones([2, 6])).numpy()[0, 0] == 2
    assert net(tf.ones([1, 6])).numpy()[0, 0] == -1


# ----------------------------------------------------------------------------------------------------------- refusals
def test_all_that_has_no_form_is_named_at_once() -> None:
    nodes = [
        helper.make_node("FusedGelu", ["x"], ["a"], domain="com.microsoft"),
        helper.make_node("NonZero", ["a"], ["b"]),
        helper.make_node("NonZero", ["a"], ["b2"]),
        helper.make_node("ArgMax", ["a"], ["c"], select_last_index=1),
        helper.make_node("LSTM", ["a", "a", "a", "", "a"], ["d"], hidden_size=2, clip=1.0),
        helper.make_node("MaxPool", ["a"], ["e", "indices"], kernel_shape=[2]),
        helper.make_node("Mish", ["a"], ["y"]),
    ]
    with pytest.raises(tf.errors.UnimplementedError) as caught:
        tf.onnx.load(network(nodes, {"x": FLOATS}, ["y"], opset=18))
    assert [line.strip() for line in str(caught.value).splitlines()[1:-1]] == [
        "operator com.microsoft.FusedGelu",
        "operator NonZero (2 times)",
        "select_last_index=1 of ArgMax",
        "attribute clip of LSTM",
        "input lengths of LSTM",
        "MaxPool with 2 outputs",
    ]


def test_other_opsets_are_refused() -> None:
    model = network([helper.make_node("Relu", ["x"], ["y"])], {"x": FLOATS}, ["y"], opset=12)
    with pytest.raises(tf.errors.UnimplementedError, match=r"opset 12 \(opsets 13 to 21 have a form\)"):
        tf.onnx.load(model)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is no ONNX model"):
        tf.onnx.load(b"not a model")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no opset, or no output"):
        tf.onnx.load(b"")
    with pytest.raises(tf.errors.InvalidArgumentError, match="a node Relu reads 'z', which no node before it computes"):
        tf.onnx.load(network([helper.make_node("Relu", ["z"], ["y"])], {"x": FLOATS}, ["y"]))
    with pytest.raises(FileNotFoundError):
        tf.onnx.load(tmp_path / "none.onnx")


def test_the_package_that_reads_models_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'teletape[onnx]'")):
        tf.onnx.load(b"")


def test_inputs_of_another_dtype_or_shape_are_refused() -> None:
    net = tf.onnx.load(network([helper.make_node("Relu", ["x"], ["y"])], {"x": FLOATS}, ["y"]))
    for x in (tf.ones([2, 5]), tf.ones([2, 6], tf.float64)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"input 'x' is float32\(None, 6\), got"):
            net(x)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        net()


def test_a_shape_that_follows_from_values_is_refused_with_its_node() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["shape"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    net = tf.onnx.load(network(nodes, {"x": (TensorProto.FLOAT, [2])}, ["y"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Reshape: input 1, 'shape', shapes the result"):
        net(tf.constant([1.0, 2.0]))
