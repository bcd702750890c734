"""Diagonals, Cholesky's factorisation, triangular systems, einsum, tensordot and norms."""

from conformance.probes import derivatives, raises
from conformance.program import program

A = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.3], [0.5, -0.3, 2.0]]
B = [[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]]
L = [[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-0.3, 0.2, 1.2]]


@program()
def cholesky(tf, np):
    upper = np.array(A) + np.triu(np.full((3, 3), 100.0), 1)
    return [
        derivatives(tf, tf.linalg.cholesky, A),
        derivatives(tf, lambda a: tf.linalg.cholesky(a) ** 2, np.array([A, np.eye(3) * 2])),
        derivatives(tf, tf.linalg.cholesky, upper),
        tf.linalg.cholesky(tf.ones([0, 0])),
        tf.linalg.cholesky(tf.constant([[2.0, 1j], [-1j, 3.0]], tf.complex128)),
    ]


@program()
def cholesky_of_what_is_not_definite(tf, np):
    return [
        # Above the diagonal lies whatever was in memory before.
        tf.linalg.band_part(tf.linalg.cholesky(-tf.constant(A)), -1, 0),
        tf.linalg.band_part(tf.linalg.cholesky(tf.stack([tf.constant(A), -tf.constant(A)])), -1, 0),
        raises(lambda: tf.linalg.cholesky([1.0, 2.0]), containing="must have rank >= 2, got 1"),
        raises(lambda: tf.linalg.cholesky(tf.ones([2, 3])), containing="Input matrix must be square"),
        raises(lambda: tf.linalg.cholesky(tf.eye(2, dtype=tf.int32))),
    ]


@program()
def triangular_solve(tf, np):
    solve = tf.linalg.triangular_solve
    full = np.array(L) + np.triu(np.full((3, 3), 0.7), 1)
    return {
        f"lower {lower}, adjoint {adjoint}": derivatives(
            tf, lambda a, b: solve(a, b, lower=lower, adjoint=adjoint) ** 2, full, np.array(B)
        )
        for lower in (True, False)
        for adjoint in (True, False)
    }


@program()
def triangular_solve_of_stacks(tf, np):
    solve, chol, b = tf.linalg.triangular_solve, tf.constant(L), tf.constant(B)
    return [
        derivatives(tf, solve, np.stack([np.array(L), 2 * np.array(L)]), np.array(B)),
        derivatives(tf, lambda a, b: solve(a, b, adjoint=True), np.array(L), np.stack([np.array(B)] * 2)),
        solve(tf.zeros([2, 2]), tf.ones([2, 1])),
        solve(L, b),
        solve(chol, B),
        raises(lambda: solve(chol, tf.constant([1.0, 2.0, 3.0])), containing="In[1] ndims must be >= 2: 1"),
        raises(lambda: solve(chol, tf.ones([2, 1])), containing="In[0] mismatch In[1] shape: 3 vs. 2"),
        raises(lambda: solve(tf.ones([2, 3]), tf.ones([2, 1])), containing="must be square (3 =/= 2)"),
        raises(lambda: solve(tf.ones([2, 2, 2]), tf.ones([3, 2, 1])), containing="compatible batch dimensions"),
        raises(lambda: solve(chol, tf.cast(b, tf.float64))),
    ]


@program()
def cholesky_solve_and_log_determinant(tf, np):
    def likelihood(a, b):
        chol = tf.linalg.cholesky(a)
        return tf.reduce_sum(b * tf.linalg.cholesky_solve(chol, b)) + tf.linalg.logdet(a)

    return [
        derivatives(tf, likelihood, np.array(A), np.array(B)),
        tf.linalg.cholesky_solve(L, B),
        tf.linalg.logdet(tf.constant([A, A])),
        tf.linalg.logdet(-tf.constant(A)),
    ]


