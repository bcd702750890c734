"""TensorFlow's functions of teletape_engine.ops.shapes.create.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_EYE = ops.eye


def eye(
    num_rows: to.IntInput,
    num_columns: to.IntInput | None = None,
    batch_shape: to.IntsInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere: [*batch_shape, num_rows, num_columns or num_rows]."""
    try:
        attrs: dict[str, Any] = {"num_rows": to.whole(num_rows), "dtype": to.dtype(dtype)}
        if num_columns is not None:
            attrs["num_columns"] = to.whole(num_columns)
        if batch_shape is not None:
            attrs["batch_shape"] = to.lengths(batch_shape, "Fill")
        return call(_EYE, (), **attrs)
    except BaseException as error:
        report(error)
        raise
