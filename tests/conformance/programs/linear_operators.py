"""Linear operators: every method of every structure, and systems with them under a tape."""

from conformance.operator_probes import invertible, methods, numbers, positive, slope
from conformance.probes import derivatives, raises
from conformance.program import program


@program()
def full_matrix(tf, np):
    make = tf.linalg.LinearOperatorFullMatrix
    return [
        methods(tf, make(invertible(tf, 3, 3))),
        methods(tf, make(invertible(tf, 2, 3, 3), is_non_singular=True)),
        methods(tf, make(positive(tf, 3), is_self_adjoint=True, is_positive_definite=True)),
        methods(tf, make(numbers(tf, 2, 3)), square=False),
        slope(tf, make, invertible(tf, 3, 3).numpy()),
    ]


@program()
def positive_definite_matrix(tf, np):
    operator = tf.linalg.LinearOperatorFullMatrix(positive(tf, 3), is_self_adjoint=True, is_positive_definite=True)
    factor = operator.cholesky()
    return [
        factor.to_dense(),
        type(factor).__name__,
        operator.eigvals(),
        operator.cond(),
        operator.adjoint() is operator,
    ]


@program()
def diagonal(tf, np):
    make = tf.linalg.LinearOperatorDiag
    d = numbers(tf, 4) + 0.25
    return [
        methods(tf, make(d)),
        methods(tf, make(numbers(tf, 2, 3) + 0.3, is_positive_definite=True)),
        [make(d).eigvals(), make(d).cond(), make(d**2, is_positive_definite=True).cholesky().to_dense()],
        slope(tf, make, d.numpy()),
    ]


@program()
def identities(tf, np):
    identity = tf.linalg.LinearOperatorIdentity(3, dtype=tf.float64)
    batch = tf.linalg.LinearOperatorIdentity(3, batch_shape=[2], dtype=tf.float64)
    scaled = tf.linalg.LinearOperatorScaledIdentity(3, tf.constant([0.5, 2.0], tf.float64))
    return [
        methods(tf, identity),
        methods(tf, batch),
        methods(tf, scaled),
        [identity.eigvals(), identity.cond(), scaled.eigvals(), scaled.cond()],
        slope(tf, lambda v: tf.linalg.LinearOperatorScaledIdentity(3, v), np.array(0.75)),
    ]


@program()
def zeros(tf, np):
    square = tf.linalg.LinearOperatorZeros(3, dtype=tf.float64)
    wide = tf.linalg.LinearOperatorZeros(2, 3, dtype=tf.float64, is_square=False, is_self_adjoint=False)
    return [
        [square.to_dense(), square.determinant(), square.trace(), square.diag_part(), square.eigvals()],
        [wide.matmul(numbers(tf, 3, 2)), wide.matmul(numbers(tf, 2, 2), adjoint=True), wide.shape.as_list()],
        raises(square.assert_non_singular),
        raises(square.inverse),
    ]


@program()
def lower_triangular(tf, np):
    make = tf.linalg.LinearOperatorLowerTriangular
    return [
        methods(tf, make(invertible(tf, 3, 3))),
        methods(tf, make(invertible(tf, 2, 3, 3))),
        slope(tf, make, invertible(tf, 3, 3).numpy()),
    ]


@program()
def low_rank_update(tf, np):
    base = tf.linalg.LinearOperatorDiag(tf.constant([2.0, 3.0, 4.0, 5.0], tf.float64), is_positive_definite=True)
    u, v = numbers(tf, 4, 2), numbers(tf, 4, 2) ** 2
    make = tf.linalg.LinearOperatorLowRankUpdate
    d = tf.constant([0.5, -0.25], tf.float64)
    return [
        methods(tf, make(base, u)),
        methods(tf, make(base, u, d)),
        methods(tf, make(base, u, d, v)),
        methods(tf, make(base, u, abs(d), is_diag_update_positive=True)),
        slope(tf, lambda w: make(base, w), u.numpy()),
        slope(tf, lambda w: make(base, u, w, v), d.numpy()),
    ]


@program()
def composition(tf, np):
    first = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 3, 3), is_non_singular=True)
    second = tf.linalg.LinearOperatorDiag(numbers(tf, 3) + 0.3, is_non_singular=True)
    wide = tf.linalg.LinearOperatorFullMatrix(numbers(tf, 2, 3))
    make = tf.linalg.LinearOperatorComposition
    of_factor = first.matmul(first, adjoint_arg=True)
    return [
        methods(tf, make([first, second])),
        methods(tf, make([wide, second]), square=False),
        [type(of_factor).__name__, of_factor.is_square, of_factor.is_non_singular, of_factor.to_dense()],
        slope(tf, lambda w: make([tf.linalg.LinearOperatorFullMatrix(w), second]), invertible(tf, 3, 3).numpy()),
        raises(lambda: make([])),
    ]


@program()
def adjoint_and_inversion(tf, np):
    operator = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 3, 3), is_non_singular=True)
    adjoint, inverse = operator.adjoint(), operator.inverse()
    return [
        methods(tf, adjoint),
        methods(tf, inverse),
        [adjoint.adjoint() is operator, inverse.inverse() is operator, adjoint.cond(), inverse.cond()],
        raises(lambda: tf.linalg.LinearOperatorAdjoint(operator, is_non_singular=False)),
        raises(lambda: tf.linalg.LinearOperatorInversion(operator, is_non_singular=False)),
    ]


