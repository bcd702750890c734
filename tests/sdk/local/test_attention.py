"""Attention in blocks: the numbers and derivatives of the plain formula, in less memory."""

import tracemalloc

import numpy as np
import pytest

import teletape as tf
from teletape_engine.ops.nn import attention, weighted_products

RNG = np.random.default_rng(5)
SHAPE = (2, 3, 9, 4)
MASK = RNG.random((2, 1, 9, 9)) > 0.4
MASK[0, 0, 3] = False  # a query without a key
AFTER = np.arange(9) > 2  # of a causal form the first three queries have none
BIAS = RNG.normal(size=(3, 1, 9))
OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"mask": MASK},
    "bias": {"bias": BIAS, "scale": 0.3},
    "mask and bias": {"mask": MASK[0, 0], "bias": BIAS},
    "causal and mask": {"mask": MASK, "is_causal": True},
    "causal and mask of keys": {"mask": AFTER, "is_causal": True},
}


def inputs(shape=SHAPE, dtype=np.float64):
    return [tf.constant(RNG.normal(size=shape).astype(dtype)) for _ in range(3)]


def plain(query, key, value, mask=None, bias=None, scale=0.5, is_causal=False):
    """The formula, on ops that tests compare with TensorFlow."""
    scores = tf.matmul(query, key, transpose_b=True) * scale
    scores = scores if bias is None else scores + bias
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool)) & (True if mask is None else mask)
    scores = scores if mask is None else tf.where(mask, scores, tf.constant(-1e30, scores.dtype))
    return tf.matmul(tf.nn.softmax(scores), value)


def derivatives(function, sources, options):
    """The value, the gradients, and the gradients of a scalar of the gradients."""
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            value = function(*sources, **options)
            loss = tf.reduce_sum(tf.sin(value))
        first = inner.gradient(loss, sources)
        total = tf.add_n([tf.reduce_sum(gradient**2) for gradient in first])
    return [value, *first, *outer.gradient(total, sources)]


@pytest.mark.parametrize("block", [None, 1 << 4, 1 << 7, 1 << 18])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_and_derivatives_are_those_of_the_plain_formula(monkeypatch, block, options):
    if block:
        monkeypatch.setattr(attention, "_PLAIN", 0)
        monkeypatch.setattr(weighted_products, "_BLOCK", block)
    sources = inputs()
    blocked = derivatives(tf.nn.scaled_dot_product_attention, sources, options)
    for result, expected in zip(blocked, derivatives(plain, sources, options), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("limit", [0, 1 << 22])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_query_without_keys_has_equal_weights(monkeypatch, limit, dtype):
    monkeypatch.setattr(attention, "_PLAIN", limit)
    query, key, value = (tf.cast(x, dtype) for x in inputs((5, 4)))
    mask = np.ones((5, 5), bool)
    mask[2] = False
    result = tf.nn.scaled_dot_product_attention(query, key, value, mask=mask)
    assert result.dtype == dtype
    mean = np.mean(tf.cast(value, tf.float32).numpy(), axis=0)
    np.testing.assert_allclose(tf.cast(result, tf.float32)[2], mean, atol=2e-2 if dtype != "float32" else 1e-6)


def test_a_gradient_of_many_weights_keeps_none_of_them():
    sources = inputs((1, 2, 2048, 16), np.float32)
    weights = 2 * 2048 * 2048 * 4
    assert weights > 4 * attention._PLAIN
    tracemalloc.start()
    with tf.GradientTape() as tape:
        tape.watch(sources)
        loss = tf.reduce_sum(tf.nn.scaled_dot_product_attention(*sources, is_causal=True) ** 2)
    gradients = tape.gradient(loss, sources)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert peak < weights / 4


def test_shapes_that_do_not_fit_are_refused():
    query, key, value = inputs((5, 4))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"queries .* keys .* values"):
        tf.nn.scaled_dot_product_attention(query, key[:, :3], value)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a bias of shape .* does not broadcast to \[5,5\]"):
        tf.nn.scaled_dot_product_attention(query, key, value, bias=np.ones((2, 5, 5)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="two axes at least"):
        tf.nn.scaled_dot_product_attention(query[0], key, value)
