"""Fourier transforms over the last axes, and frames of signals: all of them linear maps."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.define import check_dtypes, sample
from teletape_engine.catalogue.families import composite, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, PublicFunction, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import real
from teletape_engine.ops.linalg.diagonal import stacked
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.pad import pad
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import COMPLEX, COMPLEX_OF, NUMERIC, REAL_OF, DType, Shape, Spec, shape_text

_VOLUME = 3  # axes of what TensorFlow transforms at most


def _check(op_type: str, x: Spec, rank: int, dtypes: Iterable[DType]) -> None:
    check_dtypes(op_type, (x,), frozenset(dtypes))
    if not 1 <= rank <= _VOLUME:
        raise InvalidArgumentError(f"rank must be in [1, {_VOLUME}], found {rank}")
    if x.ndim < rank:
        raise InvalidArgumentError(f"Input must have rank of at least {rank} but got: {shape_text(x.shape)}")
    if 0 in x.shape[x.ndim - rank :] and op_type not in ("FFT", "IFFT"):
        raise InvalidArgumentError(f"an axis to transform has length 0 in shape {shape_text(x.shape)}")


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _complex(*shape: int) -> Array:
    random = np.random.default_rng(len(shape))
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def _size(shape: Shape, rank: int) -> int:
    return max(1, math.prod(shape[len(shape) - rank :]))


# ---------------------------------------------------------------------------------------------------- complex numbers
def _dft_spec(x: Spec, *, rank: int, inverse: bool) -> Spec:
    _check("IFFT" if inverse else "FFT", x, rank, COMPLEX)
    return x


def _dft_vjp(ct: Operand, x_spec: Spec, rank: int, inverse: bool) -> Operand:
    back, size = ops.dft(ct, rank=rank, inverse=not inverse), _size(x_spec.shape, rank)
    return back * (1 / size) if inverse else back * float(size)


@linear(
    infer=_dft_spec,
    vjp=_dft_vjp,
    batch=stacked,
    samples=lambda: [
        sample(_complex(4)),
        sample(_complex(2, 3), inverse=True),
        sample(_complex(3, 2), rank=2),
        sample(_complex(2, 1, 3), rank=3, inverse=True),
        sample(_complex(2, 0)),
    ],
    workspace=lambda x, **_: 2 * x.nbytes,
    reach=Reach.LINES,
)
def dft(xp: ArrayModule, x: Array, *, rank: int = 1, inverse: bool = False) -> Array:
    """The discrete Fourier transform of complex numbers over the last `rank` axes; the `inverse` is divided by n."""
    if not x.size:
        return xp.zeros_like(x)
    transform = xp.fft.ifftn if inverse else xp.fft.fftn
    return transform(x, axes=_axes(rank)).astype(x.dtype, copy=False)


# ------------------------------------------------------------------------------------------------------- real numbers
def _real_dft_spec(x: Spec, *, rank: int) -> Spec:
    _check("RFFT", x, rank, COMPLEX_OF)
    return Spec.of((*x.shape[:-1], x.shape[-1] // 2 + 1), COMPLEX_OF[x.dtype])


def _resized(x: Operand, lengths: Shape) -> Operand:
    """x with the last axes cut off or filled with zeros to these lengths."""
    first = len(x.shape) - len(lengths)
    if any(n > length for n, length in zip(x.shape[first:], lengths, strict=True)):
        x = strided_slice(x, index=("...", *((None, length, None) for length in lengths)))
    if x.shape[first:] == tuple(lengths):
        return x
    missing = [(0, length - n) for n, length in zip(x.shape[first:], lengths, strict=True)]
    return pad(x, paddings=(*((0, 0),) * first, *missing))


def _real_dft_vjp(ct: Operand, x_spec: Spec, rank: int) -> Operand:
    # The real part of the transposed map: the sum over the coefficients that there are, which an inverse transform of
    # them and zeros computes, but for the division by the number of elements.
    filled = _resized(ct, (*ct.shape[-rank:-1], x_spec.shape[-1]))
    return real(ops.dft(filled, rank=rank, inverse=True)) * float(_size(x_spec.shape, rank))


@linear(
    infer=_real_dft_spec,
    vjp=_real_dft_vjp,
    batch=stacked,
    samples=[sample((4,)), sample((2, 5)), sample((3, 4), rank=2), sample((2, 2, 3), rank=3), sample((1,))],
    workspace=lambda x, **_: 4 * x.nbytes + 32 * x.size // max(1, x.shape[-1] if x.ndim else 1),
    reach=Reach.LINES,
)
def real_dft(xp: ArrayModule, x: Array, *, rank: int = 1) -> Array:
    """The Fourier transform of real numbers over the last `rank` axes, of the last axis the first n // 2 + 1."""
    return xp.fft.rfftn(x, axes=_axes(rank)).astype(COMPLEX_OF[x.dtype], copy=False)