@program()
def kronecker(tf, np):
    first = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 2, 2), is_non_singular=True)
    second = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 3, 3), is_non_singular=True)
    wide = tf.linalg.LinearOperatorFullMatrix(numbers(tf, 2, 3))
    make = tf.linalg.LinearOperatorKronecker
    return [
        methods(tf, make([first, second])),
        [make([wide, second]).to_dense(), make([wide, second]).matmul(numbers(tf, 9, 2))],
        make([wide, second]).matmul(numbers(tf, 6, 2), adjoint=True),
        slope(tf, lambda w: make([first, tf.linalg.LinearOperatorFullMatrix(w)]), invertible(tf, 3, 3).numpy()),
    ]


@program()
def kronecker_of_positive_definite_operators(tf, np):
    factors = [
        tf.linalg.LinearOperatorFullMatrix(positive(tf, size), is_self_adjoint=True, is_positive_definite=True)
        for size in (2, 3)
    ]
    operator = tf.linalg.LinearOperatorKronecker(factors)
    return [methods(tf, operator), operator.eigvals(), operator.cholesky().to_dense()]


@program()
def block_diagonal(tf, np):
    first = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 2, 2), is_non_singular=True)
    second = tf.linalg.LinearOperatorDiag(numbers(tf, 3) + 0.3, is_non_singular=True)
    operator = tf.linalg.LinearOperatorBlockDiag([first, second])
    blocks = [numbers(tf, 2, 2), numbers(tf, 3, 2)]
    vectors = [numbers(tf, 2), numbers(tf, 3)]
    product = operator.matmul(operator)
    return [
        methods(tf, operator),
        [operator.matmul(list(blocks)), operator.solve(list(blocks), adjoint=True)],
        [operator.matvec(list(vectors)), operator.solvevec(list(vectors))],
        [type(product).__name__, product.to_dense()],
        slope(
            tf,
            lambda w: tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(w), second]),
            invertible(tf, 2, 2).numpy(),
        ),
    ]


@program()
def block_lower_triangular(tf, np):
    full = tf.linalg.LinearOperatorFullMatrix
    rows = [
        [full(invertible(tf, 2, 2), is_non_singular=True)],
        [full(numbers(tf, 3, 2)), tf.linalg.LinearOperatorDiag(numbers(tf, 3) + 0.3, is_non_singular=True)],
    ]
    operator = tf.linalg.LinearOperatorBlockLowerTriangular(rows)
    x, y = numbers(tf, 5, 2), numbers(tf, 5)
    blocks = [numbers(tf, 2, 2), numbers(tf, 3, 2)]
    return [
        [operator.to_dense(), operator.determinant(), operator.trace(), operator.diag_part(), operator.shape.as_list()],
        [operator.matmul(x), operator.matmul(x, adjoint=True), operator.matvec(y)],
        [operator.solve(x), operator.solve(x, adjoint=True), operator.solvevec(y), operator.solvevec(y, adjoint=True)],
        [operator.matmul(list(blocks)), operator.solve(list(blocks))],
        slope(
            tf,
            lambda w: tf.linalg.LinearOperatorBlockLowerTriangular([rows[0], [full(w), rows[1][1]]]),
            numbers(tf, 3, 2).numpy(),
        ),
    ]


@program()
def permutation(tf, np):
    operator = tf.linalg.LinearOperatorPermutation([2, 0, 3, 1], dtype=tf.float64)
    x = numbers(tf, 4, 2)
    return [
        [operator.to_dense(), operator.diag_part(), operator.trace(), operator.cond()],
        [operator.matmul(x), operator.matmul(x, adjoint=True), operator.solve(x), operator.solvevec(x[:, 0])],
        derivatives(tf, lambda v: operator.matvec(v) ** 3, numbers(tf, 4).numpy()),
        raises(lambda: tf.linalg.LinearOperatorPermutation([0, 0])),
    ]


@program()
def householder(tf, np):
    make = tf.linalg.LinearOperatorHouseholder
    return [
        methods(tf, make(numbers(tf, 3) + 0.3)),
        make(numbers(tf, 2, 3)).eigvals(),
        slope(tf, make, (numbers(tf, 3) + 0.3).numpy()),
        raises(make(numbers(tf, 3)).assert_positive_definite),
    ]


@program()
def tridiagonal(tf, np):
    make = tf.linalg.LinearOperatorTridiag
    compact = numbers(tf, 3, 4) + tf.constant([[0.0], [3.0], [0.0]], tf.float64)
    matrix = tf.linalg.LinearOperatorTridiag(compact).to_dense()
    return [
        methods(tf, make(compact)),
        methods(tf, make([compact[0], compact[1], compact[2]], "sequence")),
        methods(tf, make(matrix, "matrix")),
        derivatives(tf, lambda v: make(v).solvevec(numbers(tf, 4)) ** 2, compact.numpy()),
        raises(lambda: make(compact, "other")),
    ]
