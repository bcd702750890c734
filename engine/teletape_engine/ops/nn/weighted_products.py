"""Products with rows of weights that are computed, used and dropped, a block at a time.

The weights of queries q [..., T, D] on keys k [..., S, D] are P = softmax(scale · q kᵀ + bias) over S. They are never
kept: what is kept of a row is its normaliser, two numbers. Every derivative is again a product with such weights times
factors uᵢ · wⱼ + dᵢ, one for each time it was differentiated: `weighted_product` is closed under differentiation, and
needs T × S elements at no order. Only a bias that is differentiated itself has a gradient of T × S elements.

Rabe and Staats 2021, Self-attention does not need O(n²) memory; Dao et al. 2022, FlashAttention.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import sum_to
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Cut, Op, Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.math import exp
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import DTYPES, Spec, shape_text

_BLOCK: Final = 1 << 18  #: Weights computed at a time: with float32, what fits a core's second cache.
PRECISE: Final = frozenset((DTYPES["float32"], DTYPES["float64"]))
HIDDEN_SCORE: Final = -1e30  #: The score of a key after the query, in the dense formula; its weight is 0.

_EVERY: Final = (None, None, None)


# ------------------------------------------------------------------------------------------------------------- blocks
class _RowBlock(NamedTuple):
    """Some rows of the weights, of some of the stacked matrices.

    Attributes:
        lead: The index of the leading axes that are fixed.
        rows: Which queries.
        keys: How many keys, from the first; those after them have no weight.
    """

    lead: tuple[int, ...]
    rows: slice
    keys: int

    def of_queries(self, x: Array) -> Array:
        """These rows of [..., T or 1, n]."""
        part = self._stacked(x)
        return part if part.shape[-2] == 1 else part[..., self.rows, :]

    def of_keys(self, x: Array) -> Array:
        """The rows of [..., S, n] that have weights."""
        return self._stacked(x)[..., : self.keys, :]

    def of_scores(self, x: Array) -> Array:
        """The part of [..., T or 1, S or 1]."""
        part = self.of_queries(x)
        return part if part.shape[-1] == 1 else part[..., : self.keys]

    def _stacked(self, x: Array) -> Array:
        return x[tuple(i if n > 1 else 0 for i, n in zip(self.lead, x.shape, strict=False))]


def blocks(lead: tuple[int, ...], queries: int, keys: int, causal: bool) -> Iterator[_RowBlock]:
    """Blocks of at most _BLOCK weights, or of one row."""
    fixed = len(lead)
    while fixed and math.prod(lead[fixed - 1 :]) * queries * keys <= _BLOCK:
        fixed -= 1
    step = max(1, min(queries, _BLOCK // max(1, keys * math.prod(lead[fixed:]))))
    for index in np.ndindex(lead[:fixed]):
        for first in range(0, queries, step):
            rows = slice(first, min(first + step, queries))
            yield _RowBlock(index, rows, min(rows.stop, keys) if causal else keys)


def scores_of(xp: ArrayModule, block: _RowBlock, q: Array, k: Array, bias: Array, scale: float, causal: bool) -> Array:
    """scale · q kᵀ + bias of a block; -inf for keys after their query."""
    scores = xp.matmul(block.of_queries(q) * q.dtype.type(scale), xp.swapaxes(block.of_keys(k), -1, -2))
    scores += block.of_scores(bias)
    if causal:
        rows = xp.arange(block.rows.start, block.rows.stop)
        xp.copyto(scores, scores.dtype.type(-np.inf), where=rows[:, None] < xp.arange(block.keys))
    return scores


def workspace(q: Spec, k: Spec, *others: Spec, **attrs: Any) -> int:
    """Bytes of a block: its weights, a factor, and what is computed of both."""
    weights = math.prod(q.shape[:-1]) * k.shape[-2]
    return 4 * min(weights, max(_BLOCK, k.shape[-2])) * q.dtype.itemsize


def check_rows(op_type: str, specs: Sequence[Spec], sides: Sequence[str]) -> None:
    """Raises InvalidArgumentError unless each input has a row for each query ("T") or key ("S")."""
    check_dtypes(op_type, specs, PRECISE)
    q, k = specs[0], specs[1]
    if q.ndim < 2 or k.ndim != q.ndim or q.shape[-1] != k.shape[-1]:
        raise InvalidArgumentError(
            f"{op_type}: queries [..., T, D] and keys [..., S, D] are needed, found {shape_text(q.shape)} and "
            f"{shape_text(k.shape)}"
        )
    rows = {"T": q.shape[:-1], "S": k.shape[:-1]}
    for i, (spec, side) in enumerate(zip(specs, sides, strict=True)):
        whole = (*q.shape[:-1], k.shape[-2])
        if side == "bias":
            fits = spec.ndim == q.ndim and all(n in (1, m) for n, m in zip(spec.shape, whole, strict=True))
        else:
            fits = spec.shape[:-1] == (*q.shape[:-2], rows[side][-1])
        if not fits:
            raise InvalidArgumentError(
                f"{op_type}: input {i} has shape {shape_text(spec.shape)}, which does not fit queries "
                f"{shape_text(q.shape)} and keys {shape_text(k.shape)}"
            )


def cut(q: Spec, k: Spec, *others: Spec, **attrs: Any) -> Cut | None:
    """By the first leading axis; an input that is one for all of it stays whole."""
    if q.ndim < 3 or q.shape[0] < 2:
        return None
    specs = (q, k, *others)
    return Cut(0, {i: 0 for i, spec in enumerate(specs) if spec.shape[0] > 1})


def batch(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    """The op over a leading axis, which every input then has."""
    return record(*batch_all(args, batched), **attrs)


# --------------------------------------------------------------------------------------------------------- derivatives
def columns(x: Operand, first: int | None, stop: int | None) -> Operand:
    """The columns of [..., n] from `first` to before `stop`."""
    return ops.strided_slice(x, index=("...", (first, stop, None)))


def row_sums(x: Operand) -> Operand:
    """The sums of [..., n] over its last axis: [..., 1]."""
    return reduce_sum(x, axis=-1, keepdims=True)


def _addend(q: Operand, k: Operand, d: Operand) -> tuple[Operand, Operand, Operand]:
    """The factor dᵢ: u and w have no columns."""
    return columns(q, 0, 0), columns(k, 0, 0), d


def factor_of(u: Operand, w: Operand) -> tuple[Operand, Operand, Operand]:
    """The factor uᵢ · wⱼ."""
    return u, w, zeros_like(columns(u, 0, 1) if u.shape[-1] else row_sums(u))


def dense_product(
    q: Operand, k: Operand, bias: Operand, norm: Operand, factors: Sequence[Any], scale: float, causal: bool
) -> Operand:
    """The weights times the factors, [..., T, S]."""
    scores = matmul(q, k, transpose_b=True) * scale + bias - columns(norm, 0, 1) - columns(norm, 1, 2)
    if causal:
        before = ops.band_part(ones_like(scores), num_lower=-1, num_upper=0)
        scores = ops.where(ops.greater(before, 0), scores, HIDDEN_SCORE)
    product = exp(scores)
    for u, w, d in _triples(factors):
        product = product * (matmul(u, w, transpose_b=True) + d)
    return product


def _triples(factors: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    return [(factors[i], factors[i + 1], factors[i + 2]) for i in range(0, len(factors), 3)]


# --------------------------------------------------------------------------------------------------- weighted products
def _product_spec(*xs: Spec, scale: float, causal: bool, transposed: bool) -> Spec:
    if len(xs) < 5 or (len(xs) - 5) % 3:
        raise InvalidArgumentError(
            "WeightedProduct: queries, keys, bias, normalisers and x are needed, then three inputs a factor, found "
            f"{len(xs)} inputs"
        )
    factors = (len(xs) - 5) // 3
    check_rows("WeightedProduct", xs, ["T", "S", "bias", "T", "T" if transposed else "S", *["T", "S", "T"] * factors])
    q, k, _, norm, x = xs[:5]
    if norm.shape[-1] != 2 or any(d.shape[-1] != 1 for d in xs[7::3]):
        raise InvalidArgumentError("WeightedProduct: a normaliser has two columns, the addend of a factor one")
    if any(u.shape[-1] != w.shape[-1] for u, w in zip(xs[5::3], xs[6::3], strict=True)):
        raise InvalidArgumentError("WeightedProduct: the two sides of a factor need as many columns as each other")
    return x.with_shape((*(k if transposed else q).shape[:-1], x.shape[-1]))


def _product_vjp(
    ct: Operand, xs: Sequence[Operand], y: Operand, scale: float, causal: bool, transposed: bool, i: int
) -> Operand:
    q, k, bias, norm, x, *factors = xs

    def product(z: Operand, factors: Sequence[Any], transposed: bool) -> Operand:
        return ops.weighted_product(q, k, bias, norm, z, *factors, scale=scale, causal=causal, transposed=transposed)

    if i == 4:
        return product(ct, factors, not transposed)
    left, right = (x, ct) if transposed else (ct, x)  # the cotangent of weight (i, j) is leftᵢ · rightⱼ
    more = [*factors, *factor_of(left, right)]
    if i == 0:
        return product(k, more, False) * scale
    if i == 1:
        return product(q, more, True) * scale
    if i == 2:
        return sum_to(dense_product(q, k, bias, norm, more, scale, causal), bias.shape)
    if i == 3:
        sums = -row_sums(x * product(ct, factors, False) if transposed else ct * y)
        return concat(sums, sums, axis=-1)
    place, side = divmod(i - 5, 3)
    u, w, _ = factors[3 * place : 3 * place + 3]
    others = [*more[: 3 * place], *more[3 * place + 3 :]]
    if side == 0:
        return product(w, others, False)
    if side == 1:
        return product(u, others, True)
    return product(ones_like(columns(k, 0, 1)), others, False)


def _product_jvp(t: Operand, xs: Sequence[Operand], scale: float, causal: bool, transposed: bool, i: int) -> Operand:
    q, k, bias, norm, x, *factors = xs

    def product(z: Operand, *factors: Operand) -> Operand:
        return ops.weighted_product(q, k, bias, norm, z, *factors, scale=scale, causal=causal, transposed=transposed)

    if i == 0:
        return product(x, *factors, *factor_of(t * scale, k))
    if i == 1:
        return product(x, *factors, *factor_of(q * scale, t))
    if i == 2:
        return matmul(dense_product(q, k, bias, norm, factors, scale, causal) * t, x, transpose_a=transposed)
    if i == 3:
        return product(x, *factors, *_addend(q, k, -row_sums(t)))
    if i == 4:
        return product(t, *factors)
    place, side = divmod(i - 5, 3)
    u, w, _ = factors[3 * place : 3 * place + 3]
    replaced = [factor_of(t, w), factor_of(u, t), _addend(q, k, t)][side]
    return product(x, *factors[: 3 * place], *replaced, *factors[3 * place + 3 :])


def _rows(*lead: int, seed: int = 0, factors: int = 1, transposed: bool = False, causal: bool = False) -> Sample:
    """Inputs of a weighted product with 3 queries, 4 keys, and normalisers of about what the scores come to."""
    t, s = (*lead, 3), (*lead, 4)
    norm = np.random.default_rng(seed).uniform(0.5, 1.5, (*t, 2))
    more = [shape for _ in range(factors) for shape in ((*t, 2), (*s, 2), (*t, 1))]
    bias = (*(1 for _ in lead), 3, 4)
    x = (*(t if transposed else s), 2)
    return sample((*t, 2), (*s, 2), bias, norm, x, *more, scale=0.7, causal=causal, transposed=transposed, seed=seed)


@op(
    infer=_product_spec,
    vjp=_product_vjp,
    jvp=_product_jvp,
    batch=batch,
    samples=lambda: [
        _rows(),
        _rows(transposed=True, seed=1),
        _rows(2, factors=0, seed=2),
        _rows(2, factors=2, transposed=True, causal=True, seed=3),
        _rows(causal=True, seed=4),
    ],
    workspace=workspace,
    work=lambda q, k, bias, norm, x, *factors, scale, causal, transposed: (
        math.prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + x.shape[-1] + sum(u.shape[-1] for u in factors[::3]))
    ),
    cut=cut,
    traits=[Trait.MULTIPLIES],
)
def weighted_product(
    xp: ArrayModule, *xs: Array, scale: float, causal: bool = False, transposed: bool = False
) -> Array:
    """M x, or Mᵀ x if `transposed`, with Mᵢⱼ = exp(scale · qᵢ · kⱼ + biasᵢⱼ - nᵢ) ∏ (uᵢ · wⱼ + dᵢ): never all of M.

    The inputs are q [..., T, D], k [..., S, D], the bias, which broadcasts to [..., T, S], the normalisers [..., T, 2],
    of which n is the sum, x [..., S, X], or [..., T, X] if `transposed`, and for each factor u [..., T, W],
    w [..., S, W] and d [..., T, 1]. If `causal`, Mᵢⱼ is 0 for j > i. float32 and float64.
    """
    q, k, bias, norm, x, *factors = xs
    lead, queries, keys = q.shape[:-2], q.shape[-2], k.shape[-2]
    result = xp.zeros((*lead, keys if transposed else queries, x.shape[-1]), q.dtype)
    for block in blocks(lead, queries, keys, causal):
        product = scores_of(xp, block, q, k, bias, scale, causal)
        shift, log_sum = block.of_queries(norm[..., :1]), block.of_queries(norm[..., 1:])
        product -= shift  # first: a shift may be so large that the sum of both would be the shift
        product -= log_sum
        xp.exp(product, out=product)
        for u, w, d in _triples(factors):
            if not u.shape[-1]:
                product *= block.of_queries(d)
                continue
            factor = xp.matmul(block.of_queries(u), xp.swapaxes(block.of_keys(w), -1, -2))
            factor += block.of_queries(d)
            product *= factor
        if transposed:
            part = block.of_keys(result)
            part += xp.matmul(xp.swapaxes(product, -1, -2), block.of_queries(x))
        else:
            block.of_queries(result)[...] = xp.matmul(product, block.of_keys(x))
    return result
