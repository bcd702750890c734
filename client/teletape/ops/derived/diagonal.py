"""TensorFlow's functions of teletape_engine.ops.linalg.diagonal.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_DIAG_PART = ops.diag_part
_DIAG = ops.diag
_SET_DIAG = ops.set_diag
_BAND_PART = ops.band_part


def diag_part(
    input: to.TensorInput,
    name: str | None = "diag_part",
    k: to.IntsInput = 0,
    padding_value: Any = 0,
    align: Any = "RIGHT_LEFT",
) -> Tensor:
    """The k-th diagonals [..., n] of matrices, counted upwards from the main one."""
    try:
        input = to.tensor(input)
        return call(_DIAG_PART, (input,), k=to.diagonal(k))
    except Exception as error:
        report(error)
        raise


def diag(
    diagonal: to.TensorInput,
    name: str | None = "diag",
    k: to.IntsInput = 0,
    num_rows: to.IntInput = -1,
    num_cols: to.IntInput = -1,
    padding_value: to.NumberInput = 0,
    align: Any = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with x [..., n] on the k-th diagonal and `padding_value` elsewhere; -1 rows or columns: the fewest."""
    try:
        diagonal = to.tensor(diagonal)
        return call(
            _DIAG,
            (diagonal,),
            k=to.diagonal(k),
            num_rows=to.whole(num_rows),
            num_cols=to.whole(num_cols),
            padding_value=to.number(padding_value),
        )
    except Exception as error:
        report(error)
        raise


def set_diag(
    input: to.TensorInput,
    diagonal: to.TensorInput,
    name: str | None = "set_diag",
    k: to.IntsInput = 0,
    align: Any = "RIGHT_LEFT",
) -> Tensor:
    """x with `diagonal` [..., n] in place of its k-th diagonal."""
    try:
        return call(_SET_DIAG, (input, diagonal), k=to.diagonal(k))
    except Exception as error:
        report(error)
        raise


def band_part(input: to.TensorInput, num_lower: to.IntInput, num_upper: to.IntInput, name: str | None = None) -> Tensor:
    """x with zeros outside of a band of `num_lower` and `num_upper` diagonals around the main one; negative: all."""
    try:
        return call(_BAND_PART, (input,), num_lower=to.whole(num_lower), num_upper=to.whole(num_upper))
    except Exception as error:
        report(error)
        raise
