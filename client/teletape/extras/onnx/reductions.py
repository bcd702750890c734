"""ONNX's operators that reduce axes: sums and their like, extremes, products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape._generated.elementwise.complex import abs
from teletape._generated.elementwise.math import log, sqrt
from teletape._generated.linalg.einsum import einsum
from teletape._generated.linalg.products import matmul
from teletape._generated.reduce import (
    argmax,
    argmin,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from teletape._generated.shapes.shape import transpose
from teletape._generated.sorting import top_k
from teletape.extras.onnx.operators import operator


def _reduction(name: str, function: Callable[..., Any], since_inputs: int = 18) -> None:
    """Adds a reduction: its axes are an attribute before an opset, and an input from it on."""
    if since_inputs > 13:

        @operator(name)
        def by_attribute(x: Any, *, axes: tuple[int, ...] | None = None, keepdims: int = 1) -> Any:
            return function(x, None if axes is None else list(axes), bool(keepdims))

    @operator(name, since=since_inputs, hosts=("axes",))
    def by_input(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        if axes is None or not np.size(axes):
            return x if noop_with_empty_axes else function(x, None, bool(keepdims))
        return function(x, axes.tolist(), bool(keepdims))


_reduction("ReduceL1", lambda x, axes, keepdims: reduce_sum(abs(x), axes, keepdims))
_reduction("ReduceL2", lambda x, axes, keepdims: sqrt(reduce_sum(x * x, axes, keepdims)))
_reduction("ReduceLogSum", lambda x, axes, keepdims: log(reduce_sum(x, axes, keepdims)))
_reduction("ReduceLogSumExp", reduce_logsumexp)
_reduction("ReduceMax", reduce_max)
_reduction("ReduceMean", reduce_mean)
_reduction("ReduceMin", reduce_min)
_reduction("ReduceProd", reduce_prod)
_reduction("ReduceSum", reduce_sum, 13)
_reduction("ReduceSumSquare", lambda x, axes, keepdims: reduce_sum(x * x, axes, keepdims))


def _extreme(name: str, function: Callable[..., Any]) -> None:
    @operator(name, values={"select_last_index": (0,)})
    def compute(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        positions = function(x, axis=axis, output_type="int64")
        if not keepdims:
            return positions
        axis %= len(x.shape)
        return positions[tuple([None if i == axis else slice(None) for i in range(len(x.shape))])]


_extreme("ArgMax", argmax)
_extreme("ArgMin", argmin)


@operator("TopK", hosts=("k",), results=2)
def _top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    rank = len(x.shape)
    order = [*(i for i in range(rank) if i != axis % rank), axis % rank]
    back = np.argsort(order).tolist()
    rows = transpose(x if largest else -x, order)
    values, positions = top_k(rows, int(k.reshape(-1)[0]), bool(sorted), "int64")
    return transpose(values if largest else -values, back), transpose(positions, back)


@operator("MatMul")
def _matmul(a: Any, b: Any) -> Any:
    row, column = len(a.shape) == 1, len(b.shape) == 1
    product = matmul(a[None] if row else a, b[:, None] if column else b)
    product = product[..., 0] if column else product
    return product[..., 0] if row and column else product[..., 0, :] if row else product


@operator("Gemm")
def _gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:
    product = matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB))
    product = product if alpha == 1 else alpha * product
    if c is None:
        return product
    return product + (c if beta == 1 else beta * c)


@operator("Einsum")
def _einsum(*values: Any, equation: str) -> Any:
    return einsum(equation.replace(" ", ""), *values)
