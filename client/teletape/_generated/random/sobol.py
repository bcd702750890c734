"""TensorFlow's functions of teletape_engine.ops.random.sobol.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_SOBOL_SAMPLE = ops.sobol_sample


def sobol_sample(
    dim: to.IntInput,
    num_results: to.IntInput,
    skip: to.IntInput = 0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Points of Sobol's sequence in the unit cube, [num_results, dim], without its first one, 0, and `skip` more."""
    try:
        return call(
            _SOBOL_SAMPLE,
            (),
            dim=to.whole(dim),
            num_results=to.whole(num_results),
            skip=to.whole(skip),
            dtype=to.dtype(dtype),
        )
    except BaseException as error:
        report(error)
        raise
