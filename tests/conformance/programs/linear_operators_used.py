"""Linear operators that convolve or are complex; their products, hints, variables; solutions by iteration."""

from conformance.operator_probes import invertible, methods, numbers, positive, slope
from conformance.probes import derivatives, raises
from conformance.program import program


@program()
def toeplitz(tf, np):
    make = tf.linalg.LinearOperatorToeplitz
    col, row = tf.constant([3.0, 0.5, -0.25, 1.0], tf.float64), tf.constant([3.0, -0.5, 0.75, 0.125], tf.float64)
    return [
        methods(tf, make(col, row)),
        slope(tf, lambda v: make(v, row), col.numpy()),
        slope(tf, lambda v: make(col, v), row.numpy()),
        raises(lambda: make(col, row[:2])),
    ]


@program()
def circulant_by_a_real_spectrum(tf, np):
    spectrum = tf.constant([4.0, 2.0, 1.0, 2.0], tf.float64)
    operator = tf.linalg.LinearOperatorCirculant(spectrum, input_output_dtype=tf.float64, is_positive_definite=True)
    x = numbers(tf, 4, 2)
    return [
        [operator.to_dense(), operator.convolution_kernel(), operator.block_shape.as_list()],
        [operator.matmul(x), operator.matmul(x, adjoint=True), operator.solve(x), operator.matvec(x[:, 0])],
        [operator.determinant(), operator.log_abs_determinant(), operator.trace(), operator.diag_part()],
        [operator.eigvals(), operator.cond(), operator.inverse().to_dense()],
        slope(tf, lambda v: tf.linalg.LinearOperatorCirculant(v, tf.float64), spectrum.numpy()),
    ]


@program()
def circulant_by_a_complex_spectrum(tf, np):
    operator = tf.linalg.LinearOperatorCirculant(tf.signal.fft(tf.constant([2.0, 0.5, -0.25, 0.125], tf.complex64)))
    return [methods(tf, operator), operator.convolution_kernel()]


@program()
def circulant_over_two_and_three_axes(tf, np):
    kernel = tf.cast(numbers(tf, 2, 3), tf.complex128) + 4
    two = tf.linalg.LinearOperatorCirculant2D(tf.signal.fft2d(kernel), input_output_dtype=tf.complex128)
    kernel = tf.cast(numbers(tf, 2, 1, 3), tf.complex128)
    three = tf.linalg.LinearOperatorCirculant3D(tf.signal.fft3d(kernel), input_output_dtype=tf.complex128)
    x = tf.cast(numbers(tf, 6, 2), tf.complex128)
    return [
        [two.to_dense(), two.matmul(x), two.solve(x), two.trace(), two.block_depth, two.determinant()],
        [three.to_dense(), three.matmul(x, adjoint=True), three.solve(x), three.block_depth],
    ]


@program()
def complex_operators(tf, np):
    matrix = tf.complex(invertible(tf, 3, 3), numbers(tf, 3, 3)[::-1])
    d = tf.complex(numbers(tf, 3) + 0.3, numbers(tf, 3)[::-1])
    full, diagonal = tf.linalg.LinearOperatorFullMatrix(matrix), tf.linalg.LinearOperatorDiag(d)
    return [
        methods(tf, full),
        methods(tf, diagonal),
        methods(tf, tf.linalg.LinearOperatorLowerTriangular(matrix)),
        methods(tf, tf.linalg.LinearOperatorKronecker([diagonal, full])),
        methods(tf, tf.linalg.LinearOperatorLowRankUpdate(diagonal, matrix[:, :2])),
    ]


@program()
def products_of_operators(tf, np):
    diagonal = tf.linalg.LinearOperatorDiag(numbers(tf, 3) + 0.3)
    triangular = tf.linalg.LinearOperatorLowerTriangular(invertible(tf, 3, 3))
    identity = tf.linalg.LinearOperatorIdentity(3, dtype=tf.float64)
    scaled = tf.linalg.LinearOperatorScaledIdentity(3, tf.constant(2.0, tf.float64))
    full = tf.linalg.LinearOperatorFullMatrix(invertible(tf, 3, 3))
    pairs = [
        (diagonal, diagonal),
        (diagonal, triangular),
        (triangular, diagonal),
        (identity, full),
        (full, identity),
        (scaled, scaled),
        (scaled, diagonal),
        (full, full),
    ]
    products = [left.matmul(right) for left, right in pairs]
    return [
        [(type(product).__name__, product.is_non_singular, product.to_dense()) for product in products],
        [left.solve(right).to_dense() for left, right in pairs],
        (full @ diagonal).to_dense(),
        raises(lambda: full.matmul(tf.linalg.LinearOperatorIdentity(4, dtype=tf.float64))),
    ]


@program()
def hints_that_are_wrong(tf, np):
    full = tf.linalg.LinearOperatorFullMatrix
    return [
        raises(lambda: full(numbers(tf, 2, 2), is_non_singular=False, is_positive_definite=True)),
        raises(lambda: full(numbers(tf, 2, 2), is_non_singular=True, is_square=False)),
        raises(lambda: full(numbers(tf, 2, 2), is_self_adjoint=True, is_square=False)),
        raises(lambda: full(numbers(tf, 2, 2), is_square=False).is_square),
        raises(lambda: full(numbers(tf, 2))),
        raises(lambda: full([[1, 2], [3, 4]])),
        raises(lambda: full(numbers(tf, 2, 2)).cholesky()),
        raises(lambda: full(numbers(tf, 2, 2)).eigvals()),
        raises(lambda: full(numbers(tf, 2, 3)).determinant()),
        raises(lambda: full(numbers(tf, 2, 3)).solve(numbers(tf, 2, 1))),
        raises(lambda: full(numbers(tf, 2, 3)).inverse()),
        raises(lambda: full(numbers(tf, 2, 3)).matmul(tf.ones([3, 1]))),
        raises(lambda: full(numbers(tf, 2, 3)).matmul(numbers(tf, 2, 1))),
        raises(lambda: tf.linalg.LinearOperatorDiag([1.0, 2.0], is_self_adjoint=False)),
        raises(lambda: tf.linalg.LinearOperatorIdentity(2, is_square=False)),
        raises(lambda: tf.linalg.LinearOperatorIdentity(-1)),
    ]


