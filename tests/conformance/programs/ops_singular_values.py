"""Singular values, pseudo-inverses, ranks, LU factors, least squares and spectral norms: values and gradients."""

from conformance.probes import derivatives, raises
from conformance.program import program

A = [[2.0, 0.5, 0.1], [0.3, 1.0, -0.2], [0.4, -0.1, 3.0]]
TURN = [[0.0, 0.2, 0.1], [0.3, 0.0, -0.2], [0.5, 0.1, 0.3]]
B = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.2]]


def complex_matrix(np):
    return np.array(A) + 1j * np.array(TURN)


@program()
def singular_values(tf, np):
    return [
        derivatives(tf, lambda a: tf.linalg.svd(a, compute_uv=False) ** 3, np.array(A)),
        derivatives(tf, lambda a: tf.linalg.svd(a)[0] ** 2, np.array(A)[:, :2]),
        tf.linalg.svd(tf.constant([A, A]), compute_uv=False),
        tf.linalg.svd(complex_matrix(np)[:2], compute_uv=False),
        tf.linalg.svd(tf.constant([[np.nan, 1.0], [1.0, 2.0]]), compute_uv=False),
    ]


@program()
def singular_vectors(tf, np):
    def of_left(a):
        return tf.linalg.svd(a)[1] ** 2

    def of_right(a):
        return tf.linalg.svd(a)[2] ** 2

    def polar(a):
        _, u, v = tf.linalg.svd(a)
        return tf.matmul(u, v, adjoint_b=True)

    found = {}
    for name, a in (("square", np.array(A)), ("tall", np.array(A)[:, :2]), ("wide", np.array(A)[:2])):
        found[name] = [derivatives(tf, function, a) for function in (of_left, of_right, polar)]
    return found


@program()
def low_rank_part_of_stacked_matrices(tf, np):
    def part(a):
        s, u, v = tf.linalg.svd(a)
        return tf.matmul(u[..., :1] * s[..., tf.newaxis, :1], v[..., :1], adjoint_b=True)

    return derivatives(tf, part, np.stack([np.array(A), np.array(A).T * 2]))


@program()
def singular_vectors_of_complex_matrices(tf, np):
    answers = []
    for a in (complex_matrix(np)[:, :2], complex_matrix(np)[:2], complex_matrix(np)):
        x = tf.constant(a)
        with tf.GradientTape() as tape:
            tape.watch(x)
            s, u, v = tf.linalg.svd(x)
            product = tf.matmul(u, v, adjoint_b=True)
            weights = np.arange(1.0, 1.0 + product.shape[0] * product.shape[1]).reshape(product.shape)
            y = tf.reduce_sum(s**3) + tf.reduce_sum(tf.math.real(product) * weights + tf.math.imag(product))
        answers.append([s, tf.abs(u), tf.abs(v), product, tape.gradient(y, x)])
    return answers


@program()
def full_matrices_of_singular_vectors(tf, np):
    s, u, v = tf.linalg.svd(tf.constant(np.array(A)[:2]), full_matrices=True)
    tall = tf.linalg.svd(tf.constant(np.array(A)[:, :1]), full_matrices=True)
    empty = tf.linalg.svd(tf.zeros([2, 0]), full_matrices=True)

    def last(a):
        return tf.linalg.svd(a, full_matrices=True)[2] ** 2

    return [
        s,
        tf.abs(u),
        tf.abs(v),
        [part.shape for part in tall],
        [part.shape for part in empty],
        derivatives(tf, last, np.array(A)[:2]),
    ]


@program()
def singular_values_refused(tf, np):
    return [
        raises(lambda: tf.linalg.svd(tf.ones([3])), containing="must have rank >= 2, got 1"),
        raises(lambda: tf.linalg.svd(tf.constant([[1, 2], [3, 4]]))),
        raises(lambda: tf.linalg.pinv(tf.constant([[1, 2]])), containing="`float`-like `dtype` (saw int32)"),
        raises(lambda: tf.linalg.pinv(tf.ones([3])), containing="at least 2 dimensions (saw: 1)"),
        raises(lambda: tf.linalg.matrix_rank(tf.ones([3])), containing="at least 2 dimensions (saw: 1)"),
    ]


@program()
def pseudo_inverse(tf, np):
    return [
        derivatives(tf, tf.linalg.pinv, np.array(A)[:2]),
        derivatives(tf, tf.linalg.pinv, np.array(A)[:, :2]),
        derivatives(tf, tf.linalg.pinv, np.array(A)),
        tf.linalg.pinv(tf.constant([[1.0, 2.0], [2.0, 4.0]])),
        tf.linalg.pinv(tf.constant([A, A], tf.float64), rcond=[0.5, 1e-3]),
        tf.linalg.pinv(tf.constant(A)),
    ]


