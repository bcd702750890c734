"""Fourier transforms and their gradients, frames, short-time transforms there and back, windows."""

from conformance.probes import raises
from conformance.program import program

SIGNAL = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75]
IMAGE = [[0.5, -1.0, 2.0, 0.25], [1.5, -0.75, 0.1, -2.0]]


def loss(tf, y):
    """A number that depends on each element in another way."""
    if y.dtype.is_complex:
        y = tf.math.real(y) + 2.0 * tf.math.imag(y)
    return tf.reduce_sum(tf.sin(y))


def with_gradient(tf, f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        total = loss(tf, y)
    return [y, tape.gradient(total, x)]


@program(rtol=1e-4, atol=1e-5)
def complex_transforms(tf, np):
    line = np.array(SIGNAL, "complex64") * (1 + 0.5j)
    image = np.array(IMAGE, "complex128") * (1 - 0.25j)
    volume = np.arange(12).reshape(2, 3, 2) * (0.1 + 0.2j)
    return [
        [with_gradient(tf, f, line) for f in (tf.signal.fft, tf.signal.ifft)],
        [with_gradient(tf, f, image) for f in (tf.signal.fft, tf.signal.fft2d, tf.signal.ifft2d)],
        [with_gradient(tf, f, volume) for f in (tf.signal.fft3d, tf.signal.ifft3d)],
        raises(lambda: tf.signal.fft(tf.constant(SIGNAL))),
    ]


@program(rtol=1e-4, atol=1e-5)
def real_transforms(tf, np):
    x = tf.constant(SIGNAL)
    half = tf.constant(np.array([1 + 2j, 0.5 - 1j, -0.25 + 0j, 2j], "complex64"))
    return [
        with_gradient(tf, tf.signal.rfft, SIGNAL),
        tf.signal.rfft(x, [5]),  # its gradient has a shape that does not fit
        with_gradient(tf, lambda x: tf.signal.rfft(x, [8]), np.array(SIGNAL)),
        with_gradient(tf, tf.signal.rfft2d, IMAGE),
        with_gradient(tf, tf.signal.irfft, half),
        with_gradient(tf, lambda x: tf.signal.irfft(x, [7]), half),
        tf.signal.irfft(half, [4]),
        with_gradient(tf, lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x) * 2.0), IMAGE),
        tf.signal.rfft3d(tf.reshape(x, [1, 2, 3])),
        raises(lambda: tf.signal.rfft(tf.constant([1, 2]))),
    ]


@program()
def frames(tf, np):
    x = tf.constant(SIGNAL)
    return [
        with_gradient(tf, lambda x: tf.signal.frame(x, 3, 2), SIGNAL),
        with_gradient(tf, lambda x: tf.signal.frame(x, 4, 3, pad_end=True), SIGNAL),
        tf.signal.frame(x, 4, 3, pad_end=True, pad_value=9.0),
        tf.signal.frame(tf.constant(IMAGE), 2, 1, axis=0),
        with_gradient(tf, lambda x: tf.signal.overlap_and_add(x, 2), IMAGE),
        raises(lambda: tf.signal.overlap_and_add(x, 2)),
        tf.signal.fftshift(x),
        tf.signal.ifftshift(tf.constant(IMAGE), axes=[1]),
        tf.signal.fftshift(tf.constant(IMAGE)),
    ]


@program(rtol=1e-4, atol=1e-5)
def short_time_transforms(tf, np):
    wave = tf.sin(tf.range(24, dtype=tf.float32))
    window = tf.signal.inverse_stft_window_fn(2)
    there = tf.signal.stft(wave, 4, 2)
    back = tf.signal.inverse_stft(there, 4, 2, window_fn=window)
    return [
        there,
        back,
        with_gradient(tf, lambda x: tf.signal.stft(x, 4, 2, fft_length=8, pad_end=True), SIGNAL),
        with_gradient(tf, lambda x: tf.signal.stft(x, 3, 1, window_fn=None), SIGNAL),
        window(4, dtype=tf.float32),
    ]


@program(rtol=1e-4, atol=1e-5)
def windows(tf, np):
    return [
        [tf.signal.hann_window(n) for n in (1, 4, 5)],
        tf.signal.hann_window(4, periodic=False, dtype=tf.float64),
        tf.signal.hamming_window(5),
        tf.signal.kaiser_window(5, beta=4.0),
        tf.signal.kaiser_bessel_derived_window(6, beta=4.0),
        tf.signal.vorbis_window(6),
        raises(lambda: tf.signal.hann_window(4, dtype=tf.int32)),
    ]
