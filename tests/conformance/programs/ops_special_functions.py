"""Bessel functions, integrals without a closed form, and incomplete gamma and beta functions."""

from conformance.probes import raises
from conformance.program import program

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _with_slopes(tf, functions, numbers):
    """Values, gradients and second derivatives of functions of one array, by their names."""
    results = {}
    for name in functions:
        function = getattr(tf.math.special, name)
        x = tf.constant(numbers)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        results[name] = [y, slope, outer.gradient(slope, x)]
    return results


# ------------------------------------------------------------------------------------------------------------- Bessel
@program(**CLOSE)
def bessel_functions_of_the_first_kind(tf, np):
    names = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1"]
    return _with_slopes(tf, names, np.array([-2.5, -0.3, 0.4, 1.0, 3.2]))


@program(**CLOSE)
def bessel_functions_of_the_second_kind(tf, np):
    names = ["bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1"]
    return _with_slopes(tf, names, np.array([0.2, 0.7, 1.0, 2.0, 4.5]))


@program(**CLOSE)
def bessel_functions_at_zero(tf, np):
    x = tf.constant([0.0, 0.0], tf.float64)
    results = []
    for name in ("bessel_i0", "bessel_i0e", "bessel_i1e", "bessel_j0", "bessel_j1"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(tf.math.special, name)(x)
        results += [y, tape.gradient(y, x)]
    return [
        *results,
        tf.math.special.bessel_k0(x),
        tf.math.special.bessel_y0(x),
        tf.math.bessel_i0(x),
        tf.math.bessel_i1(x),
    ]


@program(rtol=1e-2, atol=1e-2)
def bessel_functions_in_every_dtype(tf, np):
    results = []
    for dtype in (tf.float16, tf.float32):
        x = tf.cast([0.3, 1.5, 2.0], dtype)
        results += [tf.math.bessel_i0e(x), tf.math.bessel_i1(x), tf.math.special.bessel_k0e(x)]
    return [[result.dtype.name, tf.cast(result, tf.float32)] for result in results]


@program()
def bessel_functions_of_integers_are_refused(tf, np):
    return [raises(lambda: tf.math.bessel_i0(tf.constant([1, 2]))), raises(lambda: tf.math.special.dawsn([1 + 1j]))]


@program(**CLOSE)
def a_von_mises_likelihood(tf, np):
    angles = tf.constant([0.1, -0.4, 0.7, 0.3, -0.2])
    mean, concentration = tf.Variable(0.0), tf.Variable(1.0)

    @tf.function
    def loss():
        likelihood = concentration * tf.cos(angles - mean) - tf.math.log(tf.math.bessel_i0e(concentration))
        return -tf.reduce_mean(likelihood - concentration)

    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = loss()
        for variable, slope in zip([mean, concentration], tape.gradient(value, [mean, concentration])):
            variable.assign_sub(0.5 * slope)
        losses.append(value)
    return [*losses, mean, concentration]


# ---------------------------------------------------------------------------------------------------------- integrals
@program(**CLOSE)
def integrals_and_their_slopes(tf, np):
    everywhere = _with_slopes(tf, ["dawsn", "fresnel_cos", "fresnel_sin"], np.array([-2.0, -0.5, 0.0, 0.8, 3.0]))
    return [everywhere, _with_slopes(tf, ["expint", "spence"], np.array([0.3, 0.5, 1.5, 2.0, 6.0]))]


@program(**CLOSE)
def integrals_at_special_points(tf, np):
    x, special = tf.constant([0.0, 1.0, np.inf, np.nan, -1.0], tf.float64), tf.math.special
    one = tf.constant(1.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(one)
        y = special.spence(one)
    slope = tape.gradient(y, one)
    return [slope, special.expint(x[:2]), special.spence(x), special.dawsn(x[:2]), special.fresnel_cos(x[:2])]


# ------------------------------------------------------------------------------------------- incomplete gamma and beta
@program(rtol=1e-4, atol=1e-5)
def incomplete_gamma_functions(tf, np):
    a = tf.constant([[0.5], [2.0], [7.5]], tf.float64)
    x = tf.constant([0.1, 1.0, 4.0, 9.0], tf.float64)
    results = []
    for function in (tf.math.igamma, tf.math.igammac):
        with tf.GradientTape() as tape:
            tape.watch([a, x])
            y = function(a, x)
        results += [y, *tape.gradient(y, [a, x])]
    return results


@program(rtol=1e-4, atol=1e-5)
def jacobians_of_incomplete_gamma_functions(tf, np):
    a = tf.constant([0.5, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(a)
        y = tf.math.igamma(a, [1.0, 2.0])
        z = tf.function(lambda a: tf.math.igammac(a, x=0.7))(a)
    return [tape.jacobian(y, a), tape.gradient(z, a)]


@program(rtol=1e-4, atol=1e-5)
def second_derivatives_of_incomplete_gamma_functions(tf, np):
    a, x = tf.constant(2.5), tf.constant(1.5)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([a, x])
        with tf.GradientTape(persistent=True) as inner:
            inner.watch([a, x])
            y = tf.math.igamma(a, x)
        by_x = inner.gradient(y, x)
        by_a = inner.gradient(y, a)
    return [outer.gradient(by_x, x), outer.gradient(by_x, a), raises(lambda: outer.gradient(by_a, a))]


@program(rtol=1e-5, atol=1e-6)
def special_points_of_incomplete_gamma_functions(tf, np):
    a = tf.constant([1.0, 0.0, -1.0, 2.0, np.nan], tf.float64)
    x = tf.constant([0.0, 1.0, 1.0, np.inf, 1.0], tf.float64)
    return [tf.math.igamma(a, x), tf.math.igammac(a, x), raises(lambda: tf.math.igamma(1, 2))]


@program(rtol=1e-4, atol=1e-5)
def incomplete_beta_functions(tf, np):
    a, b = tf.constant([0.5, 2.0, 5.0], tf.float64), tf.constant(1.5, tf.float64)
    x = tf.constant([0.2, 0.5, 0.9], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b, x])
        y = tf.math.betainc(a, b, x)
    return [y, tape.gradient(y, [a, b, x]), tf.math.betainc(a, b, tf.constant([0.0, 1.0, 0.5], tf.float64))]


@program(**CLOSE)
def logarithms_of_beta_functions(tf, np):
    x = tf.constant([[0.5, 2.0, 3.0], [1.0, 1.0, 4.5]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.lbeta(x)
    return [y, tape.gradient(y, x), tf.math.lbeta([2.0]), tf.math.lbeta(tf.zeros([2, 0]))]


@program(rtol=1e-4, atol=1e-5)
def zeta_functions(tf, np):
    x = tf.constant([[1.5], [2.0], [4.0]], tf.float64)
    q = tf.constant([1.0, 2.5], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, q])
        y = tf.math.zeta(x, q)
    return [y, tape.gradient(y, [x, q]), raises(lambda: tf.math.zeta(tf.constant([1, 2]), tf.constant([1, 2])))]
