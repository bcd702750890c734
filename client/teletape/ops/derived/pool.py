"""TensorFlow's functions of teletape_engine.ops.nn.pool.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_MAX_POOL = ops.max_pool
_AVG_POOL = ops.avg_pool


def max_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of `ksize` [rows, columns], `strides` apart; a border has no effect.

    `padding` is SAME, VALID, or EXPLICIT with `paddings` [[top, bottom], [left, right]]. NaN is never the largest, as
    in TensorFlow.
    """
    try:
        to.channels_last(data_format)
        input = to.tensor(input)
        return call(
            _MAX_POOL,
            (input,),
            ksize=to.window(ksize, "ksize"),
            strides=to.window(strides, "strides"),
            **to.padding(padding),
        )
    except Exception as error:
        report(error)
        raise


def max_pool(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: to.PaddingInput,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The largest element of each window of `ksize` [rows, columns], `strides` apart; a border has no effect.

    `padding` is SAME, VALID, or EXPLICIT with `paddings` [[top, bottom], [left, right]]. NaN is never the largest, as
    in TensorFlow.
    """
    try:
        to.channels_last(data_format)
        input = to.tensor(input)
        return call(
            _MAX_POOL,
            (input,),
            ksize=to.window(ksize, "ksize"),
            strides=to.window(strides, "strides"),
            **to.padding(padding),
        )
    except Exception as error:
        report(error)
        raise


def avg_pool2d(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of `ksize` [rows, columns], `strides` apart, over its elements inside the image."""
    try:
        to.channels_last(data_format)
        input = to.tensor(input)
        return call(
            _AVG_POOL,
            (input,),
            ksize=to.window(ksize, "ksize"),
            strides=to.window(strides, "strides"),
            padding=to.padding_word(padding),
        )
    except Exception as error:
        report(error)
        raise


def avg_pool(
    input: to.TensorInput,
    ksize: to.IntsInput,
    strides: to.IntsInput,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window of `ksize` [rows, columns], `strides` apart, over its elements inside the image."""
    try:
        to.channels_last(data_format)
        input = to.tensor(input)
        return call(
            _AVG_POOL,
            (input,),
            ksize=to.window(ksize, "ksize"),
            strides=to.window(strides, "strides"),
            padding=to.padding_word(padding),
        )
    except Exception as error:
        report(error)
        raise