@program()
def diagonals(tf, np):
    x = np.arange(24.0).reshape(2, 3, 4)
    return [
        derivatives(tf, lambda x: tf.linalg.diag_part(x) ** 2, x),
        derivatives(tf, lambda x: tf.linalg.diag_part(x, k=1) ** 2, x),
        tf.linalg.diag_part(x, k=-2),
        derivatives(tf, lambda d: tf.linalg.diag(d) ** 2, np.array(B)),
        tf.linalg.diag([1.0, 2.0], k=1),
        tf.linalg.diag([1, 2], k=-1),
        tf.linalg.diag([1.0, 2.0], num_rows=3, padding_value=7.0),
        derivatives(tf, lambda x, d: tf.linalg.set_diag(x, d) ** 2, x, x[:, 0, :3]),
        tf.linalg.set_diag(tf.zeros([2, 2]), [9.0], k=1),
        derivatives(tf, lambda x: tf.linalg.trace(x) ** 2, x),
        tf.linalg.trace([[1, 2], [3, 4]]),
    ]


@program()
def diagonals_refused(tf, np):
    return [
        raises(lambda: tf.linalg.diag_part([1.0]), containing="input must be at least 2-dim, received shape: [1]"),
        raises(lambda: tf.linalg.diag_part(tf.ones([2, 2]), k=5), containing="It must be between -2 and 2"),
        raises(lambda: tf.linalg.diag(1.0), containing="diagonal must be at least 1-dim"),
        raises(lambda: tf.linalg.set_diag(tf.ones([2, 2]), [9.0]), containing="Expected diagonal shape: [2]"),
        raises(lambda: tf.linalg.set_diag(tf.ones([2, 2]), tf.constant([1, 2]))),
        raises(lambda: tf.linalg.trace([1.0])),
    ]


@program()
def band_part(tf, np):
    x = np.arange(12.0).reshape(3, 4) + 1
    return [
        derivatives(tf, lambda x: tf.linalg.band_part(x, -1, 0) ** 2, x),
        tf.linalg.band_part(x, 0, 0),
        tf.linalg.band_part(x, 1, -1),
        tf.linalg.band_part(x, 3, 4),
        raises(lambda: tf.linalg.band_part(x, 4, 0), containing="num_lower must be negative or less or equal to"),
        raises(lambda: tf.linalg.band_part([1.0], 1, 0), containing="input must be at least 2-dim"),
    ]


def wave(np, *shape):
    return np.cos(np.arange(float(np.prod(shape)))).reshape(shape)


@program()
def einsum(tf, np):
    cases = {
        "ij,jk->ik": [(2, 3), (3, 4)],
        "ij,jk": [(2, 3), (3, 4)],
        "bij,bkj->bik": [(2, 3, 4), (2, 5, 4)],
        "bhqd,bhkd->bhqk": [(2, 2, 3, 2), (2, 2, 4, 2)],
        "ii->i": [(3, 3)],
        "bii": [(2, 3, 3)],
        "ij->ji": [(2, 3)],
        "ijk->j": [(2, 3, 4)],
        "i,i->": [(3,), (3,)],
        "i,j->ij": [(2,), (3,)],
        "ij,ij->ij": [(2, 3), (2, 3)],
        "i,ij,j->": [(2,), (2, 3), (3,)],
        "ij,jk,kl->il": [(2, 3), (3, 2), (2, 2)],
        "...ij,...jk->...ik": [(3, 2, 2), (2, 4)],
        "...i,...i->...": [(2, 1, 3), (4, 3)],
        "a b c , c d -> a b d": [(2, 2, 3), (3, 2)],
    }
    return {
        equation: derivatives(tf, lambda *xs: tf.einsum(equation, *xs) ** 2, *(wave(np, *shape) for shape in shapes))
        for equation, shapes in cases.items()
    }


@program()
def einsum_refused(tf, np):
    a = tf.ones([2, 2])
    return [
        raises(lambda: tf.einsum("ij,jk->iq", a, a), containing="the label q not present in the input subscripts"),
        raises(lambda: tf.einsum("ij,jk->ik", a), containing='Got 1 inputs for equation "ij,jk->ik", expecting 2'),
        raises(lambda: tf.einsum("ij,kj->ik", a, tf.ones([3, 3])), containing="Expected dimension 2 at axis 1"),
        raises(lambda: tf.einsum("ij1->i", a), containing="Subscripts have incorrect format: ij1->i"),
        raises(lambda: tf.einsum("ijk->i", a), containing="Expected input 0 to have rank 3 but got: 2"),
        raises(lambda: tf.einsum("...i,...i", a, a), containing="but no ellipsis (...) was found in the output"),
        raises(lambda: tf.einsum("ij->iij", a), containing="a label appearing more than once: ij->iij"),
        raises(lambda: tf.einsum("i,i->i", tf.ones([2]), tf.ones([1])), containing="Expected dimension 2 at axis 0"),
        raises(lambda: tf.einsum("ij,jk->ik", a, tf.cast(a, tf.float64))),
        tf.einsum("ij->i", tf.constant([[1, 2], [3, 4]])),
        tf.einsum("ij,jk->ik", a, a, optimize="optimal", name="product"),
    ]