@program()
def pseudo_inverse_in_a_function(tf, np):
    @tf.function
    def solution(a, b):
        return tf.matmul(tf.linalg.pinv(a), b)

    a, b = tf.constant(np.array(B)), tf.constant([[1.0], [2.0], [-1.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = solution(a, b)
    return [y, tape.gradient(y, [a, b])]


@program()
def ranks(tf, np):
    a = tf.constant([[1.0, 2.0], [2.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.cast(tf.linalg.matrix_rank(a), tf.float32) * 2.0
    return [
        y,
        tape.gradient(y, a),
        tf.linalg.matrix_rank(tf.constant([A, A]), tol=1.5),
        tf.linalg.matrix_rank(tf.constant([A, A]), tol=tf.constant([[1.5], [0.1]])),
    ]


@program()
def lu_factors(tf, np):
    answers = []
    for a in (np.array([[1.0, 2.0, 0.5], [4.0, 1.0, 3.0], [2.0, 5.0, 1.0]]), complex_matrix(np)):
        factors, order = tf.linalg.lu(tf.constant(a))
        answers += [
            factors,
            order,
            tf.linalg.lu_reconstruct(factors, order),
            tf.linalg.lu_matrix_inverse(factors, order),
        ]
    return [*answers, tf.linalg.lu(tf.constant([A, A]), output_idx_type=tf.int64)]


@program()
def systems_by_lu_factors(tf, np):
    factors, order = tf.linalg.lu(tf.constant([[1.0, 2.0, 0.5], [4.0, 1.0, 3.0], [2.0, 5.0, 1.0]], tf.float64))

    def solved(lu, b):
        return tf.linalg.lu_solve(lu, order, b)

    return [
        derivatives(tf, solved, factors.numpy(), np.array(B)),
        derivatives(tf, lambda lu: tf.linalg.lu_reconstruct(lu, order), factors.numpy()),
        tf.linalg.lu_solve(factors, order, tf.constant([B, B], tf.float64)),
    ]


@program()
def systems_by_stacked_lu_factors(tf, np):
    a = tf.constant([[[1.0, 2.0], [4.0, 1.0]], [[3.0, 1.0], [1.0, 2.0]]])
    factors, order = tf.linalg.lu(a)
    b = tf.constant([[1.0], [2.0]])
    return [
        tf.linalg.lu_solve(factors, order, b),
        tf.linalg.lu_reconstruct(factors, order),
        tf.linalg.lu_matrix_inverse(factors, order),
    ]


@program()
def lu_refused(tf, np):
    factors, order = tf.linalg.lu(tf.constant(A))
    return [
        raises(lambda: tf.linalg.lu(tf.zeros([2, 2])).lu.numpy(), containing="Input is not invertible."),
        raises(lambda: tf.linalg.lu(tf.zeros([2, 3])), containing="Input matrix must be square."),
        raises(lambda: tf.linalg.lu_solve(factors[:2], order, tf.constant(B)), containing="must be square"),
        raises(lambda: tf.linalg.lu_solve(factors, order, tf.ones([2, 1])), containing="must equal"),
        raises(lambda: tf.linalg.lu_solve(factors, order, tf.ones([3])), containing="at least 2 dimensions"),
    ]


@program()
def least_squares(tf, np):
    a, b = np.array(B), np.array([[1.0], [2.0], [-1.0]])
    return [
        derivatives(tf, tf.linalg.lstsq, a, b),
        derivatives(tf, lambda a, b: tf.linalg.lstsq(a, b, l2_regularizer=0.5), a, b),
        derivatives(tf, lambda a, b: tf.linalg.lstsq(a, b, l2_regularizer=0.5), np.array(A)[:2], b[:2]),
        tf.linalg.lstsq(a, b, fast=False),
        tf.linalg.lstsq(np.ones((3, 2)), b, fast=False),
        tf.linalg.lstsq(np.array(A)[:2], b[:2], fast=False),
        tf.linalg.lstsq(a, b, l2_regularizer=0.5, fast=False),
        tf.linalg.lstsq(np.stack([a, 2 * a]), np.stack([b, b])),
    ]


@program()
def least_squares_refused(tf, np):
    z = tf.constant(complex_matrix(np))
    return [
        raises(lambda: tf.linalg.lstsq(z, z, l2_regularizer=0.5), containing="currently disabled for"),
        raises(lambda: tf.linalg.lstsq(tf.constant(A), tf.ones([2, 1]))),
    ]


@program()
def spectral_norms(tf, np):
    return [
        derivatives(tf, lambda a: tf.norm(a, ord=2, axis=(0, 1)), np.array(A)),
        derivatives(tf, lambda a: tf.norm(a, ord=2, axis=[0, 2]), np.stack([np.array(A)[:2], 2 * np.array(A)[1:]])),
        tf.norm(tf.constant([A, A]), ord=2, axis=[0, 2], keepdims=True),
        tf.norm(tf.constant([A, A]), ord=2, axis=[-1, -2]),
        tf.norm(tf.constant(complex_matrix(np)), ord=2, axis=[0, 1]),
    ]


@program()
def normalized(tf, np):
    unit, size = tf.linalg.normalize(tf.constant(A), axis=1)
    whole = tf.linalg.normalize(tf.constant(A), ord=1)
    return [
        unit,
        size,
        whole,
        derivatives(tf, lambda a: tf.linalg.normalize(a, axis=0)[0], np.array(A)),
        derivatives(tf, lambda a: tf.linalg.normalize(a, ord=2, axis=(0, 1))[0], np.array(A)),
        tf.linalg.normalize(tf.constant(complex_matrix(np)), axis=-1),
    ]


@program()
def qr_of_complex_matrices(tf, np):
    answers = []
    for a in (complex_matrix(np), complex_matrix(np)[:, :2], complex_matrix(np)[:2]):
        x = tf.constant(a)
        with tf.GradientTape() as tape:
            tape.watch(x)
            q, r = tf.linalg.qr(x)
            y = tf.reduce_sum(tf.math.real(q) * 2.0 + tf.math.imag(q)) + tf.reduce_sum(tf.math.real(r * r))
        answers.append([q, r, tape.gradient(y, x)])
    return answers
