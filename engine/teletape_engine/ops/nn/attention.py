"""Attention: the values that queries find at keys, with few weights kept for the gradient, and many computed again."""

from __future__ import annotations

import math
from typing import Final

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import sum_to
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.nn.activations import softmax
from teletape_engine.ops.nn.weighted_products import (
    HIDDEN_SCORE,
    PRECISE,
    batch,
    blocks,
    check_rows,
    columns,
    cut,
    dense_product,
    factor_of,
    row_sums,
    scores_of,
    workspace,
)
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.shape import broadcast_to, concat, reshape
from teletape_engine.spec import DTYPES, FLOATING, Spec, broadcast, shape_text

_PLAIN: Final = 1 << 22  #: Weights up to which they are kept for the gradient, which is then a little faster.


# ----------------------------------------------------------------------------------------------------- fused attention
def _attention_spec(q: Spec, k: Spec, v: Spec, bias: Spec, *, scale: float, causal: bool) -> Spec:
    check_rows("FusedAttention", (q, k, v, bias), ("T", "S", "S", "bias"))
    if not k.shape[-2]:
        raise InvalidArgumentError("FusedAttention: there must be a key, found none")
    return q.with_shape((*q.shape[:-1], v.shape[-1] + 2))


def _split(y: Operand) -> tuple[Operand, Operand]:
    """The values and the normalisers of a result."""
    return columns(y, 0, -2), columns(y, -2, None)


def _score_factor(ct: Operand, v: Operand, y: Operand) -> tuple[Operand, Operand, Operand]:
    """The factor that makes the weights the gradient of the scores."""
    g = columns(ct, 0, -2)
    return g, v, columns(ct, -1, None) - row_sums(g * columns(y, 0, -2))