@program()
def tensordot(tf, np):
    a, b = wave(np, 2, 3, 4), wave(np, 4, 3, 5)
    return [
        derivatives(tf, lambda a, b: tf.tensordot(a, b, 1), a, b),
        derivatives(tf, lambda a, b: tf.tensordot(a, b, [[1, 2], [1, 0]]) ** 2, a, b),
        tf.tensordot(a, b, [[-1], [0]]),
        tf.tensordot(a[0], a[1], 2),
        tf.tensordot(tf.constant([1.0, 2.0]), [3.0, 4.0], 0),
        tf.tensordot(tf.ones([2, 3]), tf.ones([2, 3]), [0, 0]),
        raises(lambda: tf.tensordot(a, b, 4), containing="must not be larger than the number of dimensions"),
        raises(lambda: tf.tensordot(a, a, 1)),
        raises(lambda: tf.tensordot(a, b, [[0, 1], [1]]), containing="Different number of contraction axes"),
        raises(lambda: tf.tensordot(a, b, -1), containing="`axes` must be at least 0"),
    ]


@program()
def matrix_products_and_transposes(tf, np):
    a, x = wave(np, 2, 3, 4), wave(np, 2, 4)
    return [
        derivatives(tf, lambda a, x: tf.linalg.matvec(a, x) ** 2, a, x),
        tf.linalg.matvec(a, x[:, :3], transpose_a=True),
        tf.linalg.matvec(tf.constant([[1.0, 2.0]]), [3.0, 4.0]),
        tf.linalg.matrix_transpose(a),
        tf.linalg.adjoint(tf.constant([[1 + 2j, 3j], [4.0, 5 - 1j]])),
        raises(lambda: tf.linalg.matrix_transpose([1.0]), containing="should be a (batch) matrix with rank >= 2"),
        raises(lambda: tf.linalg.matvec(a[0], tf.ones([3], tf.float64))),
    ]


@program()
def norms(tf, np):
    x = wave(np, 2, 3)
    cases = {
        "all": {},
        "rows": {"axis": 1},
        "rows kept": {"axis": 1, "keepdims": True},
        "one": {"ord": 1},
        "columns by one": {"ord": 1, "axis": 0},
        "inf": {"ord": np.inf, "axis": -1},
        "three": {"ord": 3},
        "two": {"ord": 2},
        "frobenius": {"ord": "fro", "axis": [0, 1]},
        "matrix one": {"ord": 1, "axis": [0, 1]},
        "matrix inf": {"ord": np.inf, "axis": [0, 1], "keepdims": True},
    }
    return {name: derivatives(tf, lambda x: tf.norm(x, **how), x) for name, how in cases.items()}


@program()
def norms_at_zero_and_refused(tf, np):
    x = tf.Variable([0.0, 0.0])
    with tf.GradientTape() as tape:
        y = tf.norm(x)
    return [
        y,
        tape.gradient(y, x),
        tf.linalg.norm(tf.constant([3 + 4j])),
        raises(lambda: tf.norm(x, ord=-1), containing="'ord' must be a supported vector norm, got -1"),
        raises(lambda: tf.norm(tf.ones([2, 2]), ord=3, axis=[0, 1]), containing="a supported matrix norm in"),
        raises(lambda: tf.norm(tf.ones([2, 2]), axis="a"), containing="'axis' must be None, an integer, or a tuple"),
        raises(lambda: tf.norm(tf.constant([3, 4]))),
    ]


