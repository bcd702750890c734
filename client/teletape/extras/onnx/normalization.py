"""ONNX's operators that normalize, over a batch, an example, groups of channels or an axis."""

from __future__ import annotations

from typing import Any

from teletape._generated.elementwise.complex import abs
from teletape._generated.elementwise.math import rsqrt, sqrt
from teletape._generated.nn.activations import log_softmax, softmax
from teletape._generated.nn.normalization import local_response_normalization
from teletape._generated.reduce import argmax, reduce_mean, reduce_sum
from teletape._generated.shapes.shape import reshape, transpose
from teletape.core.errors import InvalidArgumentError
from teletape.extras.onnx.operators import Place, operator
from teletape.extras.onnx.sizes import shape_of, to_shape
from teletape.tf.ops.arrays.create import one_hot


def _by_channel(value: Any, rank: int) -> Any:
    return reshape(value, [1, -1, *[1] * (rank - 2)])


@operator("BatchNormalization", state=("mean", "variance"), values={"training_mode": (0,)})
def _batch(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    rank = len(x.shape)
    centred = x - _by_channel(mean, rank)
    return centred * _by_channel(rsqrt(variance + epsilon) * scale, rank) + _by_channel(bias, rank)


def _standard(x: Any, axes: list[int], epsilon: float) -> Any:
    """Returns a tensor less its mean, over its deviation."""
    mean = reduce_mean(x, axes, True)
    centred = x - mean
    inverse = rsqrt(reduce_mean(centred * centred, axes, True) + epsilon)
    return centred * inverse, mean, inverse


@operator("InstanceNormalization")
def _instance(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    rank = len(x.shape)
    rows, _, _ = _standard(x, list(range(2, rank)), epsilon)
    return rows * _by_channel(scale, rank) + _by_channel(bias, rank)


@operator("LayerNormalization", since=17, results=3, values={"stash_type": (1,)})
def _layer(x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    rank = len(x.shape)
    rows, mean, inverse = _standard(x, list(range(axis % rank, rank)), epsilon)
    rows = rows * scale
    return (rows if bias is None else rows + bias), mean, inverse


@operator("GroupNormalization", since=18)
def _groups_18(x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, place: Place) -> Any:
    groups = [1, num_groups, *[1] * (len(x.shape) - 1)]
    return _grouped(x, reshape(scale, groups), reshape(bias, groups), num_groups, epsilon, place)


@operator("GroupNormalization", since=21, values={"stash_type": (1,)})
def _groups(
    x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1, place: Place
) -> Any:
    channels = [1, num_groups, -1, *[1] * (len(x.shape) - 2)]
    return _grouped(x, reshape(scale, channels), reshape(bias, channels), num_groups, epsilon, place)


def _grouped(x: Any, scale: Any, bias: Any, groups: int, epsilon: float, place: Place) -> Any:
    lengths = list(shape_of(x, place.open_axes))
    cells = to_shape(x, [lengths[0], groups, lengths[1] // groups, *lengths[2:]], place.open_axes)
    rows, _, _ = _standard(cells, list(range(2, len(lengths) + 1)), epsilon)
    return reshape(rows * scale + bias, [-1, *[int(length) for length in lengths[1:]]])


@operator("LRN")
def _response(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    if len(x.shape) != 4 or size % 2 == 0:
        raise InvalidArgumentError(f"LRN: expected an image of rank 4 and an odd size, got {x.shape} and {size}")
    rows = transpose(x, [0, 2, 3, 1])
    return transpose(local_response_normalization(rows, size // 2, bias, alpha / size, beta), [0, 3, 1, 2])


@operator("LpNormalization", values={"p": (1, 2)})
def _unit(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    return x / (reduce_sum(abs(x), axis, True) if p == 1 else sqrt(reduce_sum(x * x, axis, True)))


@operator("Softmax")
def _softmax(x: Any, *, axis: int = -1) -> Any:
    return softmax(x, axis)


@operator("LogSoftmax")
def _log_softmax(x: Any, *, axis: int = -1) -> Any:
    return log_softmax(x, axis)


@operator("Hardmax")
def _hardmax(x: Any, *, axis: int = -1) -> Any:
    return one_hot(argmax(x, axis), x.shape[axis], axis=axis % len(x.shape), dtype=x.dtype)


@operator("Dropout", hosts=("ratio", "training_mode"))
def _dropout(x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int = 0) -> Any:
    if training_mode is not None and bool(training_mode):
        raise InvalidArgumentError(
            "Dropout: the graph is one for training (training_mode is true): export it in eval mode"
        )
    return x
