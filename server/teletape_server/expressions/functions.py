"""The functions of expressions: every op by its name and TensorFlow's, and short names as in NumPy."""

from __future__ import annotations

from functools import cache
from typing import Final

from teletape_engine.catalogue.op import CATALOGUE, Op

#: Names as in NumPy, for ops that are called otherwise.
SHORT_NAMES: Final = {
    "sum": "reduce_sum",
    "mean": "reduce_mean",
    "max": "reduce_max",
    "min": "reduce_min",
    "prod": "reduce_prod",
    "any": "reduce_any",
    "all": "reduce_all",
    "std": "reduce_std",
    "var": "reduce_variance",
    "norm": "reduce_euclidean_norm",
    "logsumexp": "reduce_logsumexp",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "power": "pow",
    "clip": "clip_by_value",
    "inverse": "inv",
    "diagonal": "diag_part",
}
#: With two tensors these compare them, as in Python.
OF_TWO: Final = {"max": "maximum", "min": "minimum"}
OPERATORS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floordiv",
    "%": "floormod",
    "@": "matmul",
    "**": "pow",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "and": "logical_and",
    "or": "logical_or",
}
PREFIXES: Final = {"-": "neg", "not": "logical_not"}
PROPERTIES: Final = {"T": "matrix_transpose"}
_INTEGER_INPUTS: Final = frozenset({"indices", "segment_ids", "seed", "counter"})


@cache
def names() -> dict[str, str]:
    """Returns the names of all functions, each with that of its op."""
    ours = {name: name for name in CATALOGUE}
    last_parts = {full.rpartition(".")[2]: op.name for op in CATALOGUE.values() for full in op.tf}
    for other in ("zeros", "ones"):  # TensorFlow's take a shape alone, the op also a value
        last_parts.pop(other, None)
    return {**last_parts, **{short: op for short, op in SHORT_NAMES.items() if op in CATALOGUE}, **ours}


def op_named(name: str, tensors: int) -> Op | None:
    """Returns the op that a function calls with that many tensors; None: there is no such function."""
    op = OF_TWO.get(name, "") if tensors == 2 else ""
    return CATALOGUE.get(op or names().get(name, ""))


def takes_integers(op: Op, position: int) -> bool:
    """Whether the input at `position` holds indices."""
    name = op.inputs[0 if op.variadic else position]
    return name in _INTEGER_INPUTS or (name == "labels" and position in op.refuses)
