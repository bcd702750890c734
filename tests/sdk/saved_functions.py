"""Functions that use each op that has a form in saved files, and what they need."""

from __future__ import annotations

import numpy as np

import teletape as tf

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
