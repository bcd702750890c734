"""`tf.nn.embedding_lookup_sparse`: rows of an embedding, combined over the ids of each row of a sparse tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.conversions import reshape
from teletape.extras.sparse_tensors.parts import fill_empty_rows, retain
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape.tf.ops.arrays.sorting import unique
from teletape.tf.ops.linalg.clip import clip_by_norm
from teletape.tf.ops.nn.embeddings import joined
from teletape_engine.catalogue.namespace import ops

_COMBINERS = ("mean", "sqrtn", "sum")


def embedding_lookup_sparse(
    params: Any,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    combiner: str | None = None,
    max_norm: to.NumberInput | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The embeddings of the ids of each row, combined: [last row + 1, *embedding].

    The gradient of `params` has only the rows that were looked up: IndexedSlices.

    Args:
        params: The embeddings [ids, *embedding], a tensor or variable, or a list of parts as for embedding_lookup.
        sp_ids: int32 or int64 [rows, n]; each row has at least one id.
        sp_weights: A weight for each id, at the same indices; None: ones.
        combiner: "sum" of the weighted embeddings; "mean", divided by the sum of the weights (the default); "sqrtn",
            divided by the root of the sum of their squares.
        max_norm: Embeddings with a larger norm are scaled to it first.
        name: Accepted, without effect.
        allow_fast_lookup: Accepted, without effect.

    Raises:
        TypeError: Ids or weights that are not sparse.
        ValueError: Another combiner; weights that do not fit the ids; parts of other lengths.

    Example:
        tf.nn.embedding_lookup_sparse(
            tf.constant([[1.0, 2.0], [3.0, 4.0]]),
            tf.sparse.SparseTensor([[0, 0], [0, 1]], [0, 1], [1, 2]),
            None,
            combiner="sum",
        )
    """
    how = _combiner(combiner)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is not None:
        if not isinstance(sp_weights, SparseTensor):
            raise TypeError(f"sp_weights must be either None or SparseTensor,got {type(sp_weights)}")
        if sp_weights.values.shape.as_list() != sp_ids.values.shape.as_list():
            raise ValueError(
                f"sp_weights: a weight for each of the ids {sp_ids.values.shape}, found {sp_weights.shape}"
            )
    places = sp_ids.places()
    ids, positions = unique(sp_ids.values)
    embeddings = call(ops.gather, (joined(params), ids))
    if max_norm is not None:
        embeddings = clip_by_norm(embeddings, max_norm, axes=list(range(1, embeddings.ndim)))
    rows = call(ops.gather, (embeddings, positions))
    count = int(places[-1, 0]) + 1 if places.shape[0] else 0
    segments = constant(places[:, 0])
    if sp_weights is None:
        reduction = {
            "sum": ops.unsorted_segment_sum,
            "mean": ops.unsorted_segment_mean,
            "sqrtn": ops.unsorted_segment_sqrt_n,
        }[how]
        return call(reduction, (rows, segments), num_segments=count)
    ones = (1,) * (embeddings.ndim - 1)
    weights = sp_weights.values
    if weights.dtype is not rows.dtype:
        weights = call(ops.cast, (weights,), dtype=rows.dtype.np)
    weights = call(ops.reshape, (weights,), shape=(*weights.shape.as_list(), *ones))
    total = call(ops.unsorted_segment_sum, (call(ops.mul, (rows, weights)), segments), num_segments=count)
    if how == "sum":
        return total
    if how == "mean":
        return call(ops.div_no_nan, (total, call(ops.unsorted_segment_sum, (weights, segments), num_segments=count)))
    squares = call(ops.unsorted_segment_sum, (call(ops.square, (weights,)), segments), num_segments=count)
    return call(ops.div_no_nan, (total, call(ops.sqrt, (squares,))))


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str = "mean",
    default_id: to.IntInput | None = None,
    max_norm: to.NumberInput | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Like embedding_lookup_sparse, for rows that may be empty, and for invalid ids and weights.

    Ids below 0 are ignored, and except for "sum" weights that are not above 0. A row without ids has the embedding of
    `default_id`, or zeros.

    Args:
        embedding_weights: The embeddings, as `params` of embedding_lookup_sparse.
        sparse_ids: int32 or int64 [*rows, n].
        sparse_weights: A weight for each id, at the same indices; None: ones.
        combiner: As for embedding_lookup_sparse.
        default_id: The id of empty rows; None: they have zeros.
        max_norm: As for embedding_lookup_sparse.
        name: Accepted, without effect.
        allow_fast_lookup: Accepted, without effect.

    Returns:
        [*rows, *embedding].

    Raises:
        TypeError: As for embedding_lookup_sparse.
        ValueError: As for embedding_lookup_sparse; no embeddings.

    Example:
        tf.nn.safe_embedding_lookup_sparse(
            tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.sparse.SparseTensor([[0, 0], [0, 1]], np.array([0, 1]), [2, 2])
        )
    """
    if embedding_weights is None or (isinstance(embedding_weights, list | tuple) and not embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    outer = sparse_ids.shape.as_list()[:-1]
    last = sparse_ids.shape.as_list()[-1]
    count = int(np.prod(outer, dtype=np.int64))
    ids = reshape(sparse_ids, [count, last])
    valid = np.asarray(ids.values.numpy()) >= 0
    weights = None if sparse_weights is None else reshape(sparse_weights, [count, last])
    if weights is not None and _combiner(combiner) != "sum":
        valid &= np.asarray(weights.values.numpy()) > 0
    if not valid.all():
        weights = None if weights is None else retain(weights, valid)
        ids = retain(ids, valid)
    ids, empty = fill_empty_rows(ids, 0 if default_id is None else default_id)
    if weights is not None:
        weights, _ = fill_empty_rows(weights, 1.0)
    result = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    shape = result.shape.as_list()[1:]
    if default_id is None:
        rows = call(ops.reshape, (empty,), shape=(count, *(1 for _ in shape)))
        result = call(ops.where, (rows, call(ops.zeros_like, (result,)), result))
    return call(ops.reshape, (result,), shape=(*outer, *shape))


def _combiner(combiner: str | None) -> str:
    if combiner not in (None, *_COMBINERS):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    return combiner or "mean"