def _real_inverse_spec(x: Spec, *, length: int, rank: int) -> Spec:
    _check("IRFFT", x, rank, COMPLEX)
    if length < 1 or x.shape[-1] != length // 2 + 1:
        raise InvalidArgumentError(
            f"a result of length {length} has {length // 2 + 1} coefficients, found shape {shape_text(x.shape)}"
        )
    return Spec.of((*x.shape[:-1], length), REAL_OF[x.dtype])


def _real_inverse_vjp(ct: Operand, rank: int, length: int) -> Operand:
    # Each coefficient but the first, and the last of an even length, stands for two that are conjugate.
    spectrum = ops.real_dft(ct, rank=rank) * (1 / _size(ct.shape, rank))
    inner = (length + 1) // 2

    def part(start: int, stop: int | None) -> Operand:
        return strided_slice(spectrum, index=("...", (start, stop, None)))

    doubled = [part(0, 1), part(1, inner) * 2.0, part(inner, None)]
    return concat(*[each for each in doubled if each.shape[-1]], axis=-1)


@linear(
    infer=_real_inverse_spec,
    vjp=_real_inverse_vjp,
    batch=stacked,
    samples=lambda: [
        sample(_complex(3), length=4),
        sample(_complex(2, 3), length=5),
        sample(_complex(3, 2), length=3, rank=2),
        sample(_complex(1), length=1),
    ],
    workspace=lambda x, **_: 4 * x.nbytes,
    reach=Reach.LINES,
)
def inverse_real_dft(xp: ArrayModule, x: Array, *, length: int, rank: int = 1) -> Array:
    """The inverse of real_dft: real numbers, `length` of them along the last axis."""
    lengths = (*x.shape[x.ndim - rank : -1], length)
    return xp.fft.irfftn(x, s=lengths, axes=_axes(rank)).astype(REAL_OF[x.dtype], copy=False)


# ----------------------------------------------------------------------------------------------- TensorFlow's functions
def _transform(name: str) -> tuple[PublicFunction]:
    """TensorFlow's function of complex numbers; real ones become complex unless they are tensors."""
    return (function(name, Conversion.COMPLEX("input")),)


@composite(samples=lambda: [sample(_complex(2, 3))], op_type="FFT", args="input", tf=_transform("signal.fft"))
def fft(x: Operand) -> Operand:
    """The discrete Fourier transform of complex numbers over the last axis."""
    return dft(x)


@composite(samples=lambda: [sample(_complex(2, 3))], op_type="IFFT", args="input", tf=_transform("signal.ifft"))
def ifft(x: Operand) -> Operand:
    """The inverse of fft."""
    return dft(x, inverse=True)


@composite(samples=lambda: [sample(_complex(2, 3))], op_type="FFT2D", args="input", tf=_transform("signal.fft2d"))
def fft2d(x: Operand) -> Operand:
    """The discrete Fourier transform of complex numbers over the last two axes."""
    return dft(x, rank=2)


@composite(samples=lambda: [sample(_complex(2, 3))], op_type="IFFT2D", args="input", tf=_transform("signal.ifft2d"))
def ifft2d(x: Operand) -> Operand:
    """The inverse of fft2d."""
    return dft(x, rank=2, inverse=True)


@composite(samples=lambda: [sample(_complex(2, 2, 2))], op_type="FFT3D", args="input", tf=_transform("signal.fft3d"))
def fft3d(x: Operand) -> Operand:
    """The discrete Fourier transform of complex numbers over the last three axes."""
    return dft(x, rank=3)


@composite(samples=lambda: [sample(_complex(2, 2, 2))], op_type="IFFT3D", args="input", tf=_transform("signal.ifft3d"))
def ifft3d(x: Operand) -> Operand:
    """The inverse of fft3d."""
    return dft(x, rank=3, inverse=True)


@composite(
    samples=[sample((2, 4), fft_length=(6,)), sample((4,), fft_length=(3,)), sample((3, 4), fft_length=(2, 5))],
    tf=(by_hand("signal.rfft signal.rfft2d signal.rfft3d", "the lengths are by default those of the axes"),),
)
def rfft(x: Operand, *, fft_length: Shape) -> Operand:
    """real_dft over the last axes, cut off or filled with zeros to `fft_length`, a length for each axis."""
    _check_lengths(x, fft_length)
    return real_dft(_resized(x, fft_length), rank=len(fft_length))


