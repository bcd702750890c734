"""Eigenvalues and eigenvectors, and functions of matrices: values and gradients that no sign of a vector changes."""

from conformance.probes import derivatives, raises
from conformance.program import program

A = [[2.0, 0.5, 0.1], [0.3, 1.0, -0.2], [0.4, -0.1, 3.0]]
TURN = [[0.0, 0.2, 0.1], [0.3, 0.0, -0.2], [0.5, 0.1, 0.3]]


def complex_matrix(np):
    return np.array(A) + 1j * np.array(TURN)


@program()
def eigh_values_and_gradients(tf, np):
    def of_values(a):
        return tf.linalg.eigh(a)[0] ** 3

    def of_vectors(a):
        return tf.linalg.eigh(a)[1] ** 2

    return [
        derivatives(tf, of_values, np.array(A)),
        derivatives(tf, of_vectors, np.array(A)),
        derivatives(tf, of_vectors, np.stack([np.array(A), -2 * np.array(A)])),
    ]


@program()
def eigh_gives_the_matrix_back(tf, np):
    a = tf.constant(A)
    e, v = tf.linalg.eigh(a)
    return [e, tf.matmul(v * e, v, transpose_b=True), tf.matmul(v, v, transpose_a=True)]


@program()
def square_root_by_eigh(tf, np):
    def root(a):
        e, v = tf.linalg.eigh(a)
        return tf.matmul(v * tf.sqrt(e)[..., tf.newaxis, :], v, adjoint_b=True)

    return derivatives(tf, root, np.array(A))


@program()
def eigh_of_complex_matrices(tf, np):
    a = tf.constant(complex_matrix(np))
    with tf.GradientTape() as tape:
        tape.watch(a)
        e, v = tf.linalg.eigh(a)
        y = tf.reduce_sum(tf.math.real(e) ** 2) + tf.reduce_sum(tf.abs(v[0]) ** 2 * np.arange(3.0))
    return [e, tf.abs(v), tape.gradient(y, a)]


@program()
def eigvalsh_alone(tf, np):
    return [
        derivatives(tf, lambda a: tf.linalg.eigvalsh(a) ** 3, np.array(A)),
        tf.linalg.eigvalsh(complex_matrix(np)),
        tf.linalg.eigvalsh(tf.zeros([2, 0, 0])),
    ]


@program()
def eigenvalues_inside_a_function(tf, np):
    @tf.function
    def largest(a):
        return tf.reduce_max(tf.linalg.eigvalsh(a), axis=-1)

    a = tf.constant([A, [[1.0, 0.0, 0.0], [0.2, 5.0, 0.0], [0.1, 0.3, 2.0]]])
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = largest(a)
    return [y, tape.gradient(y, a)]


@program()
def jacobian_of_eigenvalues(tf, np):
    a = tf.constant(np.array(A))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(a)
        values = tf.linalg.eigvalsh(a)
        e, v = tf.linalg.eigh(a)
        products = v[0] * v[1]
    return [tape.jacobian(values, a), tape.jacobian(e, a), tape.jacobian(products, a)]


@program()
def equal_eigenvalues_have_no_gradient_in_the_vectors(tf, np):
    a = tf.constant(np.eye(3))
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.reduce_sum(tf.linalg.eigh(a)[1] ** 2)
    return tape.gradient(y, a)


@program()
def eigenvalues_refused(tf, np):
    return [
        raises(lambda: tf.linalg.eigh(tf.ones([2, 3])).numpy(), containing="Input matrix must be square."),
        raises(lambda: tf.linalg.eigh(tf.ones([3])), containing="must have rank >= 2, got 1"),
        raises(lambda: tf.linalg.eigvalsh(tf.constant([[1, 2], [3, 4]]))),
        raises(lambda: tf.linalg.eig(tf.ones([2, 3])), containing="Input matrix must be square."),
        raises(lambda: tf.linalg.eigvals(tf.ones([3])), containing="must have rank >= 2, got 1"),
        raises(lambda: tf.linalg.eigvalsh(tf.constant([[np.nan, 1.0], [1.0, 1.0]])).numpy(), containing="successful"),
    ]


