"""`tf.signal`: cosine transforms, also of overlapping frames, mel frequencies, Fourier transforms over any axes.

By hand: they are Fourier transforms and products with constants that depend on lengths and options. A cosine transform
of n numbers is a Fourier transform of 2 n (Makhoul 1980); it has the derivatives that follow.
Long because ten transforms document their arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape._generated.shapes.rearrange import reverse
from teletape._generated.shapes.shape import transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.arrays.rearrange import concat, split
from teletape.tf.ops.signal.short_time import Window, frame, overlap_and_add
from teletape.tf.ops.signal.windows import vorbis_window
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}  #: The type of the inverse, by the type of a cosine transform.
_MEL_BREAK, _MEL_Q = 700.0, 1127.0  #: Hertz, and mel for each factor of e: the scale of HTK (O'Shaughnessy 1987).


# -------------------------------------------------------------------------------------------------- cosine transforms
def dct(
    input: to.TensorInput,
    type: to.IntInput = 2,
    n: to.IntInput | None = None,
    axis: to.IntInput = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of real numbers over the last axis, of type 1, 2, 3 or 4.

    Args:
        input: float32 or float64 [..., samples].
        type: The type of the transform; the inverse of 2 is 3, times 1 / (2 samples).
        n: The input is cut off or filled with zeros to this length; None: its own.
        axis: -1, as in TensorFlow.
        norm: None, or "ortho" for an orthonormal transform (not of type 1).
        name: Accepted, without effect.

    Raises:
        ValueError: Another type or `norm`; `n` below 1; type 1 of fewer than two numbers.
        TypeError: Another dtype.
        NotImplementedError: Another axis.

    Example:
        tf.signal.dct([1.0, 2.0, 3.0])
    """
    return _dct(convert_to_tensor(input), to.whole(type), None if n is None else to.whole(n), to.whole(axis), norm)


