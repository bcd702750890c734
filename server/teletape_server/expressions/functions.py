"""The functions of expressions: every op by its name, TensorFlow's and NumPy's."""

from __future__ import annotations

from functools import cache
from typing import Final

from teletape_engine.catalogue.op import CATALOGUE, Op

#: What a text writes for functions that are no op.
FORMULAS: Final = {
    "arange": "range(0, 10)",
    "array": "[[1, 2], [3, 4]]",
    "average": "mean(x)",
    "astype": "cast(x, dtype='float64')",
    "cbrt": "sign(x) * abs(x) ** (1 / 3)",
    "deg2rad": "x * pi / 180",
    "diff": "x[1:] - x[:-1]",
    "empty": "fill(0, [2, 3])",
    "exp2": "2 ** x",
    "flatten": "reshape(x, [-1])",
    "full": "fill(1.5, [2, 3])",
    "full_like": "1.5 * ones_like(x)",
    "gamma": "exp(lgamma(x))",
    "heaviside": "where(x < 0, 0, 1)",
    "hypot": "sqrt(x ** 2 + y ** 2)",
    "inner": 'einsum("...k,...k->...", a, b)',
    "ln": "log(x)",
    "log10": "log(x) / log(10)",
    "log2": "log(x) / log(2)",
    "logaddexp": "logsumexp([a, b], axis=0)",
    "logit": "log(p / (1 - p))",
    "mae": "mean(abs(a - b))",
    "mse": "mean((a - b) ** 2)",
    "ndtr": "0.5 * erfc(-x / sqrt(2))",
    "norm_cdf": "0.5 * erfc(-x / sqrt(2))",
    "norm_pdf": "exp(-x ** 2 / 2) / sqrt(2 * pi)",
    "normcdf": "0.5 * erfc(-x / sqrt(2))",
    "normpdf": "exp(-x ** 2 / 2) / sqrt(2 * pi)",
    "ones": "fill(1, [2, 3])",
    "outer": 'einsum("i,j->ij", a, b)',
    "rad2deg": "x * 180 / pi",
    "ravel": "reshape(x, [-1])",
    "rmse": "sqrt(mean((a - b) ** 2))",
    "tensordot": 'einsum("ij,jk->ik", a, b)',
    "trapezoid": "sum((y[1:] + y[:-1]) / 2 * (x[1:] - x[:-1]))",
    "trapz": "sum((y[1:] + y[:-1]) / 2 * (x[1:] - x[:-1]))",
    "vdot": "sum(a * b)",
    "zeros": "fill(0, [2, 3])",
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
    "@": "numpy_matmul",
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
    """Returns the names of all functions, each with that of its op: the catalogue's names and synonyms."""
    synonyms = {name: op for name, op in CATALOGUE.synonyms.items() if name.isidentifier() and name == name.lower()}
    for other in ("zeros", "ones"):  # TensorFlow's take a shape alone, the op also a value
        synonyms.pop(other, None)
    return {**synonyms, **{name: name for name in CATALOGUE}}


def op_named(name: str, tensors: int) -> Op | None:
    """Returns the op that a function calls with that many tensors; None: there is no such function."""
    op = OF_TWO.get(name, "") if tensors == 2 else ""
    return CATALOGUE.get(op or names().get(name, ""))


def takes_integers(op: Op, position: int) -> bool:
    """Whether the input at `position` holds indices."""
    name = op.inputs[0 if op.variadic else position]
    return name in _INTEGER_INPUTS or (name == "labels" and position in op.refuses)
