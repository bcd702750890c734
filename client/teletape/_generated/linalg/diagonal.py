"""TensorFlow's functions of teletape_engine.ops.linalg.diagonal.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_BAND_PART = ops.band_part


def band_part(input: to.TensorInput, num_lower: to.IntInput, num_upper: to.IntInput, name: str | None = None) -> Tensor:
    """x with zeros outside of a band of `num_lower` and `num_upper` diagonals around the main one; negative: all."""
    try:
        return call(_BAND_PART, (input,), num_lower=to.whole(num_lower), num_upper=to.whole(num_upper))
    except BaseException as error:
        report(error)
        raise
