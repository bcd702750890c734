"""The catalogue's ops, one family a file. Importing this package fills and freezes the catalogue."""

from __future__ import annotations

from teletape_engine.op import CATALOGUE
from teletape_engine.ops import (
    arithmetic,
    cast,
    complex,
    create,
    image,
    index,
    linalg,
    logic,
    loss,
    math,
    nn,
    pad,
    random,
    reduce,
    shape,
)

CATALOGUE.frozen = True

__all__ = [
    "arithmetic",
    "cast",
    "complex",
    "create",
    "image",
    "index",
    "linalg",
    "logic",
    "loss",
    "math",
    "nn",
    "pad",
    "random",
    "reduce",
    "shape",
]
