"""Functions of tf.signal in the forms that programs call them in, and signal processing with gradients."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def numbers(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@program()
def transforms_of_lists_and_arrays(tf, np):
    return [
        tf.signal.fft([1.0, 2.0, 3.0]),
        tf.signal.fft([1, 2, 3]),
        tf.signal.fft(np.array([1.0, 2.0, 3.0])),
        tf.signal.ifft(np.array([1, 2, 3])),
        tf.signal.ifft2d(np.array([[1 + 1j, 2.0], [3.0, 4.0]])),
        tf.signal.fft3d(numbers(np, 2, 2, 2)),
        tf.signal.irfft(np.array([1.0, 2.0])),
        tf.function(lambda: tf.signal.fft(np.array([1.0, 2.0, 3.0])))(),
        raises(lambda: tf.signal.fft(tf.constant([1.0, 2.0]))),
        raises(lambda: tf.signal.irfft(tf.constant([1.0, 2.0])), "IRFFT requires"),
        raises(lambda: tf.signal.inverse_stft(tf.ones([3, 3]), 4, 2), "IRFFT requires"),
        raises(lambda: tf.signal.dct(tf.constant([1, 2, 3]))),
    ]


@program()
def windows_with_a_gradient_by_their_shape(tf, np):
    def weighted(beta):
        return tf.reduce_sum(tf.signal.kaiser_window(6, beta) * tf.range(6.0))

    def derived(beta):
        return tf.signal.kaiser_bessel_derived_window(8, beta)

    lengths = [tf.signal.kaiser_window(n, 5.0, tf.float64) for n in (1, 2, 3, 8)]
    return [derivatives(tf, weighted, 3.0), gradients(tf, derived, 4.0), lengths]


@program()
def shifts_of_axes_that_there_are_not(tf, np):
    x = tf.constant(numbers(np, 4, 5))
    return [
        tf.signal.fftshift(x, -1),
        tf.signal.ifftshift(x, axes=[0, 1]),
        raises(lambda: tf.signal.fftshift(x, 5)),
        raises(lambda: tf.signal.mfccs_from_log_mel_spectrograms(tf.constant(1.0))),
    ]


@program()
def convolution_by_spectra(tf, np):
    def convolved(x, kernel):
        product = tf.signal.rfft(x, [24]) * tf.signal.rfft(kernel, [24])
        return tf.signal.irfft(product, [24])

    return derivatives(tf, convolved, numbers(np, 2, 16), numbers(np, 2, 9))


@program()
def the_envelope_of_a_signal(tf, np):
    ones_sided = np.zeros(16)
    ones_sided[[0, 8]], ones_sided[1:8] = 1.0, 2.0

    def envelope(x):
        return tf.abs(tf.signal.ifft(tf.signal.fft(tf.cast(x, tf.complex128)) * ones_sided))

    return gradients(tf, envelope, numbers(np, 2, 16))


@program()
def a_layer_of_spectral_weights(tf, np):
    def layer(x, real, imaginary):
        spectrum = tf.signal.rfft(tf.transpose(x, [0, 2, 1]))[..., :3]
        mixed = tf.einsum("bim,iom->bom", spectrum, tf.complex(real, imaginary))
        return tf.signal.irfft(tf.pad(mixed, [[0, 0], [0, 0], [0, 2]]), [8])

    return derivatives(tf, layer, numbers(np, 2, 8, 2), numbers(np, 2, 3, 3), numbers(np, 2, 3, 3) / 2)


@program()
def images_compressed_by_cosines(tf, np):
    matrix = tf.constant(np.triu(np.ones((4, 4)))[::-1].copy())

    def compressed(x):
        rows = tf.signal.dct(x, norm="ortho")
        both = tf.transpose(tf.signal.dct(tf.transpose(rows, [0, 2, 1]), norm="ortho"), [0, 2, 1])
        return tf.signal.idct(both * matrix, norm="ortho")

    x = tf.constant(numbers(np, 2, 4, 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compressed(x)
    return [derivatives(tf, compressed, numbers(np, 2, 4, 4)), tape.batch_jacobian(y, x)]


@program()
def cepstral_features_of_a_sound(tf, np):
    bands = tf.signal.linear_to_mel_weight_matrix(8, 17, 8000, 80.0, 3800.0, tf.float64)

    def features(x):
        magnitudes = tf.abs(tf.signal.stft(x, 32, 16, 32))
        logarithms = tf.math.log(tf.tensordot(magnitudes, bands, 1) + 1e-6)
        return tf.signal.mfccs_from_log_mel_spectrograms(logarithms)[..., :5]

    return gradients(tf, features, numbers(np, 1, 100))
