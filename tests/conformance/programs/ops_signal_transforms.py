"""Cosine transforms of every type, of overlapping frames, mel frequencies and what programs of audio make of them."""

from conformance.probes import derivatives, raises
from conformance.program import program


def signal(tf, *shape):
    """Numbers that no transform makes small, the same on every machine: float64."""
    count = 1
    for length in shape:
        count *= length
    return tf.reshape(tf.cast(tf.range(count) * 37 % 11, tf.float64) / 8 - 0.5, shape)


@program()
def cosine_transforms_of_every_type(tf, np):
    x = signal(tf, 2, 6)
    return {kind: [tf.signal.dct(x, kind), tf.signal.idct(x, kind)] for kind in (1, 2, 3, 4)}


@program()
def orthonormal_cosine_transforms(tf, np):
    x = signal(tf, 2, 6)
    there_and_back = [tf.signal.idct(tf.signal.dct(x, kind, norm="ortho"), kind, norm="ortho") for kind in (2, 3, 4)]
    return [tf.signal.dct(x, kind, norm="ortho") for kind in (2, 3, 4)], there_and_back


@program()
def cosine_transforms_of_another_length(tf, np):
    x = signal(tf, 2, 5)
    return {(kind, n): tf.signal.dct(x, kind, n=n) for kind in (2, 3, 4) for n in (3, 8)} | {
        "1": tf.signal.dct(x, 1, 4)
    }


@program()
def gradients_of_cosine_transforms(tf, np):
    x = signal(tf, 6).numpy()
    return {kind: derivatives(tf, lambda v, kind=kind: tf.signal.dct(v, kind) ** 2, x) for kind in (1, 2, 3, 4)}


@program()
def gradients_of_orthonormal_cosine_transforms(tf, np):
    x = signal(tf, 5).numpy()
    return {kind: derivatives(tf, lambda v, k=kind: tf.signal.idct(v, k, norm="ortho") ** 3, x) for kind in (2, 3, 4)}


@program()
def refused_cosine_transforms(tf, np):
    x = signal(tf, 4)
    return [
        raises(lambda: tf.signal.dct(x, 5)),
        raises(lambda: tf.signal.dct(x, n=0)),
        raises(lambda: tf.signal.dct(x, norm="half")),
        raises(lambda: tf.signal.dct(x, 1, norm="ortho")),
        raises(lambda: tf.signal.dct(x[:1], 1)),
        raises(lambda: tf.signal.dct(x, axis=0)),
    ]


@program()
def modified_cosine_transforms(tf, np):
    x = signal(tf, 2, 20)
    coefficients = tf.signal.mdct(x, 8)
    plain = tf.signal.mdct(x, 8, window_fn=None, norm="ortho", pad_end=True)
    return [
        coefficients,
        tf.signal.inverse_mdct(coefficients),
        plain,
        tf.signal.inverse_mdct(plain, window_fn=None, norm="ortho"),
        tf.signal.mdct(x, 8, window_fn=tf.signal.kaiser_bessel_derived_window),
        raises(lambda: tf.signal.mdct(x, 6)),
    ]


@program()
def gradients_of_modified_cosine_transforms(tf, np):
    x = signal(tf, 16).numpy()

    def rebuilt(v):
        return tf.signal.inverse_mdct(tf.tanh(tf.signal.mdct(v, 8, norm="ortho")), norm="ortho") ** 2

    return derivatives(tf, rebuilt, x)


@program(atol=1e-5)  # TensorFlow computes the mel scale in float32, whose rounding it divides by a band's width
def mel_weights(tf, np):
    return [
        tf.signal.linear_to_mel_weight_matrix(8, 33),
        tf.signal.linear_to_mel_weight_matrix(5, 17, 16000.0, 80.0, 7600.0, tf.float64),
        tf.signal.linear_to_mel_weight_matrix(num_mel_bins=4, num_spectrogram_bins=9, lower_edge_hertz=0.0),
    ]


@program()
def refused_mel_weights(tf, np):
    mel = tf.signal.linear_to_mel_weight_matrix
    return [
        raises(lambda: mel(0)),
        raises(lambda: mel(sample_rate=0.0)),
        raises(lambda: mel(lower_edge_hertz=-1.0)),
        raises(lambda: mel(lower_edge_hertz=4000.0)),
        raises(lambda: mel(upper_edge_hertz=4001.0)),
        raises(lambda: mel(dtype=tf.int32)),
    ]


@program()
def cepstral_coefficients(tf, np):
    sound = tf.Variable(signal(tf, 2, 400))
    with tf.GradientTape() as tape:
        spectrograms = tf.abs(tf.signal.stft(sound, frame_length=64, frame_step=32, fft_length=64))
        mel = tf.tensordot(
            spectrograms, tf.signal.linear_to_mel_weight_matrix(10, 33, 8000, 80.0, 3800.0, tf.float64), 1
        )
        cepstrum = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-2))[..., :5]
        loss = tf.reduce_mean(cepstrum**2)
    return cepstrum, tape.gradient(loss, sound)


@program()
def a_signal_is_fitted_by_few_cosines(tf, np):
    wanted = signal(tf, 16)
    weights = tf.Variable(tf.zeros([4], tf.float64))
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            built = tf.signal.idct(tf.pad(weights, [[0, 12]]), norm="ortho")
            loss = tf.reduce_sum((built - wanted) ** 2)
        weights.assign_sub(0.3 * tape.gradient(loss, weights))
        losses.append(loss)
    return losses, weights


@program()
def smoothing_in_a_function(tf, np):
    @tf.function
    def smoothed(x):
        coefficients = tf.signal.dct(x, norm="ortho")
        return tf.signal.idct(coefficients * tf.exp(-0.1 * tf.range(8, dtype=tf.float64)), norm="ortho")

    x = signal(tf, 2, 8)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(smoothed(x) ** 2)
    return y, tape.gradient(y, x)
