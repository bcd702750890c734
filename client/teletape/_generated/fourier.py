"""TensorFlow's functions of teletape_engine.ops.fourier.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_FFT = ops.fft
_IFFT = ops.ifft
_FFT2D = ops.fft2d
_IFFT2D = ops.ifft2d
_FFT3D = ops.fft3d
_IFFT3D = ops.ifft3d


def fft(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of complex numbers over the last axis."""
    try:
        input = to.complex_tensor(input)
        return call(_FFT, (input,))
    except BaseException as error:
        report(error)
        raise


def ifft(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The inverse of fft."""
    try:
        input = to.complex_tensor(input)
        return call(_IFFT, (input,))
    except BaseException as error:
        report(error)
        raise


def fft2d(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of complex numbers over the last two axes."""
    try:
        input = to.complex_tensor(input)
        return call(_FFT2D, (input,))
    except BaseException as error:
        report(error)
        raise


def ifft2d(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The inverse of fft2d."""
    try:
        input = to.complex_tensor(input)
        return call(_IFFT2D, (input,))
    except BaseException as error:
        report(error)
        raise


def fft3d(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of complex numbers over the last three axes."""
    try:
        input = to.complex_tensor(input)
        return call(_FFT3D, (input,))
    except BaseException as error:
        report(error)
        raise


def ifft3d(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The inverse of fft3d."""
    try:
        input = to.complex_tensor(input)
        return call(_IFFT3D, (input,))
    except BaseException as error:
        report(error)
        raise
