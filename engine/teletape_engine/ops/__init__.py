"""The catalogue's ops, one family a file. Importing this package fills and freezes the catalogue."""

from __future__ import annotations

from teletape_engine.op import CATALOGUE
from teletape_engine.ops import (
    arithmetic,
    cast,
    checks,
    complex,
    conv,
    create,
    einsum,
    image,
    index,
    linalg,
    logic,
    loss,
    math,
    matrix,
    nn,
    pad,
    places,
    pool,
    random,
    reduce,
    segment,
    shape,
    solve,
)

CATALOGUE.frozen = True

__all__ = [
    "arithmetic",
    "cast",
    "checks",
    "complex",
    "conv",
    "create",
    "einsum",
    "image",
    "index",
    "linalg",
    "logic",
    "loss",
    "math",
    "matrix",
    "nn",
    "pad",
    "places",
    "pool",
    "random",
    "reduce",
    "segment",
    "shape",
    "solve",
]
