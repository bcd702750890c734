"""Sobol's sequence: points that fill the unit cube more evenly than random ones, by SciPy.

Direction numbers of Joe and Kuo, "Constructing Sobol Sequences with Better Two-Dimensional Projections", 2008: those of
TensorFlow, which has them for the first 1111 axes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.define import on_gpu, op
from teletape_engine.catalogue.op import Sample
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, KERNEL_NAMES, DType, Spec

_F32, _F64 = DTYPES["float32"], DTYPES["float64"]
_AXES: Final = 21201  #: Those for which SciPy has direction numbers.
_BITS: Final = 32
_POINTS: Final = 2**31 - 1  #: TensorFlow's sequence is not longer.


def _sobol_spec(*, dim: int, num_results: int, skip: int, dtype: DType) -> Spec:
    if dtype not in (_F32, _F64):
        raise InvalidArgumentError(
            f"Value for attr 'dtype' of {KERNEL_NAMES[dtype]} is not in the list of allowed values: float, double"
        )
    if dim < 1:
        raise InvalidArgumentError("dim must be at least one")
    if dim > _AXES:
        raise InvalidArgumentError(f"dim must be at most {_AXES}, found {dim}")
    if num_results < 1:
        raise InvalidArgumentError("num_results must be at least one")
    if skip < 0:
        raise InvalidArgumentError("skip must be non-negative")
    if num_results + skip >= _POINTS:
        raise InvalidArgumentError(f"num_results+skip must be less than {_POINTS}")
    return Spec.of((num_results, dim), dtype)


@op(
    infer=_sobol_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=None,
    samples=[
        Sample((), {"dim": 3, "num_results": 5}),
        Sample((), {"dim": 2, "num_results": 3, "skip": 6, "dtype": _F64}),
    ],
    op_type="SobolSample",
    tf="math.sobol_sample",
    workspace=lambda *, dim, num_results, skip, dtype: 24 * dim * num_results + 32 * num_results + 16 * _BITS * dim,
    work=lambda *, dim, num_results, skip, dtype: _BITS * dim * num_results,
)
@on_gpu(up="the points, which the host computes")
def sobol_sample(xp: ArrayModule, *, dim: int, num_results: int, skip: int = 0, dtype: DType = _F32) -> Array:
    """Points of Sobol's sequence in the unit cube, [num_results, dim], without its first one, 0, and `skip` more."""
    from scipy.stats import qmc

    # Private: SciPy goes to a later point step by step, 2²² points of 100 axes in 0.15 s, and 2³¹ in over a minute.
    directions = qmc.Sobol(dim, scramble=False, bits=_BITS)._sv
    numbers = np.arange(skip + 1, skip + 1 + num_results)
    code = numbers ^ (numbers >> 1)  # Gray's
    points = np.zeros((num_results, dim), directions.dtype)
    for bit in range(int(code.max()).bit_length()):
        points ^= np.where(((code >> bit) & 1)[:, None], directions[:, bit], directions.dtype.type(0))
    return xp.asarray((points * 0.5**_BITS).astype(dtype))
