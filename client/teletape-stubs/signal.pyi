"""What `tf.signal` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape._generated.fourier import fft as fft
from teletape._generated.fourier import fft2d as fft2d
from teletape._generated.fourier import fft3d as fft3d
from teletape._generated.fourier import ifft as ifft
from teletape._generated.fourier import ifft2d as ifft2d
from teletape._generated.fourier import ifft3d as ifft3d
from teletape.tf.ops.signal.short_time import fftshift as fftshift
from teletape.tf.ops.signal.short_time import frame as frame
from teletape.tf.ops.signal.short_time import ifftshift as ifftshift
from teletape.tf.ops.signal.short_time import inverse_stft as inverse_stft
from teletape.tf.ops.signal.short_time import inverse_stft_window_fn as inverse_stft_window_fn
from teletape.tf.ops.signal.short_time import irfft as irfft
from teletape.tf.ops.signal.short_time import irfft2d as irfft2d
from teletape.tf.ops.signal.short_time import irfft3d as irfft3d
from teletape.tf.ops.signal.short_time import overlap_and_add as overlap_and_add
from teletape.tf.ops.signal.short_time import rfft as rfft
from teletape.tf.ops.signal.short_time import rfft2d as rfft2d
from teletape.tf.ops.signal.short_time import rfft3d as rfft3d
from teletape.tf.ops.signal.short_time import stft as stft
from teletape.tf.ops.signal.spectral import dct as dct
from teletape.tf.ops.signal.spectral import fftnd as fftnd
from teletape.tf.ops.signal.spectral import idct as idct
from teletape.tf.ops.signal.spectral import ifftnd as ifftnd
from teletape.tf.ops.signal.spectral import inverse_mdct as inverse_mdct
from teletape.tf.ops.signal.spectral import irfftnd as irfftnd
from teletape.tf.ops.signal.spectral import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from teletape.tf.ops.signal.spectral import mdct as mdct
from teletape.tf.ops.signal.spectral import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from teletape.tf.ops.signal.spectral import rfftnd as rfftnd
from teletape.tf.ops.signal.windows import hamming_window as hamming_window
from teletape.tf.ops.signal.windows import hann_window as hann_window
from teletape.tf.ops.signal.windows import kaiser_bessel_derived_window as kaiser_bessel_derived_window
from teletape.tf.ops.signal.windows import kaiser_window as kaiser_window
from teletape.tf.ops.signal.windows import vorbis_window as vorbis_window

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftnd",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftnd",
    "ifftshift",
    "inverse_mdct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "irfftnd",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "linear_to_mel_weight_matrix",
    "mdct",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "rfftnd",
    "stft",
    "vorbis_window",
]