@program()
def assertions(tf, np):
    full, diagonal = tf.linalg.LinearOperatorFullMatrix, tf.linalg.LinearOperatorDiag
    kinds = [
        diagonal(tf.constant([1.0, 0.0])),
        diagonal(tf.constant([1.0, -2.0])),
        full(tf.constant([[1.0, 2.0], [2.0, 4.0]]), is_self_adjoint=True),
        full(tf.constant([[1.0, 2.0], [0.0, 4.0]])),
        tf.linalg.LinearOperatorIdentity(2),
        tf.linalg.LinearOperatorLowerTriangular([[0.0, 1.0], [1.0, 1.0]]),
    ]

    def fails(check):
        try:
            check()
        except (tf.errors.InvalidArgumentError, NotImplementedError) as error:
            return type(error).__name__
        return "holds"

    return [
        [fails(kind.assert_non_singular), fails(kind.assert_positive_definite), fails(kind.assert_self_adjoint)]
        for kind in kinds
    ]


@program()
def an_operator_of_variables(tf, np):
    diag = tf.Variable(numbers(tf, 3) + 0.3)
    factor = tf.Variable(numbers(tf, 3, 1))
    operator = tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(diag), factor)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(operator.solvevec(numbers(tf, 3)) ** 2) + operator.log_abs_determinant()
    gradients = tape.gradient(loss, [diag, factor])
    diag.assign_add(tf.ones(3, tf.float64))
    return [loss, gradients, operator.to_dense(), len(operator.trainable_variables), operator.parameters["u"] is factor]


@program()
def an_operator_in_a_function(tf, np):
    scale = tf.Variable(tf.constant([1.0, 2.0, 3.0], tf.float64))
    operator = tf.linalg.LinearOperatorDiag(scale, is_positive_definite=True)

    @tf.function
    def gaussian(x):
        """The logarithm of the density of a normal distribution, without its constant."""
        return -0.5 * tf.reduce_sum(x * operator.solvevec(x)) - 0.5 * operator.log_abs_determinant()

    results = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = -gaussian(numbers(tf, 3))
        gradient = tape.gradient(loss, scale)
        scale.assign_sub(0.1 * gradient)
        results.append((loss, gradient))
    return results


@program()
def a_gaussian_process(tf, np):
    x = tf.constant(np.linspace(0.0, 1.0, 5))
    y = numbers(tf, 5)

    def likelihood(parameters):
        kernel = tf.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * parameters[0] ** 2))
        noise = tf.linalg.LinearOperatorScaledIdentity(5, parameters[1], is_positive_definite=True)
        covariance = tf.linalg.LinearOperatorFullMatrix(
            noise.add_to_tensor(kernel), is_self_adjoint=True, is_positive_definite=True
        )
        return tf.tensordot(y, covariance.solvevec(y), 1) + covariance.log_abs_determinant()

    return derivatives(tf, likelihood, np.array([0.5, 0.25]))


@program()
def conjugate_gradients(tf, np):
    solve = tf.linalg.experimental.conjugate_gradient
    operator = tf.linalg.LinearOperatorFullMatrix(positive(tf, 4), is_self_adjoint=True, is_positive_definite=True)
    rhs = numbers(tf, 2, 4)
    state = solve(operator, rhs, tol=1e-12)
    preconditioner = tf.linalg.LinearOperatorDiag(1 / operator.diag_part(), is_positive_definite=True)
    better = solve(operator, rhs, preconditioner, x=tf.ones([2, 4], tf.float64), tol=1e-12)
    return [
        [state.i, state.x, solve(operator, rhs, max_iter=2).i],
        better.x,
        raises(lambda: solve(tf.linalg.LinearOperatorFullMatrix(positive(tf, 4)), rhs)),
    ]


@program()
def gradients_through_conjugate_gradients(tf, np):
    matrix = tf.Variable(positive(tf, 3))
    rhs = tf.Variable(numbers(tf, 3))
    with tf.GradientTape() as tape:
        operator = tf.linalg.LinearOperatorFullMatrix(matrix, is_self_adjoint=True, is_positive_definite=True)
        loss = tf.reduce_sum(tf.linalg.experimental.conjugate_gradient(operator, rhs, max_iter=2).x ** 2)
    return [loss, tape.gradient(loss, [matrix, rhs])]


@program()
def a_written_out_operator_of_ones_own(tf, np):
    class Shift(tf.linalg.LinearOperator):
        def __init__(self, size):
            super().__init__(dtype=tf.float64, is_square=True, name="shift", parameters={"size": size})
            self.size = size

        def _shape(self):
            return tf.TensorShape([self.size, self.size])

        def _shape_tensor(self):
            return tf.constant([self.size, self.size])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            x = tf.linalg.adjoint(x) if adjoint_arg else x
            return tf.roll(x, -1 if adjoint else 1, axis=-2)

    operator = Shift(4)
    x = numbers(tf, 4, 2)
    return [
        [operator.to_dense(), operator.matvec(x[:, 0]), operator.solve(x), operator.determinant()],
        [operator.trace(), operator.name, operator.parameters, operator.adjoint().matmul(x)],
        derivatives(tf, lambda v: operator.solvevec(v) ** 2, numbers(tf, 4).numpy()),
    ]