@program()
def inverse_and_solve(tf, np):
    a, b = np.array(A) + np.triu(np.full((3, 3), 0.7), 1), np.array(B)
    return [
        derivatives(tf, tf.linalg.inv, a),
        derivatives(tf, lambda a: tf.linalg.inv(a, adjoint=True), np.stack([a, 2 * a])),
        derivatives(tf, tf.linalg.solve, a, b),
        derivatives(tf, lambda a, b: tf.linalg.solve(a, b, adjoint=True) ** 2, a, b),
        tf.linalg.inv([[1 + 1j, 2.0], [0.5, 3j]]),
        tf.linalg.inv(tf.ones([0, 0])),
    ]


@program()
def singular_matrices(tf, np):
    x = tf.zeros([2, 2])

    def gradient_of_determinant():
        v = tf.Variable(x)
        with tf.GradientTape() as tape:
            y = tf.linalg.det(v)
        return tape.gradient(y, v).numpy()

    return [
        raises(lambda: tf.linalg.inv(x).numpy(), containing="Input is not invertible"),
        raises(lambda: tf.linalg.solve(x, tf.ones([2, 1])).numpy(), containing="Input matrix is not invertible"),
        raises(gradient_of_determinant, containing="Input is not invertible"),
        tf.linalg.det(x),
        raises(lambda: tf.linalg.inv(tf.ones([2, 3])), containing="Input matrix must be square"),
        raises(lambda: tf.linalg.det(tf.ones([2, 3])), containing="Input matrix must be square"),
        raises(lambda: tf.linalg.solve(x, tf.constant([1.0, 2.0])), containing="must have the same rank"),
        raises(lambda: tf.linalg.solve(tf.eye(2), tf.ones([3, 1]))),
        raises(lambda: tf.linalg.solve(tf.stack([x, x]), tf.ones([3, 2, 1]))),
        raises(lambda: tf.linalg.inv(tf.eye(2, dtype=tf.int32))),
    ]


@program()
def determinants(tf, np):
    a = np.array(A) + np.triu(np.full((3, 3), 0.7), 1)
    return [
        derivatives(tf, tf.linalg.det, a),
        derivatives(tf, tf.linalg.det, np.stack([a, -a])),
        derivatives(tf, lambda a: tf.linalg.slogdet(a)[1], -a),
        derivatives(tf, lambda a: tf.linalg.slogdet(a).sign, -a),
        tf.linalg.slogdet(np.stack([a, -a])).log_abs_determinant,
        tf.linalg.slogdet(tf.zeros([2, 2])).log_abs_determinant,
        tf.linalg.det(tf.ones([0, 0])),
    ]


@program()
def jacobians_of_solutions(tf, np):
    a, b = tf.Variable(np.array(A)), tf.Variable(np.array(B))
    with tf.GradientTape(persistent=True) as tape:
        chol = tf.linalg.cholesky(a)
        x = tf.linalg.triangular_solve(chol, b)
        y = tf.einsum("ij,ik->jk", x, tf.linalg.solve(a, b))
    return [tape.jacobian(chol, a), tape.jacobian(x, b), tape.jacobian(y, [a, b])]


@program()
def tangents_of_solutions(tf, np):
    a, b = tf.constant(np.array(A)), tf.constant(np.array(B))
    along = tf.linalg.diag([0.3, -0.2, 0.5]) + 0.1
    with tf.autodiff.ForwardAccumulator(a, tf.cast(along, tf.float64)) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(a)
            chol = tf.linalg.cholesky(a)
            x = tf.linalg.cholesky_solve(chol, b)
            y = tf.reduce_sum(x * b) + tf.linalg.logdet(a) + tf.linalg.det(a) + tf.linalg.trace(tf.linalg.inv(a))
        slopes = tape.gradient(y, a)
    return [accumulator.jvp([chol, x, y]), slopes, accumulator.jvp(slopes)]


@program()
def products_of_bytes(tf, np):
    a = tf.constant([[1, 2], [3, 127]], tf.int8)
    b = tf.cast(a, tf.uint8)
    wide = tf.matmul(a, a, output_type=tf.int32)
    return [wide, tf.matmul(b, b, transpose_b=True, output_type=tf.int32), tf.matmul(wide, wide, output_type=tf.int32)]
