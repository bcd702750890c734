"""`tf.PerExampleGradients` and `tf.GradientParts`: what a loop in the program computes, in this process and remote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loopback import Loopback

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(7, 3)).astype(np.float32), RNG.normal(size=(7, 3)).astype(np.float32)
SHAPE = (5, 3)
PARTS: list[dict[str, Any]] = [{"top": 4}, {"top": 100}, {"rows": [3, 0]}, {"dtype": tf.bfloat16}, {"dtype": "float16"}]


@pytest.fixture(params=["in this process", "through a server"], autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    if request.param == "through a server":
        request.getfixturevalue("remote")
    else:
        use(LocalSession())


def network(width: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(width)
    w = tf.Variable(rng.normal(size=(3, width)).astype(np.float32), name="w")
    return {"w": w, "b": tf.Variable(tf.zeros([width])), "unused": tf.Variable([1.0])}


def loss_of(net: dict[str, Any]) -> Any:
    def loss(example: dict[str, Any]) -> Any:
        return tf.reduce_mean((tf.tanh(example["x"] @ net["w"] + net["b"]) - example["y"]) ** 2)

    return loss


def looped(net: dict[str, Any], y: Any, clip: float) -> tuple[list[float], dict[str, Any]]:
    """The loop over examples: the norm of the gradient of each, and the sum of all, each clipped."""
    norms, sums = [], {name: np.zeros(variable.shape) for name, variable in net.items()}
    for at in range(len(X)):
        with tf.GradientTape() as tape:
            loss = loss_of(net)({"x": X[at : at + 1], "y": y[at : at + 1]})
        gradients = tape.gradient(loss, net, unconnected_gradients="zero")
        parts = {name: gradient.numpy().astype(np.float64) for name, gradient in gradients.items()}
        norms.append(float(np.sqrt(sum(np.sum(part**2) for part in parts.values()))))
        for name, part in parts.items():
            sums[name] += part * min(1.0, clip / norms[-1])
    return norms, sums


# ------------------------------------------------------------------------------------------- gradients of examples
@pytest.mark.parametrize("width", [3, 40_000], ids=["one chunk", "chunks of two and a last one"])
def test_norms_and_sum_are_those_of_the_loop(width: int) -> None:
    net = network(width)
    y = np.resize(Y, (len(Y), width))
    norms, sums = looped(net, y, clip=0.4)
    examples = tf.PerExampleGradients(loss_of(net), {"x": X, "y": y}, net, batches_of_one=True)
    assert (examples.norms.dtype, examples.norms.shape) == (tf.float64, (7,))
    np.testing.assert_allclose(examples.norms, norms, rtol=1e-4)
    assert int(examples.clipped(0.4)) == sum(norm > 0.4 for norm in norms)
    total = examples.sum(clip=0.4)
    assert total.keys() == net.keys()
    for name, variable in net.items():
        assert (total[name].dtype, total[name].shape) == (variable.dtype, variable.shape)
        np.testing.assert_allclose(total[name], sums[name], rtol=1e-3, atol=1e-6)


def test_statistics_are_numpys_of_the_norms() -> None:
    w = tf.constant([1.0, 1.0])
    for rows in ([[3.0, 4.0], [0.0, 0.5], [0.0, 2.0]], [[3.0, 4.0], [0.0, 0.5]]):
        examples = tf.PerExampleGradients(lambda x: tf.tensordot(x, w, 1), tf.constant(rows), w)
        norms = np.linalg.norm(rows, axis=1)
        expected = norms.mean(), np.median(norms), norms.min(), norms.max()
        assert [float(value) for value in examples.statistics()] == list(expected)
    assert examples.sum(clip=1.0).numpy().tolist() == pytest.approx([0.6, 1.3])
    assert examples.sum().numpy().tolist() == [3.0, 4.5]


def test_inside_a_function_the_numbers_are_the_same() -> None:
    net = network()

    def clipped(x: Any, y: Any) -> Any:
        examples = tf.PerExampleGradients(loss_of(net), {"x": x, "y": y}, net, batches_of_one=True)
        return examples.norms, examples.sum(clip=tf.reduce_mean(examples.norms))

    norms, total = clipped(tf.constant(X), tf.constant(Y))
    norms_of_function, total_of_function = tf.function(clipped)(tf.constant(X), tf.constant(Y))
    assert norms_of_function.numpy().tolist() == norms.numpy().tolist()
    for name, value in total.items():
        assert total_of_function[name].numpy().tolist() == value.numpy().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "float64"])
def test_norms_in_other_dtypes(dtype: str) -> None:
    """The squares of the narrow ones would be infinite; those of imaginary numbers are negative."""
    rows = np.array([[300.0, 400.0], [0.0, 0.5]]) * (1j if dtype == "complex64" else 1)
    w, x = tf.cast(tf.constant([1.0, 1.0]), dtype), tf.cast(tf.constant(rows), dtype)
    examples = tf.PerExampleGradients(lambda x: tf.math.real(tf.reduce_sum(x * w)), x, w)
    np.testing.assert_allclose(examples.norms, [500.0, 0.5], rtol=1e-6)


def test_both_passes_are_one_request(loopback: Loopback) -> None:
    net = network()
    float(net["b"][0])
    before = len(loopback.batches)
    examples = tf.PerExampleGradients(loss_of(net), {"x": X, "y": Y}, net, batches_of_one=True)
    examples.sum(clip=0.1)["b"].numpy()
    assert len(loopback.batches) - before == (0 if current().local else 1)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda w: tf.PerExampleGradients(lambda x: x * w, tf.constant(1.0), w), "InvalidArgument", "one length along"),
        (lambda w: tf.PerExampleGradients(lambda x: x[0] * w, (X, Y[:3]), w), "InvalidArgument", "one length along"),
        (lambda w: tf.PerExampleGradients(lambda x: x * w, X[:0], w), ValueError, "no example"),
        (lambda w: tf.PerExampleGradients(lambda x: x * w, (), w), ValueError, "no example"),
        (lambda w: tf.PerExampleGradients(lambda x: None, X, w), "InvalidArgument", "returns no tensor"),
        (lambda w: tf.PerExampleGradients(lambda x: tf.random.normal([]) * w, X, w), "InvalidArgument", "draws random"),
        (lambda w: tf.PerExampleGradients(lambda x: w.assign_add(1.0), X, w), "InvalidArgument", "assigns to a"),
        (lambda w: tf.PerExampleGradients(lambda x: x * w, X, tf.constant(1)), TypeError, "is of int32"),
        (lambda w: tf.PerExampleGradients(lambda x: x * w, X, 1.0), TypeError, "must be a Tensor"),
        (lambda w: tf.PerExampleGradients(lambda x: x * w, X, w).sum(clip=0), "InvalidArgument", "above 0; found 0"),
        (lambda w: tf.PerExampleGradients(3, X, w), TypeError, "f is a function of one example; found 3"),
    ],
)
def test_what_cannot_be_asked_of_examples_says_why(ask: Any, error: Any, says: str) -> None:
    kind = tf.errors.InvalidArgumentError if error == "InvalidArgument" else error
    with pytest.raises(kind, match=says):
        ask(tf.Variable(2.0))


# ------------------------------------------------------------------------------------------------ parts of gradients
def gradient(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, SHAPE).astype(np.float32)


def whole(part: Any) -> Any:
    dense = part.to_dense() if isinstance(part, tf.GradientPart) else part
    return tf.cast(dense, tf.float64).numpy()


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_all_parts_and_what_is_left_are_all_gradients(part: dict[str, Any]) -> None:
    w = tf.Variable(tf.zeros(SHAPE))
    parts, taken = tf.GradientParts({"w": w}), np.zeros(SHAPE)
    for seed in range(5):
        taken += whole(parts.take({"w": tf.constant(gradient(seed))}, **part)["w"])
    left = parts.remainder["w"]
    assert (left.dtype, left.shape) == (tf.float32, SHAPE)
    np.testing.assert_allclose(taken + left, sum(map(gradient, range(5))), rtol=1e-5, atol=1e-6)
    assert bool(np.any(left)) == (part != {"top": 100})


def test_the_largest_elements_and_some_rows() -> None:
    parts = tf.GradientParts(tf.zeros(SHAPE), remainder=False)
    for _ in range(2):  # nothing is left for the second one
        top = parts.take(tf.constant(gradient(1)), top=4)
        rows = parts.take(tf.constant(gradient(1)), rows=[3, 0])
        flat = gradient(1).reshape(-1)
        largest = np.argsort(-abs(flat), kind="stable")[:4]
        assert (top.indices.dtype, top.indices.numpy().tolist()) == (tf.int32, largest.tolist())
        assert top.values.numpy().tolist() == flat[largest].tolist()
        assert (top.shape, rows.shape) == (SHAPE, SHAPE)
        assert rows.values.numpy().tolist() == gradient(1)[[3, 0]].tolist()
    assert parts.remainder.numpy().tolist() == np.zeros(SHAPE).tolist()
    single = tf.GradientParts(tf.constant(1.0)).take(tf.constant(3.0), top=2)
    assert (single.values.numpy().tolist(), single.to_dense().numpy().tolist()) == ([3.0], 3.0)


def test_sparse_missing_and_complex_gradients() -> None:
    table, other = tf.zeros([4, 2]), tf.zeros([2], tf.complex64)
    parts = tf.GradientParts((table, other))
    slices = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 1]), tf.constant([4, 2]))
    by_table, by_other = parts.take((slices, None), top=2)
    assert (by_table.indices.numpy().tolist(), by_table.values.numpy().tolist()) == ([2, 3], [2.0, 2.0])
    assert by_other.values.numpy().tolist() == [0.0, 0.0]
    _, by_other = parts.take((None, tf.constant([3 + 4j, 4.5])), top=1)
    assert by_other.values.numpy().tolist() == [3 + 4j]


def test_it_takes_inside_a_function_and_begins_anew() -> None:
    parts = tf.GradientParts(tf.zeros([3]))
    take = tf.function(lambda gradient: parts.take(gradient, top=1).values)
    assert [float(take(tf.constant([2.0, -5.0, 3.0]))[0]) for _ in range(3)] == [-5.0, 6.0, -10.0]
    parts.reset()
    assert parts.remainder.numpy().tolist() == [0.0, 0.0, 0.0]


def test_a_program_goes_on_from_a_checkpoint(tmp_path: Any) -> None:
    parts, other = tf.GradientParts([tf.zeros([3])]), tf.GradientParts([tf.zeros([3])])
    parts.take([tf.constant([2.0, -5.0, 3.0])], top=1)
    path = tf.train.Checkpoint(parts=parts).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(parts=other).restore(path).assert_consumed()
    assert other.remainder[0].numpy().tolist() == [2.0, 0.0, 3.0]


@pytest.mark.parametrize(
    ("gradient", "part", "error", "says"),
    [
        ([[1.0, 2.0]], {}, "InvalidArgument", "found none"),
        ([[1.0, 2.0]], {"top": 2, "dtype": tf.bfloat16}, "InvalidArgument", "found top, dtype"),
        ([[1.0, 2.0]], {"top": 0}, "InvalidArgument", "1 or more; found 0"),
        ([[1.0, 2.0]], {"rows": [1, 1]}, "InvalidArgument", "each once"),
        ([[1.0, 2.0]], {"rows": [2]}, "InvalidArgument", r"has no rows \[2\]"),
        ([[1.0, 2.0]], {"dtype": tf.float64}, "InvalidArgument", "bfloat16 or float16; found float64"),
        ([[1.0, 2.0, 3.0]], {"top": 1}, "InvalidArgument", "for a source of"),
        ([1.0, 2.0], {"top": 1}, ValueError, "same"),
        ([[1.0, 2.0]], {"top": 1.5}, TypeError, "integer"),
    ],
)
def test_a_part_that_cannot_be_says_why(gradient: Any, part: Any, error: Any, says: str) -> None:
    parts = tf.GradientParts([tf.zeros([2])])
    parts.take([tf.constant([2.0, 3.0])], top=1)
    kind = tf.errors.InvalidArgumentError if error == "InvalidArgument" else error
    with pytest.raises(kind, match=says):
        parts.take(list(map(tf.constant, gradient)), **part)
    assert parts.remainder[0].numpy().tolist() == [2.0, 0.0]


def test_sources_of_parts_are_floats() -> None:
    with pytest.raises(TypeError, match="a source is a variable or a tensor, found 3"):
        tf.GradientParts(3)
    with pytest.raises(TypeError, match="gradients are by floats, and a source is of int32"):
        tf.GradientParts(tf.Variable(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="bfloat16 is for real gradients"):
        tf.GradientParts(tf.zeros([2], tf.complex64)).take(None, dtype=tf.bfloat16)
