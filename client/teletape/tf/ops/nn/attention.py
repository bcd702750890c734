"""`tf.nn.scaled_dot_product_attention`. By hand: a mask and a bias become one input of the op."""

from __future__ import annotations

import math

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops


def scaled_dot_product_attention(
    query: to.TensorInput,
    key: to.TensorInput,
    value: to.TensorInput,
    mask: to.TensorInput | None = None,
    bias: to.TensorInput | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    name: str | None = None,
) -> Tensor:
    """softmax(scale · query keyᵀ + bias) value, [..., T, V], without keeping the weights if they are many.

    Teletape's own: TensorFlow has no such function. Derivatives of every order save the memory too. A bias that is
    differentiated has a gradient of T × S elements. By hand: a mask becomes a bias.

    Args:
        query: [..., T, D]; floating-point. Leading axes broadcast.
        key: [..., S, D].
        value: [..., S, V].
        mask: Bools that broadcast to [..., T, S]: False where a query has no weight on a key. A query without any key
            has equal weights, which depend on no score.
        bias: Added to the scores; it broadcasts to [..., T, S].
        scale: By default 1 / √D.
        is_causal: Whether query i has no weight on keys j > i.
        name: Without effect.

    Raises:
        InvalidArgumentError: Shapes or dtypes that do not fit.

    Example:
        tf.nn.scaled_dot_product_attention([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0]])
    """
    q, k, v = (convert_to_tensor(x) for x in (query, key, value))
    dtype = q.dtype
    if dtype in (dtypes.float16, dtypes.bfloat16):  # float16's range is too small for a score that hides all others
        q, k, v = (cast(x, dtypes.float32) for x in (q, k, v))
    addend = cast(convert_to_tensor(0 if bias is None else bias, dtype), q.dtype)
    visible = None if mask is None else convert_to_tensor(mask, dtypes.bool)
    if visible is not None:
        hidden = convert_to_tensor(-0.7 * float(np.finfo(np.float32).max), q.dtype)
        addend = call(ops.where, (visible, addend, hidden))
    if scale is None:
        scale = 1 / math.sqrt(max(q.shape[-1] or 1, 1)) if q.shape.rank else 1.0
    values = call(ops.attention, (q, k, v, addend), scale=float(scale), causal=bool(is_causal))
    if visible is not None:
        mean = call(ops.reduce_mean, (v,), axis=-2, keepdims=True)
        values = call(ops.where, (_sees_a_key(visible, values.shape[-2], bool(is_causal)), values, mean))
    return cast(values, dtype)


def _sees_a_key(visible: Tensor, queries: int, causal: bool) -> Tensor:
    """Whether each query has weight on any key, [..., T or 1, 1], from bools [..., T, S]."""
    lengths = visible.shape.as_list()
    visible = call(ops.reshape, (visible,), shape=(*(1,) * (2 - len(lengths)), *lengths))
    sees = call(ops.reduce_any, (visible,), axis=-1, keepdims=True)
    if not causal:
        return sees
    first = call(ops.argmax, (call(ops.cast, (visible,), dtype=np.dtype(np.int32)),), axis=-1)
    last = np.arange(queries, dtype=np.int64)[:, None]  # the last key that each query may see
    return call(ops.logical_and, (sees, call(ops.less_equal, (call(ops.expand_dims, (first,), axis=-1), last))))
