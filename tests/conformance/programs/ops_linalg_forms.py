"""Functions of tf.linalg in the forms that programs call them in, and at points where they are hard to compute."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def numbers(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def positive(np, n):
    x = numbers(np, n, n)
    return x @ x.T + np.eye(n)


@program()
def matrix_functions_with_large_cotangents(tf, np):
    matrix = tf.constant(positive(np, 3))
    results = {}
    for size in (1e-20, 1e4, 1e20):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(matrix)
            exponential, root = tf.linalg.expm(matrix / 4.0), tf.linalg.sqrtm(matrix)
        cotangent = tf.constant(size * numbers(np, 3, 3))
        results[str(size)] = [tape.gradient(y, matrix, cotangent) / size for y in (exponential, root)]
    return results


@program(rtol=1e-4, atol=1e-5)  # float32
def an_exponential_in_a_loss_of_large_numbers(tf, np):
    generator = tf.constant(numbers(np, 4, 4).astype("float32"))
    with tf.GradientTape() as tape:
        tape.watch(generator)
        loss = 1e6 * tf.reduce_sum(tf.linalg.expm(generator) ** 2)
    return tape.gradient(loss, generator) / 1e6


@program()
def roots_of_singular_matrices(tf, np):
    return [
        tf.linalg.sqrtm(tf.constant(matrix))
        for matrix in ([[1.0, 1.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 0.0]], [[0.0]], [[0.0, 0.0], [0.0, 0.0]])
    ]


@program()
def eigenvalues_in_an_interval(tf, np):
    main, below = tf.constant([2.0, -1.0, 0.5, 3.0, 1.0]), tf.constant([0.5, 1.0, -0.25, 0.75])
    values, vectors = tf.linalg.eigh_tridiagonal(main, below, eigvals_only=False, select="v", select_range=(0.0, 2.5))
    return [
        tf.linalg.eigh_tridiagonal(main, below, select="v", select_range=(-2.0, 1.0)),
        tf.linalg.eigh_tridiagonal(main, below, select="v", select_range=(10.0, 11.0)),
        values,
        tf.abs(vectors),
        raises(lambda: tf.linalg.eigh_tridiagonal(main, below, select="v", select_range=(1.0, 0.0)), "empty interval"),
        raises(lambda: tf.linalg.eigh_tridiagonal(main, below, select="i", select_range=(3, 1)), "empty index range"),
    ]


@program()
def factors_with_other_indices(tf, np):
    matrix = numbers(np, 3, 3)
    lower_upper, order = tf.linalg.lu(matrix, output_idx_type=tf.int64, name="factors")
    return [
        order,
        tf.linalg.lu_reconstruct(lower_upper, order),
        raises(lambda: tf.linalg.lu(matrix, output_idx_type=tf.float32)),
        raises(lambda: tf.linalg.lu([[np.nan, 1.0], [1.0, 1.0]])[0].numpy()),
    ]


@program()
def names_of_raw_operations(tf, np):
    values, vectors = tf.eig(tf.constant([[2.0, 0.0], [1.0, 1.0]]))
    rotated = tf.eigvals(tf.constant([[0.0, 1.0], [-1.0, 0.0]]))
    return [
        tf.sort(tf.math.real(values)),
        tf.shape(vectors),
        tf.sort(tf.math.imag(rotated)),
    ]


@program()
def cross_products_of_other_lengths(tf, np):
    two = tf.constant([1.0, 2.0])
    return [
        raises(lambda: tf.linalg.cross(two, two), "only defined for 3-element vectors"),
        raises(lambda: tf.linalg.cross([1.0, 2.0, 3.0], tf.ones([2, 3]))),
        raises(lambda: tf.function(tf.linalg.cross)(two, two)),
        tf.linalg.cross(tf.zeros([0, 3]), tf.zeros([0, 3])),
    ]


@program()
def dtypes_that_functions_refuse(tf, np):
    whole = tf.constant([[2, 0], [0, 2]])
    return [
        raises(lambda: tf.function(tf.linalg.inv)(whole)),
        raises(lambda: tf.function(tf.signal.fft)(tf.ones([4]))),
        raises(lambda: tf.function(tf.nn.embedding_lookup)(tf.ones([3, 2]), tf.constant([1.0]))),
        raises(lambda: tf.linalg.expm(tf.ones([2, 2], tf.bfloat16))),
        raises(lambda: tf.linalg.expm(whole)),
    ]


@program()
def rotations_from_axes_and_angles(tf, np):
    def rotated(w, points):
        zero = tf.zeros_like(w[..., 0])
        rows = [
            [zero, -w[..., 2], w[..., 1]],
            [w[..., 2], zero, -w[..., 0]],
            [-w[..., 1], w[..., 0], zero],
        ]
        generators = tf.stack([tf.stack(row, -1) for row in rows], -2)
        return tf.linalg.matvec(tf.linalg.expm(generators), points)

    at_rest = np.zeros((1, 3))
    return [
        derivatives(tf, rotated, numbers(np, 2, 3), numbers(np, 2, 3)),
        gradients(tf, rotated, at_rest, at_rest + 1),
    ]


@program()
def points_aligned_by_their_singular_vectors(tf, np):
    first = numbers(np, 2, 5, 3)
    second = first[..., ::-1] + 0.1 * numbers(np, 2, 5, 3)

    def distance(x, y):
        _, u, v = tf.linalg.svd(tf.einsum("bni,bnj->bij", x, y))
        handed = tf.sign(tf.linalg.det(tf.matmul(v, u, transpose_b=True)))
        signs = tf.stack([tf.ones_like(handed), tf.ones_like(handed), handed], -1)
        turn = tf.matmul(v * signs[:, None, :], u, transpose_b=True)
        return tf.reduce_sum((tf.einsum("bij,bnj->bni", turn, x) - y) ** 2, [1, 2])

    return gradients(tf, distance, first, second)


@program()
def whitening_by_three_decompositions(tf, np):
    x = numbers(np, 10, 3)

    def covariance(x):
        centered = x - tf.reduce_mean(x, 0)
        return centered, tf.matmul(centered, centered, transpose_a=True) / 9.0

    def by_svd(x):
        centered, c = covariance(x)
        s, u, _ = tf.linalg.svd(c)
        return tf.matmul(centered, tf.matmul(u / tf.sqrt(s + 1e-5), u, transpose_b=True))

    def by_eigh(x):
        centered, c = covariance(x)
        e, v = tf.linalg.eigh(c)
        return tf.matmul(centered, v @ tf.linalg.diag(tf.math.rsqrt(e + 1e-5)) @ tf.transpose(v))

    def by_cholesky(x):
        centered, c = covariance(x)
        return tf.transpose(tf.linalg.triangular_solve(tf.linalg.cholesky(c), tf.transpose(centered)))

    return [derivatives(tf, whitened, x) for whitened in (by_svd, by_eigh, by_cholesky)]


@program()
def a_smoothing_spline_and_its_strength(tf, np):
    def smoothed(y, strength):
        ones = tf.ones([6], tf.float64)
        bands = tf.stack([-strength * ones, 1.0 + 2.0 * strength * ones, -strength * ones])
        return tf.linalg.tridiagonal_solve(bands, y)

    return derivatives(tf, smoothed, numbers(np, 6), np.array(0.7))


@program()
def systems_of_a_few_bands(tf, np):
    bands = np.abs(numbers(np, 2, 3, 5)) + 1.0

    def solved(bands, rhs, lower, adjoint):
        return tf.linalg.banded_triangular_solve(bands, rhs, lower=lower, adjoint=adjoint)

    results = {}
    for lower in (True, False):
        for adjoint in (True, False):
            results[f"{lower} {adjoint}"] = gradients(
                tf, lambda a, b, lower=lower, adjoint=adjoint: solved(a, b, lower, adjoint), bands, numbers(np, 2, 5, 2)
            )
    turned = tf.constant(bands * np.exp(1j * bands))
    return [
        results,
        tf.linalg.banded_triangular_solve(turned, tf.ones([2, 5, 1], tf.complex128), adjoint=True),
        tf.linalg.banded_triangular_solve(bands[0], numbers(np, 4, 5, 1)),
        tf.linalg.banded_triangular_solve(numbers(np, 4, 3) + 3.0, numbers(np, 3, 1)),
        raises(lambda: tf.linalg.banded_triangular_solve(np.zeros((1, 3)), np.ones((3, 1))).numpy()),
        raises(lambda: tf.linalg.banded_triangular_solve(bands, np.ones((2, 4, 1)))),
    ]


@program()
def batch_jacobians_of_decompositions(tf, np):
    x = tf.constant(numbers(np, 2, 4))
    functions = {
        "expm": tf.linalg.expm,
        "inv": tf.linalg.inv,
        "r": lambda m: tf.linalg.qr(m)[1],
        "s": lambda m: tf.linalg.svd(m, compute_uv=False),
        "pinv": tf.linalg.pinv,
        "lstsq": lambda m: tf.linalg.lstsq(m, tf.ones([2, 2, 1], tf.float64)),
    }
    results = {}
    for name, function in functions.items():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(tf.reshape(x, [2, 2, 2]))
        results[name] = tape.batch_jacobian(y, x)
    return results
