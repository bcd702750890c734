"""TensorFlow's functions of teletape_engine.ops.cumulative.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_CUMSUM = ops.cumsum
_CUMPROD = ops.cumprod
_CUMULATIVE_LOGSUMEXP = ops.cumulative_logsumexp


def cumsum(
    x: to.TensorInput, axis: to.IntInput = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Sums of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    try:
        attrs: dict[str, Any] = {"axis": to.whole(axis)}
        if exclusive is not False:
            attrs["exclusive"] = to.flag(exclusive)
        if reverse is not False:
            attrs["reverse"] = to.flag(reverse)
        return call(_CUMSUM, (x,), **attrs)
    except BaseException as error:
        report(error)
        raise


def cumprod(
    x: to.TensorInput, axis: to.IntInput = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Products of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    try:
        attrs: dict[str, Any] = {"axis": to.whole(axis)}
        if exclusive is not False:
            attrs["exclusive"] = to.flag(exclusive)
        if reverse is not False:
            attrs["reverse"] = to.flag(reverse)
        return call(_CUMPROD, (x,), **attrs)
    except BaseException as error:
        report(error)
        raise


def cumulative_logsumexp(
    x: to.TensorInput, axis: to.IntInput = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log(Σ eˣ) of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    try:
        attrs: dict[str, Any] = {"axis": to.whole(axis)}
        if exclusive is not False:
            attrs["exclusive"] = to.flag(exclusive)
        if reverse is not False:
            attrs["reverse"] = to.flag(reverse)
        return call(_CUMULATIVE_LOGSUMEXP, (x,), **attrs)
    except BaseException as error:
        report(error)
        raise
