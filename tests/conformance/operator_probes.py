"""What programs of linear operators ask of every operator, and the matrices that they make them of."""

from conformance.probes import derivatives


def numbers(tf, *shape):
    """Numbers that no structure makes special, the same on every machine: float64."""
    count = 1
    for length in shape:
        count *= length
    return tf.reshape(tf.cast(tf.range(count) * 37 % 11, tf.float64) / 8 - 0.5, shape)


def positive(tf, size):
    """A symmetric positive definite matrix."""
    factor = numbers(tf, size, size)
    return tf.matmul(factor, factor, transpose_b=True) + size * tf.eye(size, dtype=tf.float64)


def invertible(tf, *shape):
    return numbers(tf, *shape) + 2 * tf.eye(shape[-1], dtype=tf.float64)


def methods(tf, operator, square=True):
    """What the operator says of itself, and what it does with matrices and vectors."""
    rows, columns = operator.shape[-2:]
    x, y = numbers(tf, columns, 2), numbers(tf, rows, 2)
    x, y = tf.cast(x, operator.dtype), tf.cast(y, operator.dtype)
    adjoint = tf.linalg.adjoint
    results = {
        "dense": operator.to_dense(),
        "hints": [
            operator.is_square,
            operator.is_non_singular,
            operator.is_self_adjoint,
            operator.is_positive_definite,
        ],
        "shape": [operator.shape.as_list(), operator.batch_shape.as_list(), operator.tensor_rank, operator.name],
        "matmul": [operator.matmul(x), operator.matmul(y, adjoint=True), operator.matmul(adjoint(x), adjoint_arg=True)],
        "matvec": [operator.matvec(x[:, 0]), operator.matvec(y[:, 0], adjoint=True)],
        "parts": [operator.diag_part(), operator.trace()],
        "sum": operator.add_to_tensor(tf.ones(operator.shape, operator.dtype)),
    }
    if square:
        results |= {
            "solve": [
                operator.solve(y),
                operator.solve(x, adjoint=True),
                operator.solve(adjoint(y), adjoint_arg=True),
            ],
            "solvevec": [operator.solvevec(y[:, 0]), operator.solvevec(x[:, 0], adjoint=True)],
            "determinant": operator.determinant(),
            "others": [operator.adjoint().to_dense(), operator.inverse().to_dense()],
        }
        if not operator.dtype.is_complex:
            results["log"] = operator.log_abs_determinant()
    return results


def slope(tf, make, x):
    """First and second derivatives of a number that a system and a product make, by what the operator is made of."""

    def value(v):
        operator = make(v)
        y = tf.cast(numbers(tf, operator.shape[-1]), operator.dtype)
        return tf.reduce_sum(tf.abs(operator.solvevec(y)) ** 2) + tf.reduce_sum(tf.abs(operator.matvec(y)) ** 2)

    return derivatives(tf, value, x)
