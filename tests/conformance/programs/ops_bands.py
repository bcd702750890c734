"""Tridiagonal matrices in all formats and triangular matrices of bands: values and gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program

DIAGONALS = [[0.5, -0.3, 0.2, 9.0], [2.0, 3.0, 2.5, 4.0], [9.0, 0.4, -0.6, 0.3]]
B = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.2], [0.1, 0.7]]


def dense(np):
    above, main, below = np.array(DIAGONALS)
    return np.diag(above[:-1], 1) + np.diag(main) + np.diag(below[1:], -1)


@program()
def tridiagonal_systems(tf, np):
    return [
        derivatives(tf, tf.linalg.tridiagonal_solve, np.array(DIAGONALS), np.array(B)),
        derivatives(tf, tf.linalg.tridiagonal_solve, np.stack([np.array(DIAGONALS)] * 2), np.stack([np.array(B)] * 2)),
        tf.linalg.tridiagonal_solve(tf.constant(DIAGONALS), tf.constant([1.0, 2.0, 3.0, 4.0])),
        tf.linalg.tridiagonal_solve(tf.constant(DIAGONALS), tf.transpose(tf.constant(B)), transpose_rhs=True),
    ]


@program()
def tridiagonal_systems_in_other_formats(tf, np):
    above, main, below = np.array(DIAGONALS)
    b = tf.constant(np.array(B))

    def of_parts(above, main, below):
        return tf.linalg.tridiagonal_solve([above, main, below], b, diagonals_format="sequence")

    def of_matrix(a):
        return tf.linalg.tridiagonal_solve(a, b, diagonals_format="matrix")

    return [
        derivatives(tf, of_parts, above, main, below),
        derivatives(tf, of_parts, above[:-1], main, below[1:]),
        derivatives(tf, of_matrix, dense(np)),
    ]


@program()
def tridiagonal_systems_of_complex_numbers(tf, np):
    d = tf.constant(np.array(DIAGONALS) * (1 + 0.3j))
    b = tf.constant(np.array(B) * (1 - 0.5j))
    return [tf.linalg.tridiagonal_solve(d, b), tf.linalg.tridiagonal_solve(d, b, conjugate_rhs=True)]


@program()
def tridiagonal_products(tf, np):
    return [
        derivatives(tf, tf.linalg.tridiagonal_matmul, np.array(DIAGONALS), np.array(B)),
        tf.linalg.tridiagonal_matmul(tf.constant(DIAGONALS), tf.constant(B)),
        tf.linalg.tridiagonal_matmul(tf.constant(dense(np)), tf.constant(np.array(B)), diagonals_format="matrix"),
        tf.linalg.tridiagonal_matmul([*tf.constant(DIAGONALS)], tf.constant(B), diagonals_format="sequence"),
    ]


@program()
def heat_by_implicit_steps(tf, np):
    @tf.function
    def after(rate):
        n = 6
        ones = tf.ones([n])
        u = tf.sin(tf.linspace(0.0, 3.0, n))
        for _ in range(3):
            u = tf.linalg.tridiagonal_solve(tf.stack([-rate * ones, (1.0 + 2.0 * rate) * ones, -rate * ones]), u)
        return tf.reduce_sum(u**2)

    rate = tf.constant(0.3)
    with tf.GradientTape() as tape:
        tape.watch(rate)
        y = after(rate)
    return [y, tape.gradient(y, rate)]


@program()
def tridiagonal_systems_refused(tf, np):
    d, b = tf.constant(DIAGONALS), tf.constant(B)
    return [
        raises(lambda: tf.linalg.tridiagonal_solve(d, b, diagonals_format="other"), containing="Unrecognized"),
        raises(lambda: tf.linalg.tridiagonal_solve([d, d], b, diagonals_format="sequence"), containing="length 3"),
        raises(lambda: tf.linalg.tridiagonal_solve(d[:2], b), containing="Expected 3 diagonals got 2"),
        raises(lambda: tf.linalg.tridiagonal_solve(d, b[:3]), containing="got 4 and 3"),
        raises(lambda: tf.linalg.tridiagonal_solve(d[0], b), containing="rank at least 2"),
        tf.math.is_nan(tf.linalg.tridiagonal_solve(tf.zeros([3, 4]), b)),
    ]


@program()
def triangular_systems_of_bands(tf, np):
    lower, upper = np.array(DIAGONALS)[1:], np.array(DIAGONALS)[:2]
    solve = tf.linalg.banded_triangular_solve
    return [
        derivatives(tf, solve, lower, np.array(B)),
        derivatives(tf, lambda bands, b: solve(bands, b, lower=False), upper, np.array(B)),
        derivatives(tf, lambda bands, b: solve(bands, b, adjoint=True), lower, np.array(B)),
        derivatives(tf, lambda bands, b: solve(bands, b, lower=False, adjoint=True), upper, np.array(B)),
        solve(tf.constant([lower, lower]), tf.constant(np.array(B))),
    ]


@program()
def bands_with_numbers_that_are_not_finite(tf, np):
    b = tf.ones([3, 1])
    solve = tf.linalg.banded_triangular_solve
    return [
        solve([[1.0, np.nan, 2.0], [0.0, 1.0, 1.0]], b),
        solve([[1.0, 2.0, 2.0], [0.0, np.nan, 1.0]], b),
        solve([[1.0, np.inf, 2.0], [0.0, 1.0, 1.0]], b),
        solve([[1.0, np.nan, 0.0], [2.0, 4.0, 1.0]], b, lower=False),
        raises(lambda: solve([[1.0, 0.0, 2.0], [0.0, np.nan, 1.0]], b).numpy(), containing="not invertible"),
    ]


@program()
def eigenvalues_of_tridiagonal_matrices(tf, np):
    alpha, beta = tf.constant([2.0, 3.0, -1.0, 4.0], tf.float64), tf.constant([0.5, -0.4, 0.3], tf.float64)
    e, v = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    return [
        tf.linalg.eigh_tridiagonal(alpha, beta),
        e,
        tf.abs(v),
        tf.linalg.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2)),
    ]