def idct(
    input: to.TensorInput,
    type: to.IntInput = 2,
    n: to.IntInput | None = None,
    axis: to.IntInput = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of dct of that type, without its factor 1 / (2 n); exact with "ortho". Arguments as for dct.

    Example:
        tf.signal.idct([1.0, 2.0, 3.0], norm="ortho")
    """
    kind = to.whole(type)
    x = convert_to_tensor(input)
    return _dct(x, _INVERSE.get(kind, kind), None if n is None else to.whole(n), to.whole(axis), norm)


def _dct(x: Tensor, kind: int, n: int | None, axis: int, norm: str | None) -> Tensor:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if kind not in _INVERSE:
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"a cosine transform takes tf.float32 or tf.float64, got: {x.dtype.name}")
    if n is not None:
        x = _fitted(x, n, x.ndim - 1)
    length = x.shape.as_list()[-1]
    if kind == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if length < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
        return call(ops.real, (_rfft(concat([x, x[..., -2:0:-1]], -1), 2 * length - 2),))
    if kind == 3:
        return _dct_3(x, length, norm)
    if kind == 4:
        transformed = _dct_2(x, 2 * length)[..., 1::2]
        return transformed * math.sqrt(0.5 / length) if norm == "ortho" else transformed
    transformed = _dct_2(x, length)
    if norm == "ortho":
        transformed *= _first_and_others(x, length, 0.5 / math.sqrt(length), math.sqrt(0.5 / length))
    return transformed


def _dct_2(x: Tensor, length: int) -> Tensor:
    """The transform of type 2, of numbers that are filled with zeros to this length."""
    coefficients = _rfft(x, 2 * length)[..., :length]
    angles = np.arange(length) * (np.pi / (2 * length))
    cosines, sines = (constant((2 * wave(angles)).astype(x.dtype.np)) for wave in (np.cos, np.sin))
    return call(ops.real, (coefficients,)) * cosines + call(ops.imag, (coefficients,)) * sines


def _dct_3(x: Tensor, length: int, norm: str | None) -> Tensor:
    if norm == "ortho":
        x = x * _first_and_others(x, length, math.sqrt(length), math.sqrt(length / 2))
    else:
        x = x * float(length)
    angles = np.arange(length) * (np.pi / (2 * length))
    cosines, sines = (constant((2 * wave(angles)).astype(x.dtype.np)) for wave in (np.cos, np.sin))
    coefficients = call(ops.complex, (x * cosines, x * sines))
    return call(ops.irfft, (coefficients,), fft_length=(2 * length,))[..., :length]


def _first_and_others(x: Tensor, length: int, first: float, others: float) -> Tensor:
    weights = np.full(length, others, x.dtype.np)
    weights[:1] = first
    return constant(weights)


def _rfft(x: Tensor, length: int) -> Tensor:
    return call(ops.rfft, (x,), fft_length=(length,))


# ----------------------------------------------------------------------------------------- modified cosine transforms
def mdct(
    signals: to.TensorInput,
    frame_length: to.IntInput,
    window_fn: Window | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The modified cosine transforms [..., count, frame_length / 2] of half overlapping frames of signals [..., n].

    Args:
        signals: float32 or float64.
        frame_length: A multiple of 4.
        window_fn: A function of a length and `dtype=` that returns a window; None: a constant one, 1 / √2.
        pad_end: Whether the last frames are filled with zeros, or left out.
        norm: As of dct.
        name: Accepted, without effect.

    Raises:
        ValueError: A length that is no multiple of 4; another `norm`.

    Example:
        tf.signal.mdct([1.0, 2.0, 3.0, 4.0], frame_length=4)
    """
    length = to.whole(frame_length)
    if length % 4:
        raise ValueError("The frame length must be a multiple of 4.")
    frames = _windowed(frame(signals, length, length // 2, pad_end=pad_end), window_fn, length)
    a, b, c, d = split(frames, 4, axis=-1)
    return dct(concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], -1), type=4, norm=norm)


def inverse_mdct(
    mdcts: to.TensorInput,
    window_fn: Window | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The signals [..., samples] whose modified cosine transforms are [..., count, frame_length / 2].

    It is the inverse of mdct but for the first and last half frame, if the squares of the window's halves add up to 1.
    The arguments are those of mdct.

    Example:
        tf.signal.inverse_mdct([[1.0, 0.0]])
    """
    coefficients = convert_to_tensor(mdcts)
    half = coefficients.shape.as_list()[-1]
    halves = dct(coefficients, type=4, norm=norm)
    if norm is None:
        halves *= 0.5 / half
    first, second = split(halves, 2, axis=-1)
    frames = concat([second, -reverse(second, [-1]), -reverse(first, [-1]), -first], -1)
    return overlap_and_add(_windowed(frames, window_fn, 2 * half), half)


def _windowed(frames: Tensor, window_fn: Window | None, length: int) -> Tensor:
    return frames * (math.sqrt(0.5) if window_fn is None else window_fn(length, dtype=frames.dtype))


# --------------------------------------------------------------------------------------------------- mel frequencies
def linear_to_mel_weight_matrix(
    num_mel_bins: to.IntInput = 20,
    num_spectrogram_bins: to.IntInput = 129,
    sample_rate: to.NumberInput = 8000,
    lower_edge_hertz: to.NumberInput = 125.0,
    upper_edge_hertz: to.NumberInput = 3800.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix [num_spectrogram_bins, num_mel_bins] that converts spectrograms to mel bands by a product.

    Args:
        num_mel_bins: The number of triangular bands, equally wide in mel.
        num_spectrogram_bins: The number of frequencies of a spectrogram, from 0 to half of the sample rate.
        sample_rate: Samples in a second.
        lower_edge_hertz: The lower edge of the lowest band.
        upper_edge_hertz: The upper edge of the highest band, at most half of the sample rate.
        dtype: Floating.
        name: Accepted, without effect.

    Raises:
        ValueError: A number outside its range, or another dtype.

    Example:
        tf.signal.linear_to_mel_weight_matrix(num_mel_bins=2, num_spectrogram_bins=5)
    """
    bands, bins, rate = to.whole(num_mel_bins), to.whole(num_spectrogram_bins), to.real_number(sample_rate)
    lower, upper, wanted = to.real_number(lower_edge_hertz), to.real_number(upper_edge_hertz), dtypes.as_dtype(dtype)
    if bands <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {bands}")
    if lower < 0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower}")
    if lower >= upper:
        raise ValueError(f"lower_edge_hertz {lower:.1f} >= upper_edge_hertz {upper:.1f}")
    if rate <= 0:
        raise ValueError(f"sample_rate must be positive. Got: {rate}")
    if upper > rate / 2:
        raise ValueError(
            f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got {upper} for "
            f"sample_rate: {rate}"
        )
    if not wanted.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {wanted}")
    frequencies = _mel(np.linspace(0, rate / 2, bins))[1:, None]  # HTK leaves the constant part out
    edges = np.linspace(_mel(lower), _mel(upper), bands + 2)
    left, center, right = edges[:-2], edges[1:-1], edges[2:]
    slopes = np.minimum((frequencies - left) / (center - left), (right - frequencies) / (right - center))
    return constant(np.pad(np.maximum(0, slopes), [[1, 0], [0, 0]]).astype(wanted.np))


def _mel(hertz: Any) -> Any:
    return _MEL_Q * np.log1p(hertz / _MEL_BREAK)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: to.TensorInput, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients [..., bands] of log mel spectrograms, as in HTK.

    Raises:
        ValueError: There are no bands.
        InvalidArgumentError: A scalar.

    Example:
        tf.signal.mfccs_from_log_mel_spectrograms([[1.0, 2.0, 3.0]])
    """
    spectrograms = convert_to_tensor(log_mel_spectrograms)
    if not spectrograms.ndim:
        raise InvalidArgumentError("spectrograms [..., bands] are needed, found a scalar")
    bands = spectrograms.shape.as_list()[-1]
    if not bands:
        raise ValueError(f"num_mel_bins must be positive. Got: {spectrograms!r}")
    return dct(spectrograms) * math.sqrt(0.5 / bands)


# --------------------------------------------------------------------------------------------- transforms of any axes
def fftnd(
    input_tensor: to.TensorInput,
    fft_length: to.IntsInput | None = None,
    axes: to.IntsInput | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The Fourier transform over any axes of complex numbers.

    Args:
        input_tensor: complex64 or complex128.
        fft_length: A length for each of the axes, to which the input is cut off or filled with zeros; None: its own.
        axes: The axes of the transform; None: all.
        norm: "backward" or None: the inverse is divided by the number of elements; "forward": this transform is;
            "ortho": each is divided by the number's root.
        name: Accepted, without effect.

    Raises:
        ValueError: Another `norm`; an axis out of range, or twice; another count of lengths than of axes.

    Example:
        tf.signal.fftnd(tf.constant([[1.0 + 0j, 2.0], [3.0, 4.0]]), axes=[0, 1])
    """
    x = convert_to_tensor(input_tensor)
    return _along_axes(x, *_axes_and_lengths(x, axes, fft_length), ops.fft, _factor(norm, inverse=False))


def ifftnd(
    input_tensor: to.TensorInput,
    fft_length: to.IntsInput | None = None,
    axes: to.IntsInput | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of fftnd, with the same arguments.

    Example:
        tf.signal.ifftnd(tf.constant([[10.0 + 0j, -2.0], [-4.0, 0.0]]), axes=[0, 1])
    """
    x = convert_to_tensor(input_tensor)
    return _along_axes(x, *_axes_and_lengths(x, axes, fft_length), ops.ifft, _factor(norm, inverse=True))


def rfftnd(
    input_tensor: to.TensorInput,
    fft_length: to.IntsInput | None = None,
    axes: to.IntsInput | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Like fftnd, of real numbers: along the last of the axes n // 2 + 1 coefficients, from which the others follow.

    Example:
        tf.signal.rfftnd([[1.0, 2.0], [3.0, 4.0]], axes=[0, 1])
    """
    x, factor = convert_to_tensor(input_tensor), _factor(norm, inverse=False)
    places, lengths = _axes_and_lengths(x, axes, fft_length)
    *others, last = places
    *other_lengths, length = lengths
    x = _moved(x, last, lambda rows: call(ops.rfft, (rows,), fft_length=(length,)) * factor(length))
    return _along_axes(x, others, other_lengths, ops.fft, factor)


def irfftnd(
    input_tensor: to.TensorInput,
    fft_length: to.IntsInput | None = None,
    axes: to.IntsInput | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of rfftnd: real numbers. The last length is even by default. Arguments as for rfftnd.

    Example:
        tf.signal.irfftnd(tf.constant([[10.0 + 0j, -2.0], [-4.0, 0.0]]), axes=[0, 1])
    """
    x, factor = convert_to_tensor(input_tensor), _factor(norm, inverse=True)
    places, lengths = _axes_and_lengths(x, axes, fft_length)
    *others, last = places
    *other_lengths, length = lengths
    if fft_length is None:
        length = max(0, 2 * (length - 1))
    x = _along_axes(x, others, other_lengths, ops.ifft, factor)
    return _moved(x, last, lambda rows: call(ops.irfft, (rows,), fft_length=(length,)) * factor(length))


def _along_axes(x: Tensor, axes: Any, lengths: Any, transform: Any, factor: Any) -> Tensor:
    for axis, length in zip(axes, lengths, strict=True):
        x = _moved(_fitted(x, length, axis), axis, lambda rows: call(transform, (rows,)))
        x = x * factor(length)
    return x


def _axes_and_lengths(x: Tensor, axes: Any, fft_length: Any) -> tuple[list[int], list[int]]:
    places = list(range(x.ndim)) if axes is None else list(to.ints(axes, "axes"))
    if any(not -x.ndim <= axis < x.ndim for axis in places):
        raise ValueError(f"axes {places} are out of range for a tensor of {x.ndim} axes")
    places = [axis % x.ndim for axis in places]
    if len(set(places)) != len(places) or not places:
        raise ValueError(f"axes: at least one, and each once; found {places}")
    own = x.shape.as_list()
    lengths = [own[axis] for axis in places] if fft_length is None else list(to.ints(fft_length, "fft_length"))
    if len(lengths) != len(places):
        raise ValueError(f"fft_length: a length for each of the {len(places)} axes, found {len(lengths)}")
    return places, lengths


def _factor(norm: str | None, *, inverse: bool) -> Any:
    """Returns a function from a length to the transform's factor; the engine's inverse divides by the length."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise ValueError(f"norm must be 'backward', 'forward', 'ortho' or None, found {norm!r}")
    if norm == "ortho":
        return (lambda length: math.sqrt(length)) if inverse else (lambda length: 1 / math.sqrt(length))
    if norm == "forward":
        return (lambda length: float(length)) if inverse else (lambda length: 1 / length)
    return lambda length: 1.0


def _moved(x: Tensor, axis: int, function: Any) -> Tensor:
    """Applies a function of the last axis along another one."""
    last = x.ndim - 1
    if axis == last:
        return function(x)  # type: ignore[no-any-return]  # a tensor
    exchanged = [*range(axis), last, *range(axis + 1, last), axis]
    return transpose(function(transpose(x, exchanged)), exchanged)


def _fitted(x: Tensor, length: int, axis: int) -> Tensor:
    """The tensor, cut off or filled with zeros to a length along an axis."""
    own = x.shape.as_list()[axis]
    if own == length:
        return x
    if own > length:
        return x[(*[slice(None)] * axis, slice(0, length))]
    borders = [[0, 0] for _ in range(x.ndim)]
    borders[axis][1] = length - own
    return pad(x, borders)