def by_size(tf, values):
    return tf.gather(values, tf.argsort(tf.math.real(values) + 0.1 * tf.math.imag(values)))


@program()
def eigenvalues_without_symmetry(tf, np):
    turning = tf.constant([[1.0, 2.0], [-2.0, 1.5]])
    return [
        by_size(tf, tf.linalg.eigvals(tf.constant(np.array(A)))),
        by_size(tf, tf.linalg.eig(tf.constant(np.array(A)))[0]),
        by_size(tf, tf.linalg.eigvals(turning)),
        tf.linalg.eigvals(tf.constant(complex_matrix(np))),
        tf.abs(tf.linalg.eig(tf.constant(complex_matrix(np)))[1]),
    ]


@program()
def gradients_of_eigenvalues_without_symmetry(tf, np):
    answers = []
    for matrix in (np.array(A), complex_matrix(np), np.array([[1.0, 2.0], [-2.0, 1.5]])):
        a = tf.constant(matrix)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(a)
            size = tf.reduce_sum(tf.abs(tf.linalg.eigvals(a)) ** 3)
            e, v = tf.linalg.eig(a)
            both = tf.reduce_sum(tf.math.real(e) ** 2) + tf.reduce_sum(tf.abs(v[0]) ** 2)
        answers += [tape.gradient(size, a), tape.gradient(both, a)]
    return answers


@program()
def exponential(tf, np):
    return [
        derivatives(tf, tf.linalg.expm, np.array(A)),
        tf.linalg.expm(tf.constant(A)),
        tf.linalg.expm(tf.constant([[[0.0, 0.001], [0.0, 0.0]], [[0.0, 30.0], [-30.0, 0.0]]], tf.float64)),
        tf.linalg.expm(tf.constant(complex_matrix(np))),
        tf.linalg.expm(tf.zeros([0, 0])),
        tf.linalg.expm(tf.constant([[np.nan, 0.0], [0.0, 1.0]])),
    ]


@program()
def exponential_refused(tf, np):
    return [
        raises(lambda: tf.linalg.expm(tf.constant([[1, 2], [3, 4]])), containing="does not support matrices of type"),
        raises(lambda: tf.linalg.expm(tf.ones([2, 3]))),
    ]


@program()
def rotation_by_exponential(tf, np):
    angle = tf.Variable(0.7, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            skew = tf.constant([[0.0, -1.0], [1.0, 0.0]], tf.float64) * angle
            point = tf.linalg.matvec(tf.linalg.expm(skew), tf.constant([1.0, 2.0], tf.float64))
            y = tf.reduce_sum(point * tf.constant([1.0, -3.0], tf.float64))
        slope = tape.gradient(y, angle)
    return [point, slope, outer.gradient(slope, angle)]


@program()
def square_root(tf, np):
    return [
        derivatives(tf, tf.linalg.sqrtm, np.array(A)),
        tf.linalg.sqrtm(tf.constant([A, A])),
        tf.linalg.sqrtm(tf.constant(complex_matrix(np))),
        tf.linalg.sqrtm(tf.constant([[-1.0, 0.0], [0.0, 2.0]])),
        tf.linalg.sqrtm(tf.constant([[0.0, -1.0], [1.0, 0.0]])),
        raises(lambda: tf.linalg.sqrtm(tf.ones([2, 3])), containing="Input matrix must be square."),
    ]


@program()
def logarithm(tf, np):
    return [
        tf.linalg.logm(tf.constant(complex_matrix(np))),
        tf.linalg.expm(tf.linalg.logm(tf.constant(complex_matrix(np)))),
        tf.linalg.logm(tf.zeros([2, 2], tf.complex128)),
        tf.linalg.logm(tf.linalg.diag(tf.constant([-1.0, 2.0], tf.complex128))),
        raises(lambda: tf.linalg.logm(tf.constant(A))),
    ]
