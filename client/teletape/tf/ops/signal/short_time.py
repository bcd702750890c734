"""`tf.signal`: Fourier transforms of real numbers, frames and short-time transforms.

By hand: the lengths are by default those of the axes, and the caller may pass its own window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from teletape._generated.shapes.rearrange import roll
from teletape._generated.shapes.shape import reshape, transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.signal.windows import hann_window
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


# --------------------------------------------------------------------------------------------------------- transforms
def rfft(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers [..., n] over the last axis: [..., n // 2 + 1].

    Args:
        input_tensor: float32 or float64.
        fft_length: [n]; the input is cut off or filled with zeros to it. None: the length of the axis.
        name: Accepted, without effect.

    Raises:
        ValueError: Another dtype.

    Example:
        tf.signal.rfft([1.0, 2.0, 3.0])
    """
    return _rfft(input_tensor, fft_length, 1)


def rfft2d(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """Like rfft, over the last two axes.

    Example:
        tf.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]])
    """
    return _rfft(input_tensor, fft_length, 2)


def rfft3d(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """Like rfft, over the last three axes.

    Example:
        tf.signal.rfft3d([[[1.0, 2.0], [3.0, 4.0]]])
    """
    return _rfft(input_tensor, fft_length, 3)


def irfft(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """The inverse of rfft: real numbers [..., n] from complex ones [..., n // 2 + 1].

    Args:
        input_tensor: complex64 or complex128.
        fft_length: [n]; None: the even length that has as many coefficients as the last axis is long.
        name: Accepted, without effect.

    Raises:
        ValueError: Another dtype.

    Example:
        tf.signal.irfft(tf.constant([6.0 + 0j, 0.0]))
    """
    return _irfft(input_tensor, fft_length, 1)


def irfft2d(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """Like irfft, over the last two axes.

    Example:
        tf.signal.irfft2d(tf.constant([[10.0 + 0j, -2.0], [-4.0, 0.0]]))
    """
    return _irfft(input_tensor, fft_length, 2)


def irfft3d(input_tensor: to.TensorInput, fft_length: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """Like irfft, over the last three axes.

    Example:
        tf.signal.irfft3d(tf.constant([[[10.0 + 0j, -2.0], [-4.0, 0.0]]]))
    """
    return _irfft(input_tensor, fft_length, 3)


def _rfft(input_tensor: Any, fft_length: Any, rank: int) -> Tensor:
    x = convert_to_tensor(input_tensor, dtype_hint=dtypes.float32)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"RFFT requires tf.float32 or tf.float64 inputs, got: {x.dtype.name}")
    return call(ops.rfft, (x,), fft_length=_lengths(x, fft_length, rank, x.shape.as_list()[-rank:]))


def _irfft(input_tensor: Any, fft_length: Any, rank: int) -> Tensor:
    x = convert_to_tensor(input_tensor, dtype_hint=dtypes.complex64)
    if not x.dtype.is_complex:
        raise ValueError(f"IRFFT requires tf.complex64 or tf.complex128 inputs, got: {x.dtype.name}")
    own = x.shape.as_list()[-rank:]
    return call(ops.irfft, (x,), fft_length=_lengths(x, fft_length, rank, [*own[:-1], max(0, 2 * (own[-1] - 1))]))


def _lengths(x: Tensor, fft_length: Any, rank: int, default: list[int]) -> tuple[int, ...]:
    if x.ndim < rank:
        raise ValueError(f"Shape {x.shape} must have rank at least {rank}")
    lengths = tuple(default) if fft_length is None else to.ints(fft_length, "fft_length")
    if len(lengths) != rank:
        raise InvalidArgumentError(f"fft_length must have {rank} lengths, found {len(lengths)}")
    return lengths


def fftshift(x: to.TensorInput, axes: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """Swaps the halves of x along each of the axes; None: all axes.

    Raises:
        InvalidArgumentError: An axis out of range.

    Example:
        tf.signal.fftshift([0.0, 1.0, 2.0, -2.0, -1.0])
    """
    return _shifted(x, axes, 1)


def ifftshift(x: to.TensorInput, axes: to.IntsInput | None = None, name: str | None = None) -> Tensor:
    """The inverse of fftshift.

    Example:
        tf.signal.ifftshift([-2.0, -1.0, 0.0, 1.0, 2.0])
    """
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, direction: int) -> Tensor:
    tensor = convert_to_tensor(x)
    along = range(tensor.ndim) if axes is None else to.ints(axes, "axes")
    lengths = tensor.shape.as_list()
    outside = [axis for axis in along if not -tensor.ndim <= axis < tensor.ndim]
    if outside:
        raise InvalidArgumentError(f"axis {outside[0]} is out of range for a tensor of {tensor.ndim} axes")
    return roll(tensor, [direction * (lengths[axis] // 2) for axis in along], list(along))


# -------------------------------------------------------------------------------------------------------------- frames
def frame(
    signal: to.TensorInput,
    frame_length: to.IntInput,
    frame_step: to.IntInput,
    pad_end: bool = False,
    pad_value: to.NumberInput = 0,
    axis: to.IntInput = -1,
    name: str | None = None,
) -> Tensor:
    """Cuts a signal along `axis` into frames, which begin `frame_step` elements apart: [..., count, length, ...].

    Args:
        signal: Of any dtype.
        frame_length: How many elements a frame has.
        frame_step: How many elements after a frame the next one begins.
        pad_end: Whether frames that do not fit are filled with `pad_value`, or left out.
        pad_value: Of the signal's dtype.
        axis: The axis.
        name: Accepted, without effect.

    Example:
        tf.signal.frame([1.0, 2.0, 3.0, 4.0], frame_length=2, frame_step=1)
    """
    x, length, step, at = convert_to_tensor(signal), to.whole(frame_length), to.whole(frame_step), to.whole(axis)
    if not -x.ndim <= at < x.ndim:
        raise ValueError(f"axis {at} is out of range for a signal of {x.ndim} axes")
    at %= x.ndim
    last = x.ndim - 1
    if at != last:
        x = transpose(x, [*(i for i in range(x.ndim) if i != at), at])
    if pad_end and step > 0:
        n = x.shape.as_list()[-1]
        end = length + step * (-(-n // step) - 1)  # of the last frame
        if end > n:
            x = pad(x, [[0, 0]] * last + [[0, end - n]], constant_values=pad_value)
        elif not length:  # a frame without elements would fit after the last element too
            x = x[..., : max(0, end)]
    frames = call(ops.frame, (x,), length=length, step=step)
    if at == last:
        return frames
    return transpose(frames, [*range(at), last, last + 1, *range(at, last)])


def overlap_and_add(signal: to.TensorInput, frame_step: to.IntInput, name: str | None = None) -> Tensor:
    """Sums overlapping frames [..., count, length], which begin `frame_step` elements apart, into a signal [..., n].

    Raises:
        ValueError: The signal has fewer than two axes.

    Example:
        tf.signal.overlap_and_add([[1.0, 2.0], [3.0, 4.0]], frame_step=1)
    """
    frames = convert_to_tensor(signal)
    if frames.ndim < 2:
        raise ValueError(f"Shape {frames.shape} must have rank at least 2")
    return call(ops.overlap_and_add, (frames,), step=to.whole(frame_step))


Window = Callable[..., Tensor]


# ------------------------------------------------------------------------------------------------ short-time transforms
def stft(
    signals: to.TensorInput,
    frame_length: to.IntInput,
    frame_step: to.IntInput,
    fft_length: to.IntInput | None = None,
    window_fn: Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The Fourier transforms [..., count, fft_length // 2 + 1] of the windowed frames of real signals [..., n].

    Args:
        signals: float32 or float64.
        frame_length: How many elements a frame has.
        frame_step: How many elements after a frame the next one begins.
        fft_length: To which the frames are filled with zeros; None: the next power of 2.
        window_fn: A function of a length and `dtype=` that returns a window; None: none.
        pad_end: Whether the last frames are filled with zeros, or left out.
        name: Accepted, without effect.

    Example:
        tf.signal.stft([1.0, 2.0, 3.0, 4.0], frame_length=4, frame_step=2)
    """
    length = to.whole(frame_length)
    frames = frame(signals, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return rfft(frames, [_transform_length(length, fft_length)])


def inverse_stft(
    stfts: to.TensorInput,
    frame_length: to.IntInput,
    frame_step: to.IntInput,
    fft_length: to.IntInput | None = None,
    window_fn: Window | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Sums the windowed frames of transforms [..., count, fft_length // 2 + 1] into signals [..., n].

    With the window of inverse_stft_window_fn it is the inverse of stft. The arguments are those of stft.

    Example:
        tf.signal.inverse_stft(tf.constant([[1.0 + 0j, 0.0, 0.0]]), frame_length=4, frame_step=2)
    """
    coefficients, length = convert_to_tensor(stfts), to.whole(frame_length)
    frames = irfft(coefficients, [_transform_length(length, fft_length)])
    n = frames.shape.as_list()[-1]
    if n > length:
        frames = frames[..., :length]
    elif n < length:
        frames = pad(frames, [[0, 0]] * (frames.ndim - 1) + [[0, length - n]])
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def _transform_length(length: int, fft_length: Any) -> int:
    if fft_length is not None:
        return to.whole(fft_length)
    return 2 ** math.ceil(math.log2(length)) if length > 0 else 0


def inverse_stft_window_fn(
    frame_step: to.IntInput, forward_window_fn: Window = hann_window, name: str | None = None
) -> Window:
    """A window function with which inverse_stft is the inverse of stft with `forward_window_fn` (Griffin, Lim 1984).

    Example:
        tf.signal.inverse_stft_window_fn(2)(4, dtype=tf.float32)
    """
    step = to.whole(frame_step)

    def window(frame_length: to.IntInput, dtype: to.DTypeInput) -> Tensor:
        length = to.whole(frame_length)
        forward = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = pad(forward * forward, [[0, overlaps * step - length]])
        total = call(ops.reduce_sum, (reshape(squares, [overlaps, step]),), axis=0)
        total = call(ops.tile, (total,), multiples=(overlaps,))[:length]
        return call(ops.div_no_nan, (forward, total))

    return window