@composite(
    samples=lambda: [
        sample(_complex(2, 3), fft_length=(6,)),
        sample(_complex(4), fft_length=(3,)),
        sample(_complex(3, 3), fft_length=(2, 5)),
    ],
    tf=(by_hand("signal.irfft signal.irfft2d signal.irfft3d", "the lengths are by default those of the axes"),),
)
def irfft(x: Operand, *, fft_length: Shape) -> Operand:
    """The inverse of rfft: coefficients that are missing are zeros, and those too many are cut off."""
    _check_lengths(x, fft_length)
    coefficients = _resized(x, (*fft_length[:-1], fft_length[-1] // 2 + 1))
    return inverse_real_dft(coefficients, length=fft_length[-1], rank=len(fft_length))


def _check_lengths(x: Operand, lengths: Shape) -> None:
    if not 1 <= len(lengths) <= min(_VOLUME, len(x.shape)) or 0 in lengths:
        raise InvalidArgumentError(
            f"fft_length must have a length above 0 for each axis to transform, found {shape_text(lengths)} for shape "
            f"{shape_text(x.shape)}"
        )


# ------------------------------------------------------------------------------------------------------------- frames
def _frame_spec(x: Spec, *, length: int, step: int) -> Spec:
    if not x.ndim:
        raise InvalidArgumentError("the signal must have at least one axis, found none")
    if length < 0 or step < 1:
        raise InvalidArgumentError(
            f"the length of frames must be at least 0 and their step at least 1, found {length} and {step}"
        )
    return x.with_shape((*x.shape[:-1], _count(x.shape, length, step), length))


def _count(shape: Shape, length: int, step: int) -> int:
    """The number of frames that fit."""
    return max(0, 1 + (shape[-1] - length) // step)


def _frame_vjp(ct: Operand, x_spec: Spec, step: int) -> Operand:
    return _resized(ops.overlap_and_add(ct, step=step), x_spec.shape[-1:])


@linear(
    infer=_frame_spec,
    vjp=_frame_vjp,
    batch=stacked,
    samples=[
        sample((7,), length=3, step=2),
        sample((2, 6), length=1, step=2),
        sample((2,), length=3, step=1),
        sample((5,), length=0, step=2),
    ],
    workspace=lambda x, length, step: 16 * (_count(x.shape, length, step) + 1) * (length + 1),
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def frame(xp: ArrayModule, x: Array, *, length: int, step: int) -> Array:
    """The frames [..., count, length] of signals [..., n] that begin at every `step`-th element and fit."""
    count = _count(x.shape, length, step)
    places = xp.arange(count)[:, None] * step + xp.arange(length)[None, :]
    return x[..., places]


def _overlap_spec(x: Spec, *, step: int) -> Spec:
    check_dtypes("OverlapAndAdd", (x,), NUMERIC)
    if x.ndim < 2:
        raise InvalidArgumentError(f"frames [..., count, length] are needed, found shape {shape_text(x.shape)}")
    if step < 1:
        raise InvalidArgumentError(f"the step of frames must be at least 1, found {step}")
    count, length = x.shape[-2:]
    return x.with_shape((*x.shape[:-2], (count - 1) * step + length if count else 0))


def _overlap_vjp(ct: Operand, x_spec: Spec, step: int) -> Operand:
    # A frame without elements would fit once more than there were frames.
    return _resized(ops.frame(ct, length=x_spec.shape[-1], step=step), x_spec.shape[-2:])


@linear(
    infer=_overlap_spec,
    vjp=_overlap_vjp,
    batch=stacked,
    samples=[
        sample((3, 4), step=2),
        sample((2, 2, 3), step=2),
        sample((2, 2), step=3),
        sample((0, 2), step=1),
        sample((3, 0), step=2),
    ],
    tf=(by_hand("signal.overlap_and_add", "fewer than two axes are a ValueError"),),
    workspace=lambda x, step: x.nbytes,
    reach=Reach.SUMS,
)
def overlap_and_add(xp: ArrayModule, x: Array, *, step: int) -> Array:
    """The sum [..., n] of frames [..., count, length] that begin at every `step`-th element: the transpose of frame."""
    count, length = x.shape[-2:]
    out = xp.zeros((*x.shape[:-2], (count - 1) * step + length if count else 0), x.dtype)
    for i in range(count):
        out[..., i * step : i * step + length] += x[..., i, :]
    return out