def _attention_vjp_q(
    ct: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    factor = _score_factor(ct, v, y)
    return ops.weighted_product(q, k, bias, _split(y)[1], k, *factor, scale=scale, causal=causal) * scale


def _attention_vjp_k(
    ct: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    factor = _score_factor(ct, v, y)
    return (
        ops.weighted_product(q, k, bias, _split(y)[1], q, *factor, scale=scale, causal=causal, transposed=True) * scale
    )


def _attention_vjp_v(
    ct: Operand, q: Operand, k: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    g = columns(ct, 0, -2)
    return ops.weighted_product(q, k, bias, _split(y)[1], g, scale=scale, causal=causal, transposed=True)


def _attention_vjp_bias(
    ct: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    factor = _score_factor(ct, v, y)
    return sum_to(dense_product(q, k, bias, _split(y)[1], factor, scale, causal), bias.shape)


def _moved(sums: Operand, y: Operand) -> Operand:
    """The tangent of a result, from what the tangent of the scores makes of [v, 1]; a shift has none."""
    total = columns(sums, -1, None)
    return concat(columns(sums, 0, -1) - total * columns(y, 0, -2), zeros_like(total), total, axis=-1)


def _with_ones(v: Operand) -> Operand:
    return concat(v, ones_like(row_sums(v)), axis=-1)


def _attention_jvp_q(
    t: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    factor = factor_of(t * scale, k)
    sums = ops.weighted_product(q, k, bias, _split(y)[1], _with_ones(v), *factor, scale=scale, causal=causal)
    return _moved(sums, y)


def _attention_jvp_k(
    t: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    factor = factor_of(q * scale, t)
    sums = ops.weighted_product(q, k, bias, _split(y)[1], _with_ones(v), *factor, scale=scale, causal=causal)
    return _moved(sums, y)


def _attention_jvp_v(
    t: Operand, q: Operand, k: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    values = ops.weighted_product(q, k, bias, _split(y)[1], t, scale=scale, causal=causal)
    return concat(values, zeros_like(_split(y)[1]), axis=-1)


def _attention_jvp_bias(
    t: Operand, q: Operand, k: Operand, v: Operand, bias: Operand, y: Operand, scale: float, causal: bool
) -> Operand:
    return _moved(matmul(dense_product(q, k, bias, _split(y)[1], (), scale, causal) * t, _with_ones(v)), y)


@op(
    infer=_attention_spec,
    vjp=[_attention_vjp_q, _attention_vjp_k, _attention_vjp_v, _attention_vjp_bias],
    jvp=[_attention_jvp_q, _attention_jvp_k, _attention_jvp_v, _attention_jvp_bias],
    batch=batch,
    samples=[
        sample((3, 2), (4, 2), (4, 3), (1, 1), scale=0.7),
        sample((3, 2), (3, 2), (3, 1), (3, 3), scale=0.5, causal=True, seed=1),
        sample((2, 2, 3), (2, 3, 3), (2, 3, 2), (1, 2, 3), scale=0.6, seed=2),
        sample((2, 2, 3), (2, 4, 3), (2, 4, 2), (2, 1, 4), scale=0.6, causal=True, seed=3),
    ],
    workspace=workspace,
    work=lambda q, k, v, bias, scale, causal: math.prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1]),
    cut=cut,
    traits=[Trait.MULTIPLIES],
)
def fused_attention(
    xp: ArrayModule, q: Array, k: Array, v: Array, bias: Array, *, scale: float, causal: bool = False
) -> Array:
    """softmax(scale · q kᵀ + bias) v in its first columns, and the normalisers of the weights in the last two.

    The inputs are q [..., T, D], k [..., S, D], v [..., S, V] and the bias, which broadcasts to [..., T, S]; the result
    is [..., T, V + 2]. If `causal`, query i has no weight on keys j > i. The logarithm of the sum of a row's
    exponentials is the sum of its two last columns: a whole number, which has no derivative, and the rest. float32 and
    float64.
    """
    lead, queries, keys = q.shape[:-2], q.shape[-2], k.shape[-2]
    result = xp.empty((*lead, queries, v.shape[-1] + 2), q.dtype)
    for block in blocks(lead, queries, keys, causal):
        scores = scores_of(xp, block, q, k, bias, scale, causal)
        shift = xp.floor(xp.max(scores, axis=-1, keepdims=True))
        scores -= shift
        xp.exp(scores, out=scores)
        total = xp.sum(scores, axis=-1, keepdims=True)
        part = block.of_queries(result)
        part[..., :-2] = xp.matmul(scores, block.of_keys(v)) / total
        part[..., -2:-1] = shift
        part[..., -1:] = xp.log(total)
    return result


# ---------------------------------------------------------------------------------------------------------- attention
@composite(
    samples=[
        sample((2, 3, 2), (2, 4, 2), (2, 4, 3), (4,), scale=0.7),
        sample((3, 2), (3, 2), (3, 2), (), scale=1.0, causal=True, seed=1),
        sample((2, 2, 2), (1, 3, 2), (3, 1), (2, 1, 3), scale=0.3, seed=2),
    ],
)
def attention(q: Operand, k: Operand, v: Operand, bias: Operand, *, scale: float, causal: bool = False) -> Operand:
    """softmax(scale · q kᵀ + bias) v: the values [..., S, V] that queries [..., T, D] find at keys [..., S, D].

    Leading axes and the bias broadcast. If `causal`, query i has no weight on keys j > i. With many weights they are
    computed in blocks and never kept, neither now nor for a gradient; float16 and bfloat16 are computed in float32.
    """
    check_dtypes("Attention", [Spec.of(x.shape, x.dtype) for x in (q, k, v, bias)], FLOATING)
    for name, x in (("queries", q), ("keys", k), ("values", v)):
        if len(x.shape) < 2:
            raise InvalidArgumentError(f"Attention: {name} need two axes at least, found shape {shape_text(x.shape)}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise InvalidArgumentError(
            f"Attention: queries [..., T, D], keys [..., S, D] and values [..., S, V] are needed, found "
            f"{shape_text(q.shape)}, {shape_text(k.shape)} and {shape_text(v.shape)}"
        )
    dtype, queries, keys = q.dtype, q.shape[-2], k.shape[-2]
    if dtype not in PRECISE:
        q, k, v, bias = (cast(x, dtype=DTYPES["float32"]) for x in (q, k, v, bias))
    lead = broadcast(broadcast(q.shape[:-2], k.shape[:-2]), v.shape[:-2])
    whole = (*lead, queries, keys)
    if broadcast(bias.shape, whole) != whole:
        raise InvalidArgumentError(
            f"Attention: a bias of shape {shape_text(bias.shape)} does not broadcast to {shape_text(whole)}"
        )
    if math.prod(whole) <= _PLAIN:
        scores = matmul(q, k, transpose_b=True) * scale + bias
        if causal:
            before = ops.band_part(ones_like(scores), num_lower=-1, num_upper=0)
            scores = ops.where(ops.greater(before, 0), scores, HIDDEN_SCORE)
        result = matmul(softmax(scores, axis=-1), v)
    else:
        q, k, v = (x if x.shape[:-2] == lead else broadcast_to(x, shape=(*lead, *x.shape[-2:])) for x in (q, k, v))
        bias = reshape(bias, shape=(*(1,) * (len(whole) - len(bias.shape)), *bias.shape))
        result = _split(ops.fused_attention(q, k, v, bias, scale=scale, causal=causal))[0]
    return result if result.dtype is dtype else cast(result, dtype=dtype)
