"""Sparse derivatives: the structure of every op holds its derivatives, and few products give every entry."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case, CpuExecutor, as_operand
from teletape_engine.catalogue.op import CATALOGUE, Reach
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.derivatives.jacobian import jacobian
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.second_order import hessian
from teletape_engine.derivatives.sparsity.colouring import coloured
from teletape_engine.derivatives.sparsity.pattern import Pattern, index_dtype
from teletape_engine.derivatives.sparsity.sparse import sparse_hessian, sparse_jacobian
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal


class Program(CpuExecutor):
    """A context in which ops are called by name."""

    def __call__(self, name, *inputs, **attrs):
        op = CATALOGUE[name]
        return self.apply(
            op, [as_operand(self, x) if isinstance(x, np.ndarray) else x for x in inputs], op.attrs(attrs)
        )


def recorded(function, x, **options):
    """The context, a persistent tape, the result and the source of `function` at an array."""
    c, tape = Program(), Tape(persistent=True)
    source = as_operand(c, x)
    tape.watch(source)
    c.context.open(tape)
    result = function(c, source)
    c.context.pause(tape)
    return c, GradientQuery(tape, [result], [source], **options)


def dense(matrix):
    out = np.zeros(matrix.shape, matrix.values.spec.dtype)
    rows, columns = matrix.numbers("coo")
    places = rows.astype(np.int64) * matrix.shape[1] + columns
    assert np.all(np.diff(places) > 0)  # row by row, no place twice
    out[rows, columns] = matrix.values.array
    return out


# ----------------------------------------------------------------------------------------------------- every op's reach
DIFFERENTIABLE = sorted(
    name
    for name, op in CATALOGUE.items()
    if op.expand is None and not all(isinstance(rule, NoGradient) for rule in op.vjp)
)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_what_an_op_does_not_reach_has_no_derivative(name):
    op = CATALOGUE[name]
    for sample in op.samples():
        case = Case(op, sample)
        for i in case.differentiable():
            if isinstance(op.rule(op.vjp, i), NoGradient) or not case.inputs[i].size:
                continue

            def call(c, source, case=case, i=i):
                inputs = [source if j == i else as_operand(c, x) for j, x in enumerate(case.inputs)]
                return case.applied(c, inputs)

            c, query = recorded(call, case.inputs[i])
            if not (query.targets[0].spec.differentiable and query.targets[0].spec.size):
                continue
            [expected] = jacobian(c, query)
            matrix = sparse_jacobian(c, query)
            if expected is None:
                assert matrix is None
            else:
                whole = expected.array.reshape(matrix.shape)
                np.testing.assert_allclose(dense(matrix), whole, rtol=1e-9, atol=1e-12, err_msg=f"{i} {case.attrs}")


@pytest.mark.parametrize("reach", Reach)
def test_every_reach_is_used(reach):
    assert any(CATALOGUE[name].reach is reach for name in DIFFERENTIABLE)


# ------------------------------------------------------------------------------------------------------------- programs
X = np.random.default_rng(0).normal(size=24)


def chain(c, x, n=24):
    """Neighbours interact: a tridiagonal Hessian."""
    first = c("strided_slice", x, index=((1, None, None),))
    second = c("strided_slice", x, index=((None, n - 1, None),))
    step = c("square", c("sub", first, c("square", second)))
    return c("add", c("reduce_sum", step), c("reduce_sum", c("pow", x, Literal(4.0))))


def arrow(c, x):
    """Every element interacts with the first."""
    return c("reduce_sum", c("mul", c("sin", x), c("strided_slice", x, index=(0,))))


def blocks(c, x):
    """Six groups of four elements."""
    return c("reduce_sum", c("softmax", c("reshape", c("square", x), shape=(6, 4))))


def grid(c, x):
    """The neighbours of each element of a 4 × 6 grid, by a convolution: four zeros of the stencil reach nothing."""
    stencil = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]).reshape(3, 3, 1, 1)
    image = c("reshape", c("square", x), shape=(1, 4, 6, 1))
    return c("reduce_sum", c("square", c("conv2d", image, stencil, padding="SAME")))


def scattered(c, x):
    """Each element with the one that an index names, and sums by segments."""
    pairs = c("mul", x, c("gather", x, np.roll(np.arange(24), 5)))
    sums = c("unsorted_segment_sum", pairs, np.arange(24) % 8, num_segments=8)
    return c("reduce_sum", c("exp", c("mul", sums, Literal(0.1))))


def whole(c, x):
    """All with all."""
    return c("square", c("reduce_sum", c("square", x)))


def linear(c, x):
    return c("reduce_sum", c("mul", x, Literal(3.0)))


def nothing(c, x):
    """Connected, but with a derivative of zero everywhere."""
    return c("reduce_sum", c("mul", c("sign", x), Literal(2.0)))


HESSIANS = {chain: 3, arrow: 2, blocks: 4, grid: 14, scattered: 24, whole: 24}


@pytest.mark.parametrize("function", HESSIANS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("bounds", [{}, {"max_bytes": 1}, {"chunk_size": 2}], ids=str)
def test_a_sparse_hessian_is_the_hessian_in_few_products(function, bounds):
    c, query = recorded(function, X, **bounds)
    before = len(query.tape.nodes)
    matrix = sparse_hessian(c, query)
    assert len(query.tape.nodes) == before
    [[expected]] = hessian(c, replace(query, max_bytes=None))
    np.testing.assert_allclose(dense(matrix), expected.array, rtol=1e-12, atol=1e-12)
    assert matrix.vector_products <= HESSIANS[function]


def test_a_linear_function_has_no_second_derivative():
    c, query = recorded(linear, X)
    assert hessian(c, query) == [[None]]
    assert sparse_hessian(c, query) is None
    c, query = recorded(linear, X, zeros=True)
    matrix = sparse_hessian(c, query)
    assert (matrix.shape, len(matrix.columns), matrix.vector_products) == ((24, 24), 0, 0)
    assert matrix.numbers("csr")[0].tolist() == [0] * 25


def test_a_derivative_of_zero_everywhere_is_a_matrix_without_entries():
    c, query = recorded(nothing, X)
    matrix = sparse_jacobian(c, query)
    assert (matrix.shape, len(matrix.columns), matrix.vector_products) == ((1, 24), 0, 0)


def by_columns(c, x):
    """A Jacobian with full columns: one product from the right for each of two, and the rest from either side."""
    ends = c("concat", c("strided_slice", x, index=((0, 2, None),)), np.zeros(22), axis=0)
    return c("add", c("square", x), c("reduce_sum", ends))


def by_rows(c, x):
    """A full row, and a diagonal."""
    first = c("reshape", c("reduce_sum", c("sin", x)), shape=(1,))
    return c("concat", first, c("exp", c("strided_slice", x, index=((1, None, None),))), axis=0)


def differences(c, x):
    return c("sub", c("strided_slice", x, index=((1, None, None),)), c("strided_slice", x, index=((0, 23, None),)))


def tall(c, x):
    """Each element in many rows: four columns share a product."""
    return c("broadcast_to", c("square", x), shape=(50, 24))


@pytest.mark.parametrize(("function", "most"), [(by_columns, 3), (by_rows, 2), (differences, 2), (tall, 1)])
@pytest.mark.parametrize("bounds", [{}, {"max_bytes": 1}], ids=str)
def test_a_sparse_jacobian_is_the_jacobian_in_few_products(function, most, bounds):
    c, query = recorded(function, X, **bounds)
    [expected] = jacobian(c, replace(query, max_bytes=None))
    matrix = sparse_jacobian(c, query)
    np.testing.assert_allclose(dense(matrix), expected.array.reshape(matrix.shape), rtol=1e-12)
    assert matrix.vector_products <= most


def test_a_complex_jacobian_has_the_rows_of_the_dense_one():
    c, query = recorded(lambda c, x: c("mul", x, c("strided_slice", x, index=((None, None, -1),))), X[:6] * (1 + 2j))
    matrix = sparse_jacobian(c, query)
    np.testing.assert_allclose(dense(matrix), jacobian(c, query)[0].array)
    assert matrix.vector_products == 2


def test_a_tape_that_is_not_persistent_answers_once():
    c, query = recorded(chain, X)
    query.tape.persistent = False
    assert sparse_hessian(c, query).vector_products == 3
    assert query.tape.consumed
    assert not query.tape.nodes


def test_an_active_tape_does_not_record_the_answer():
    c, query = recorded(chain, X)
    c.context.open(query.tape)
    before = len(query.tape.nodes)
    sparse_hessian(c, query)
    assert len(query.tape.nodes) == before
    assert c.context.tapes == [query.tape]


def test_under_an_outer_tape_that_follows_the_target_it_is_refused():
    c, query = recorded(chain, X)
    outer = Tape()
    c.context.open(outer)
    assert sparse_hessian(c, query).vector_products == 3  # it follows nothing of this
    outer.watch(query.targets[0])
    with pytest.raises(UnimplementedError, match="another tape records what this target depends on"):
        sparse_jacobian(c, query)


def test_several_sources_or_targets_are_refused():
    c, query = recorded(chain, X)
    query.sources = [*query.sources, query.targets[0]]
    with pytest.raises(InvalidArgumentError, match="one source, found 2"):
        sparse_hessian(c, query)
    query.sources = query.sources[:1]
    query.targets = [*query.targets, query.targets[0]]
    with pytest.raises(InvalidArgumentError, match="one target, found 2"):
        sparse_jacobian(c, query)
    with pytest.raises(InvalidArgumentError, match="coo or csr, found 'csc'"):
        sparse_hessian(c, query).numbers("csc")


def test_a_dense_hessian_of_many_variables_is_refused_before_it_is_built():
    c, query = recorded(whole, np.ones(20_000))
    tracemalloc.start()
    try:
        with pytest.raises(ResourceExhaustedError, match="it is not sparse"):
            sparse_hessian(c, query)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_tridiagonal_hessian_takes_three_products_and_little_memory():
    n = 100_000
    x = np.random.default_rng(1).normal(size=n).astype(np.float32)
    c, query = recorded(lambda c, x: chain(c, x, n), x, max_bytes=1)
    tracemalloc.start()
    try:
        matrix = sparse_hessian(c, query)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (matrix.vector_products, len(matrix.columns)) == (3, 3 * n - 2)
    assert peak < 10e6  # 100 bytes for each variable


# ------------------------------------------------------------------------------------------------------------ colouring
def pattern_of(matrix):
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
    return Pattern(matrix.shape[1], columns.astype(index_dtype(1)), starts.astype(np.int32))


@pytest.mark.parametrize("seed", range(20))
def test_lines_of_one_colour_share_nothing_but_hubs(seed):
    random = np.random.default_rng(seed)
    matrix = random.random((30, 20)) < 0.08
    matrix[:, random.integers(20, size=seed % 3)] = True
    colouring = coloured(pattern_of(matrix), columns=True, hubs=True)
    lines = matrix.copy() if colouring.by_rows else matrix.T.copy()
    lines[:, colouring.hubs] = False
    for colour in range(colouring.groups):
        assert lines[colouring.colours == colour].sum(axis=0).max() <= 1
    assert not lines[colouring.colours < 0].any()
    assert colouring.products <= 30


# ------------------------------------------------------------------------------------------------------ random programs
def step(c, random, values):
    """The result of a random op on some of these values, each [n] with n from 1 to 12."""
    x, other = [values[i] for i in random.integers(len(values), size=2)]
    n = x.spec.shape[0]
    kind = random.integers(12)
    if kind == 0:
        return c(random.choice(["sin", "square", "exp", "sigmoid", "neg"]), c("mul", x, Literal(0.3)))
    if kind == 1:
        return c("mul", x, other) if n == other.spec.shape[0] else c("mul", x, c("reduce_mean", other, keepdims=True))
    if kind == 2:
        first = int(random.integers(n))
        return c("strided_slice", x, index=((first, int(random.integers(first, n)) + 1, None),))
    if kind == 3:
        return c("gather", x, random.integers(n, size=int(random.integers(1, 8))))
    if kind == 4 and n + other.spec.shape[0] <= 12:
        return c("concat", x, other, axis=0)
    if kind == 5:
        return c(random.choice(["cumsum", "softmax", "sort", "log_softmax"]), x, axis=-1)
    if kind == 6:
        return c("unsorted_segment_sum", x, random.integers(-1, 4, size=n), num_segments=4)
    if kind == 7:
        return c("roll", x, shift=(int(random.integers(5)),), axis=(0,))
    if kind == 8 and n % 2 == 0:
        turned = c("transpose", c("reshape", x, shape=(2, n // 2)))
        return c("reshape", c("matmul", turned, np.array([[1.0, 2.0], [0.5, -1.0]])), shape=(n,))
    if kind == 9 and n % 3 == 0:
        return c("reduce_sum", c("reshape", x, shape=(3, n // 3)), axis=int(random.integers(2)))
    if kind == 10:
        return c("where", random.random(n) < 0.5, x, c("square", x))
    return c("scatter_nd", random.integers(6, size=(n, 1)), x, shape=(6,))


@pytest.mark.parametrize("seed", range(60))
def test_derivatives_of_a_random_program_are_the_dense_ones(seed):
    def program(c, x):
        random, values = np.random.default_rng(seed), [x]
        for _ in range(8):
            values.append(step(c, random, values))
        return values[-1]

    x = np.random.default_rng(seed).uniform(0.2, 1.5, size=6 + seed % 7)
    c, query = recorded(program, x)
    [expected], matrix = jacobian(c, query), sparse_jacobian(c, query)
    assert (expected is None) == (matrix is None)
    if matrix is not None:
        np.testing.assert_allclose(dense(matrix), expected.array.reshape(matrix.shape), rtol=1e-10, atol=1e-12)
    [[expected]], matrix = hessian(c, query), sparse_hessian(c, query)
    assert (expected is None) == (matrix is None)
    if matrix is not None:
        np.testing.assert_allclose(dense(matrix), expected.array, rtol=1e-10, atol=1e-12)
