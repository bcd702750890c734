"""TensorFlow's functions of teletape_engine.ops.reduce.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_REDUCE_SUM = ops.reduce_sum
_REDUCE_MEAN = ops.reduce_mean
_REDUCE_MAX = ops.reduce_max
_REDUCE_MIN = ops.reduce_min
_REDUCE_PROD = ops.reduce_prod
_REDUCE_ANY = ops.reduce_any
_REDUCE_ALL = ops.reduce_all
_REDUCE_LOGSUMEXP = ops.reduce_logsumexp
_REDUCE_EUCLIDEAN_NORM = ops.reduce_euclidean_norm
_REDUCE_VARIANCE = ops.reduce_variance
_REDUCE_STD = ops.reduce_std
_ARGMAX = ops.argmax
_ARGMIN = ops.argmin


def reduce_sum(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum over `axis` (one, several, or by default all); integers wrap around. Without elements it is 0."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_SUM, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_mean(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over `axis`; of integers an integer, summed in 64 bits and rounded toward zero; nan without elements."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_MEAN, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_max(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The largest over `axis`; nan if any is, -inf without elements. Equal ones share the gradient equally."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_MAX, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_min(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The smallest over `axis`; nan if any is, inf without elements. Equal ones share the gradient equally."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_MIN, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_prod(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The product over `axis`; integers wrap around; 1 without elements. The gradient is exact at zeros."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_PROD, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_any(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether any is true over `axis`. Without elements it is false."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_ANY, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_all(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether all are true over `axis`. Without elements it is true."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_ALL, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_logsumexp(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """log(Σ eˣ) over `axis`, without overflow. Without elements it is -inf."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_LOGSUMEXP, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_euclidean_norm(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """√(Σ |x|²) over `axis`, in the dtype of x, without the fraction of integers. The gradient at zero is nan."""
    try:
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_EUCLIDEAN_NORM, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_variance(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean over `axis` (divided by n); of complex numbers real."""
    try:
        input_tensor = to.tensor(input_tensor)
        checks.real_or_complex(input_tensor)
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_VARIANCE, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def reduce_std(
    input_tensor: to.TensorInput, axis: to.IntsInput | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the variance over `axis`. The gradient is nan if that is zero, as in TensorFlow."""
    try:
        input_tensor = to.tensor(input_tensor)
        checks.real_or_complex(input_tensor)
        attrs: dict[str, Any] = {}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_REDUCE_STD, (input_tensor,), **attrs)
    except BaseException as error:
        report(error)
        raise


def argmax(
    input: to.TensorInput,
    axis: to.IntInput | None = None,
    output_type: to.DTypeInput = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """The index of the largest along `axis`, the first one of equal elements; nan is ignored."""
    try:
        attrs: dict[str, Any] = {"output_type": to.dtype(output_type)}
        if axis is not None:
            attrs["axis"] = to.whole(axis)
        return call(_ARGMAX, (input,), **attrs)
    except BaseException as error:
        report(error)
        raise


def argmin(
    input: to.TensorInput,
    axis: to.IntInput | None = None,
    output_type: to.DTypeInput = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """The index of the smallest along `axis`, the first one of equal elements; nan is ignored."""
    try:
        attrs: dict[str, Any] = {"output_type": to.dtype(output_type)}
        if axis is not None:
            attrs["axis"] = to.whole(axis)
        return call(_ARGMIN, (input,), **attrs)
    except BaseException as error:
        report(error)
        raise
