"""Linear algebra as programs use it: likelihoods, flows, filters and fits, with their derivatives."""

from conformance.probes import derivatives, raises
from conformance.program import program


def matrix(np, *shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def hermitian(np, n):
    x = matrix(np, n, n) + 1j * matrix(np, n, n + 1)[:, :n]
    return x @ x.conj().T + n * np.eye(n)


@program()
def log_determinants_of_complex_matrices(tf, np):
    x = tf.constant(matrix(np, 2, 3, 3) + 1j * matrix(np, 3, 3, 2).reshape(2, 3, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        sign, size = tf.linalg.slogdet(x)
        y = tf.math.real(size) * [1.0, 2.0]
    return [
        sign,
        size,
        tape.gradient(y, x),
        sign * tf.exp(size) - tf.linalg.det(x),
        tf.linalg.slogdet(tf.zeros([2, 2], tf.complex64)),
        tf.linalg.slogdet(tf.eye(2, dtype=tf.complex64) * 2j),
    ]


@program()
def a_complex_gaussian_likelihood(tf, np):
    noise = tf.constant(matrix(np, 3, 2) + 1j * matrix(np, 2, 3).T)

    def energy(scale):
        covariance = tf.cast(scale, tf.complex128) * tf.constant(hermitian(np, 3)) + tf.eye(3, dtype=tf.complex128)
        size = tf.math.real(tf.linalg.slogdet(covariance).log_abs_determinant)
        solved = tf.linalg.solve(covariance, noise)
        return size * 2 + tf.reduce_sum(tf.math.real(tf.math.conj(noise) * solved))

    return derivatives(tf, energy, np.array(0.7))


@program()
def orthonormal_bases_of_the_whole_space(tf, np):
    found = {}
    for shape in ((4, 2), (3, 3), (2, 4), (2, 3, 1), (3, 0), (0, 2)):
        x = matrix(np, *shape)
        q, r = tf.linalg.qr(x, full_matrices=True)
        identity = tf.matmul(q, q, adjoint_a=True)
        found[str(shape)] = [tf.matmul(q, r) - x, identity, q.shape.as_list(), r]
    return found


@program()
def a_whole_basis_has_a_gradient_only_of_a_matrix_that_is_not_tall(tf, np):
    def corner(x):
        return tf.linalg.qr(x, full_matrices=True).r

    def of_tall():
        x = tf.constant(matrix(np, 4, 2))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(corner(x))
        return tape.gradient(y, x).numpy()

    is_refused = False
    try:
        of_tall()
    except Exception as error:
        is_refused = isinstance(error, (NotImplementedError, tf.errors.UnimplementedError))
    return [derivatives(tf, corner, matrix(np, 3, 3)), derivatives(tf, corner, matrix(np, 2, 4)), is_refused]


@program()
def points_of_sobol_in_an_integral(tf, np):
    points = tf.math.sobol_sample(2, 64, skip=3, dtype=tf.float64)

    def integral(rate):
        return tf.reduce_mean(tf.exp(-rate * points[:, 0] * points[:, 1]))

    return [
        tf.math.sobol_sample(5, 7),
        tf.math.sobol_sample(3, 2, skip=1000, dtype=tf.float64),
        tf.math.sobol_sample(1111, 2)[:, 1100:],
        derivatives(tf, integral, np.array(1.5)),
        raises(lambda: tf.math.sobol_sample(0, 3), "dim must be at least one"),
        raises(lambda: tf.math.sobol_sample(2, 0), "num_results must be at least one"),
        raises(lambda: tf.math.sobol_sample(2, 2, skip=-1), "skip must be non-negative"),
        raises(lambda: tf.math.sobol_sample(2, 2, dtype=tf.int32), "not in the list of allowed values: float, double"),
    ]


@program()
def nearest_neighbours_by_approximate_products(tf, np):
    database = matrix(np, 6, 3).astype("float32")

    def affinity(query):
        values, _ = tf.math.approx_max_k(tf.matmul(query, database, transpose_b=True), k=2)
        return tf.nn.softmax(values)

    queries = matrix(np, 2, 3).astype("float32")
    values, places = tf.math.approx_max_k(queries, k=2, recall_target=0.8)
    tied = tf.nn.approx_max_k(tf.constant([[3.0, 3.0, 1.0, 3.0]]), 2)
    return [
        derivatives(tf, affinity, queries),
        values,
        places,
        tied.indices,
        tf.math.approx_max_k(tf.constant([1.0, 2.0, 3.0], tf.bfloat16), 1),
        raises(lambda: tf.math.approx_max_k(queries, k=5), "input must have at least k columns. Had 3, needed 5"),
        raises(lambda: tf.math.approx_max_k(tf.constant([1.0], tf.float64), k=1), "allowed values: half, bfloat16, fl"),
    ]


@program()
def a_kalman_filter_fits_its_noise(tf, np):
    observations = tf.constant(matrix(np, 5, 1))
    move = tf.constant([[1.0, 0.5], [0.0, 1.0]], tf.float64)
    look = tf.constant([[1.0, 0.0]], tf.float64)

    def likelihood(noise):
        mean, covariance, total = tf.zeros([2, 1], tf.float64), tf.eye(2, dtype=tf.float64), 0.0
        for t in range(5):
            mean, covariance = move @ mean, move @ covariance @ tf.transpose(move) + noise * tf.eye(2, dtype=tf.float64)
            spread = look @ covariance @ tf.transpose(look) + 0.3
            surprise = observations[t : t + 1] - look @ mean
            gain = tf.transpose(tf.linalg.solve(spread, look @ covariance))
            total += tf.squeeze(surprise * tf.linalg.inv(spread) * surprise) + tf.linalg.logdet(spread)
            mean, covariance = mean + gain @ surprise, covariance - gain @ look @ covariance
        return -0.5 * total

    return derivatives(tf, likelihood, np.array(0.2))


@program()
def a_linear_flow_by_the_exponential_of_a_matrix(tf, np):
    x = tf.constant(matrix(np, 3, 2))

    def flow(generator):
        y = tf.linalg.matmul(tf.linalg.expm(generator), x)
        return tf.reduce_sum(tf.tanh(y), axis=0) + tf.linalg.trace(generator)

    return derivatives(tf, flow, matrix(np, 3, 3) * 0.5)


@program()
def a_rotation_from_a_skew_matrix(tf, np):
    def rotated(parameters):
        upper = tf.scatter_nd([[0, 1], [0, 2], [1, 2]], parameters, [3, 3])
        rotation = tf.linalg.expm(upper - tf.transpose(upper))
        return tf.linalg.matvec(rotation, tf.constant([1.0, 2.0, 3.0], tf.float64))

    return derivatives(tf, rotated, np.array([0.3, -0.2, 0.5]))


@program()
def whitening_by_the_root_of_a_covariance(tf, np):
    x = tf.constant(matrix(np, 6, 3))

    def whitened(mixing):
        y = tf.matmul(x, mixing)
        covariance = tf.matmul(y, y, transpose_a=True) / 6.0 + tf.eye(3, dtype=tf.float64)
        return tf.linalg.matmul(y, tf.linalg.inv(tf.linalg.sqrtm(covariance)))[:2]

    with tf.GradientTape() as tape:
        mixing = tf.constant(np.eye(3) + 0.3 * matrix(np, 3, 3))
        tape.watch(mixing)
        y = whitened(mixing)
        loss = tf.reduce_sum(y * y * y)
    return [y, tape.gradient(loss, mixing)]


@program()
def principal_components_of_moving_points(tf, np):
    def explained(x):
        centred = x - tf.reduce_mean(x, axis=0)
        values = tf.linalg.svd(centred, compute_uv=False)
        return values[:1] ** 2 / tf.reduce_sum(values**2)

    return derivatives(tf, explained, matrix(np, 5, 3))


@program()
def spectral_normalization_of_a_layer(tf, np):
    x = tf.constant(matrix(np, 4, 3))

    def outputs(kernel):
        return tf.matmul(x, kernel / tf.linalg.norm(kernel, ord=2, axis=[-2, -1], keepdims=True))

    return derivatives(tf, outputs, matrix(np, 3, 2))


@program()
def a_spline_from_a_tridiagonal_system(tf, np):
    knots = np.linspace(0.0, 2.0, 6)

    def smoothness(values):
        right = 6.0 * (values[2:] - 2.0 * values[1:-1] + values[:-2])
        ones = tf.ones([4], tf.float64)
        bends = tf.linalg.tridiagonal_solve([ones, 4.0 * ones, ones], right, diagonals_format="sequence")
        return tf.reduce_sum(bends * bends)

    with tf.GradientTape() as tape:
        values = tf.constant(np.sin(knots))
        tape.watch(values)
        with tf.GradientTape() as inner:
            inner.watch(values)
            y = smoothness(values)
        g = inner.gradient(y, values)
        weighted = tf.reduce_sum(g * knots)
    return [y, g, tape.gradient(weighted, values)]


@program()
def ridge_regression_tunes_its_penalty(tf, np):
    x, y = matrix(np, 6, 3), matrix(np, 6, 1)

    def held_out(penalty):
        weights = tf.linalg.lstsq(x[:4], y[:4], l2_regularizer=penalty)
        return tf.reduce_mean((tf.matmul(x[4:], weights) - y[4:]) ** 2)

    penalty = tf.constant(0.5, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(penalty)
        loss = held_out(penalty)
    return [loss, tape.gradient(loss, penalty)]


@program()
def fisher_directions_by_eigenvalues(tf, np):
    within = matrix(np, 3, 3) @ matrix(np, 3, 3).T + 3 * np.eye(3)

    def ratio(between):
        root = tf.linalg.inv(tf.linalg.cholesky(tf.constant(within)))
        inner = tf.matmul(tf.matmul(root, between + tf.transpose(between)), root, transpose_b=True)
        return tf.linalg.eigvalsh(inner)[-1]

    return derivatives(tf, ratio, matrix(np, 3, 3))


@program()
def a_force_that_is_a_cross_product(tf, np):
    field = tf.constant([[0.0, 0.0, 1.5], [0.5, 0.0, 0.0]], tf.float64)

    def turned(velocity):
        for _ in range(3):
            velocity = velocity + 0.1 * tf.linalg.cross(velocity, field)
        return velocity

    return [
        derivatives(tf, turned, matrix(np, 2, 3)),
        tf.linalg.cross([1, 2, 3], [4, 5, 6]),
        raises(lambda: tf.linalg.cross(tf.ones([2, 3]), tf.ones([3])), "Both inputs must be of same shape"),
    ]


@program()
def an_autoregression_with_a_banded_factor(tf, np):
    x = tf.constant(matrix(np, 5, 1))

    def energy(bands):
        innovations = tf.linalg.banded_triangular_solve(bands, x)
        return tf.reduce_sum(innovations**2) + tf.reduce_sum(tf.math.log(bands[0] ** 2))

    return derivatives(tf, energy, np.abs(matrix(np, 2, 5)) + 1.0)


@program()
def a_generalized_trace_of_tensors(tf, np):
    def traced(x):
        folded = tf.linalg.tensor_diag_part(tf.reshape(x, [2, 3, 2, 3]))
        return tf.linalg.tensor_diag(folded)[:, 0, 1] * folded

    return [
        derivatives(tf, traced, matrix(np, 6, 6)),
        raises(lambda: tf.linalg.tensor_diag(1.0), "Input must be at least rank 1, got 0"),
        raises(lambda: tf.linalg.tensor_diag_part(tf.ones([2, 3])), "Invalid shape [2,3]: dimensions 0 and 1 do not"),
    ]


@program()
def several_diagonals_at_once(tf, np):
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)
    found = {}
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        for k in ((-1, 2), (-2, -1), (0, 1)):
            rows = tf.linalg.diag_part(x, k=k, padding_value=9.0, align=align)
            found[f"{align} {k}"] = [
                rows,
                tf.linalg.diag(rows, k=k, align=align, padding_value=7.0),
                tf.linalg.diag(rows, k=k, align=align, num_rows=3, num_cols=4),
                tf.linalg.set_diag(-x, rows, k=k, align=align),
            ]
    return [
        found,
        raises(lambda: tf.linalg.diag_part(x, k=(1, 0)), "lower_diag_index must not be larger than upper_diag_index"),
        raises(lambda: tf.linalg.diag_part(x, k=(0, 1, 2)), "diag_index must have only one or two elements"),
        raises(lambda: tf.linalg.diag_part(x, k=(-3, 0)), "lower_diag_index is out of bound: -3"),
        raises(lambda: tf.linalg.diag_part(x, k=(0, 1), align="UP"), "Value for attr 'align' of \"UP\" is not in the"),
        raises(lambda: tf.linalg.diag(x[0], k=(0, 1)), "The number of diagonals provided in the input does not match"),
        raises(lambda: tf.linalg.diag(x[0, :2], k=(0, 1), num_rows=9, num_cols=9), "is not consistent with the"),
        raises(lambda: tf.linalg.set_diag(x, x[:, :2, :2], k=(0, 1))),
    ]


@program()
def a_banded_model_is_assembled_from_its_bands(tf, np):
    right = tf.constant(matrix(np, 4, 1))

    def solved(bands):
        banded = tf.linalg.diag(bands, k=(-1, 1)) + 4.0 * tf.eye(4, dtype=tf.float64)
        inside = tf.linalg.diag_part(tf.matmul(banded, banded), k=(0, 1), padding_value=1.0)
        return tf.linalg.solve(tf.linalg.set_diag(banded, inside, k=(0, 1)), right)

    return derivatives(tf, solved, matrix(np, 3, 4))
