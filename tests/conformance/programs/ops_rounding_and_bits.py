"""Programs on steps, bits and complex numbers: quantised weights, Gray codes, phases, impedances, residues."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + phase).astype(np.float32).reshape(shape)


@program()
def quantised_weights(tf, np):
    @tf.custom_gradient
    def quantised(w, scale):
        return tf.round(w / scale) * scale, lambda ct: (ct, tf.reduce_sum(ct * tf.round(w / scale)))

    def loss(w, scale, x):
        return (x @ quantised(w, scale) - 0.5) ** 2

    return {
        "derivatives": derivatives(tf, loss, waves(np, 3, 2), 0.25, waves(np, 2, 3, phase=1.0)),
        "stop": derivatives(tf, lambda w: (w + tf.stop_gradient(tf.math.rint(w * 4) / 4 - w)) ** 2, waves(np, 4)),
    }


@program()
def rounding_at_halves(tf, np):
    x = tf.constant([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 2.4999998, 1e10, float("inf"), float("-inf")])
    functions = [tf.round, tf.math.rint, tf.floor, tf.math.ceil, tf.sign]
    return {
        "values": [function(x) for function in functions],
        "signs of zero": [1.0 / function(tf.constant([-0.3, -0.0])) for function in functions[:2]],
        "gradients": [gradients(tf, lambda x, f=f: f(x) * x, waves(np, 4) * 3) for f in functions],
        "whole": [tf.round([1, -2]), tf.floor([1.5, -1.5]), tf.sign([3, 0, -3])],
        "halves": tf.round(tf.constant([0.5, 1.5, 2.5], tf.bfloat16)),
    }


@program()
def casts_at_their_limits(tf, np):
    large = tf.constant([1e20, -1e20, 12.7, -0.5])
    return {
        "saturated": [tf.saturate_cast(large, dtype) for dtype in (tf.uint8, tf.int16, tf.int32, tf.float16)],
        "whole": tf.saturate_cast(tf.constant([300, -5, 12]), tf.uint8),
        "halves": tf.saturate_cast(tf.constant([60000.0, -60000.0], tf.bfloat16), tf.int16),
        "gradients": gradients(tf, lambda x: tf.saturate_cast(x * 40000.0, tf.float16), waves(np, 5) * 3),
        "bits": [tf.bitcast([1.0, -2.0], tf.int32), tf.bitcast(tf.constant([0, 0, 128, 63], tf.uint8), tf.float32)],
        "bad": raises(lambda: tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.float32)),
    }


@program()
def residues_and_periods(tf, np):
    x, period = waves(np, 5) * 7.0, waves(np, 5, phase=1.5) * 2.0

    def wrapped(x, p):
        return tf.math.floormod(x, p) ** 2 + tf.math.floordiv(x, p) * p

    a, b = tf.constant([7, -7, 7, -7]), tf.constant([2, 2, -2, -2])
    return {
        "gradients": gradients(tf, wrapped, x, period),
        "whole": [tf.math.floormod(a, b), tf.math.floordiv(a, b), tf.truncatemod(a, b), tf.truncatediv(a, b), a / b],
        "operators": [a // b, a % b, 7 % b, tf.math.mod(a, 3)],
        "none": [raises(lambda: a // 0), raises(lambda: a % 0)],
    }


@program()
def gray_codes_and_parities(tf, np):
    bits = tf.bitwise

    def transformed(signal):
        numbers = tf.range(8)
        common = bits.bitwise_and(numbers[:, None], numbers)
        parity = common
        for shift in (2, 1):
            parity = bits.bitwise_xor(parity, bits.right_shift(parity, shift))
        signs = 1.0 - 2.0 * tf.cast(bits.bitwise_and(parity, 1), signal.dtype)
        gray = bits.bitwise_xor(numbers, bits.right_shift(numbers, 1))
        return tf.gather(tf.linalg.matvec(signs, signal), gray) ** 2

    x, y = tf.constant([5, -3, 0], tf.int16), tf.constant([3, 2, 1], tf.int16)
    return {
        "derivatives": derivatives(tf, transformed, waves(np, 8)),
        "functions": [
            getattr(bits, name)(x, y)
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
        ],
        "inverted": [bits.invert(tf.constant([0, 5], tf.uint16)), ~tf.constant([True]), x & y, x | y, x ^ y],
        "too far": [bits.left_shift([1, -1], [33, -1]), bits.right_shift([-8, 8], [40, -1])],
        "refused": [raises(lambda: bits.bitwise_and([1.0], [2.0])), raises(lambda: ~tf.constant([1.0]))],
    }


@program()
def retrieval_of_phases(tf, np):
    measured = np.abs(waves(np, 6)) + 0.3

    def misfit(x):
        spectrum = tf.signal.fft(tf.complex(x, tf.zeros_like(x)))
        return (tf.abs(spectrum) - measured) ** 2 + tf.math.angle(spectrum) * 0.1

    return derivatives(tf, misfit, waves(np, 6, phase=0.9) + 0.4)


@program()
def impedances_of_circuits(tf, np):
    frequency = tf.constant([0.5, 1.0, 2.0])

    def response(*parts):
        s = tf.complex(tf.zeros_like(frequency), frequency)
        resistance, inductance, capacity = (tf.cast(part, tf.complex64) for part in parts)
        z = resistance + s * inductance + 1.0 / (s * capacity)
        return tf.math.real(resistance / z) ** 2 + tf.math.imag(resistance / z) + tf.math.log(tf.abs(z))

    return derivatives(tf, response, 1.5, 0.7, 0.4)


@program()
def a_conformal_map(tf, np):
    z = np.array([1 + 2j, -0.5 + 1j, 0.3 - 2j], np.complex64)

    def mapped(z):
        w = (z - 1j) / (z + 2j) + tf.exp(z * 0.3) * tf.math.conj(z) + tf.sqrt(z) ** 3 + tf.tanh(z) / 5.0
        return tf.math.real(w) ** 2 + 2.0 * tf.math.imag(w) + tf.abs(w)

    return derivatives(tf, mapped, z)


@program()
def complex_rows_rearranged(tf, np):
    z = np.array([[1 + 2j, -0.5 + 1j], [0.3 - 2j, 2 - 1j]], np.complex64)

    def moved(z):
        wide = tf.pad(tf.roll(z, 1, 1), [[0, 1], [1, 0]], "REFLECT")
        rows = tf.tensor_scatter_nd_add(tf.gather(wide, [2, 0, 0]), [[1]], tf.reverse(wide, [1])[:1])
        return tf.abs(tf.cumsum(rows, 1) * tf.linalg.adjoint(wide)) ** 2

    return derivatives(tf, moved, z)
