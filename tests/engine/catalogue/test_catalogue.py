"""Every op obeys every law, the laws can fail, and what they do not cover: memory, broadcasting, random numbers."""

import tracemalloc
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import CpuExecutor, LawError, as_operand
from op_laws.laws import IN_TURN, LAWS, check_op
from teletape_engine.catalogue.attributes import plain
from teletape_engine.catalogue.binding import bind, by_name
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.elementwise import sum_to
from teletape_engine.catalogue.op import CATALOGUE, Sample
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.ops.shapes.cast import stop_gradient
from teletape_engine.spec import DTYPES, Spec

F32 = np.float32


@pytest.mark.laws
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_op_obeys_every_law(name):
    broken = []
    for law in LAWS:
        try:
            check_op(CATALOGUE[name], law=law, in_turn=True)
        except LawError as error:
            broken.append(str(error))
    assert not broken, "\n".join(broken)


@pytest.mark.more
@pytest.mark.timeout(600)
@pytest.mark.parametrize("law", IN_TURN)
def test_every_sample_obeys_the_law_in_every_way(law):
    for op in CATALOGUE.values():
        check_op(op, law=law)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_op_has_samples_whose_attributes_fit_its_json_schema(name):
    op = CATALOGUE[name]
    samples = op.samples()
    assert samples
    for example in samples:
        jsonschema.validate({k: plain(v) for k, v in op.attrs(example.attrs).items()}, op.schema.json())


def test_no_two_ops_claim_one_tensorflow_name():
    names = [name for op in CATALOGUE.values() for name in op.tf]
    assert len(names) == len(set(names))


def test_a_catalogue_is_closed():
    with pytest.raises(TypeError, match="the catalogue is frozen"):
        CATALOGUE.add(CATALOGUE["add"])


# ---------------------------------------------------------------------------------------------- the laws can be broken
def wrong(name, **fields):
    rules = {
        side: tuple(by_name(rule) if callable(rule) else rule for rule in fields.pop(side))
        for side in ("vjp", "jvp")
        if side in fields
    }
    return replace(CATALOGUE[name], bound={}, **rules, **fields)


def _drop_batch(op, args, batched, attrs):
    return op(*args, **attrs)


def _in_place(xp, x):
    x *= 2
    return x


def _alias(xp, x):
    return x


def _float64_number(xp, a, b):
    return xp.add(a, xp.asarray(b))


def _by_value(ct, y):
    return ct * (1 - y * y) if float(y.reshape(-1)[0]) > 0 else ct * 0.5


def _by_kind(ct, y):
    return ct * y if isinstance(ct, np.ndarray | np.generic) else 2 * ct * y


def _by_strides(xp, x):
    return x.ravel(order="K").reshape(x.shape)


def _from_the_first(xp, x, *, axis, keepdims):
    return xp.sum(x - x.reshape(-1)[0], axis=axis, keepdims=keepdims)


def _short_by_dtype(xp, x):
    return xp.exp(x) * x.dtype.type(1 if x.dtype.itemsize == 8 else 1.01)


WRONG = {
    "spec, dtype": ("spec", wrong("exp", infer=lambda x: x.with_dtype(DTYPES["float64"])), r"inferred .*, real"),
    "spec, shape": ("spec", wrong("transpose", infer=lambda x, *, perm: x), "inferred"),
    "vjp, formula": ("vjp", wrong("tanh", vjp=(lambda ct, y: ct * (1 - y),)), r"gradient of x, worst at \["),
    "vjp, shape": ("vjp", wrong("add", vjp=(lambda ct: ct, lambda ct: ct)), "has shape"),
    "vjp, conjugate": ("vjp", wrong("square", vjp=(lambda ct, x: ct * 2 * x,)), "complex128"),
    "jvp": ("jvp", wrong("tanh", jvp=(lambda t, y: t * (1 - y),)), "tangent from x"),
    "transpose": ("transpose", wrong("neg", vjp=(lambda ct: ct,)), "⟨Jᵀ ct, t⟩ of x"),
    "second order": (
        "second_order",
        wrong("exp", vjp=(lambda ct, y: ct * stop_gradient(y),)),
        r"d\(gradient of x\)/d\(x\)",
    ),
    "structure, sparse": ("structure", wrong("gather", sparse=frozenset()), "predicted"),
    "structure, value": ("structure", wrong("tanh", vjp=(_by_value,)), "Operand"),
    "batch, axis": ("batch", wrong("reduce_sum", batch=_drop_batch), "x batched"),
    "batch, none": ("batch", wrong("exp", batch=None), "no batch rule"),
    "batch, ranks": ("batch", wrong("mul", batch=_drop_batch), "broadcast|has shape|worst"),
    "rows, kind": ("rows", wrong("exp", vjp=(_by_kind,)), "the gradients of x at once, worst at"),
    "numbers": ("numbers", wrong("add", forward=_float64_number), "float64, as an array float32"),
    "layouts": ("layouts", wrong("neg", forward=_by_strides), "the result of transposed arrays"),
    "empty": ("empty", wrong("reduce_sum", forward=_from_the_first), "index 0 is out of bounds"),
    "dtypes": ("dtypes", wrong("exp", forward=_short_by_dtype), "the result in float32"),
    "halves": ("halves", wrong("sigmoid", forward=lambda xp, x: 1 / (1 + xp.exp(-x))), "the result in float16"),
    "halves, gradient": ("halves", wrong("atan", vjp=(lambda ct, x: ct / (1 + x * x),)), "gradient of x in float16"),
    "halves, pair": (
        "halves",
        wrong("atan2", vjp=(lambda ct, a, b: ct * b / (a * a + b * b), lambda ct, a, b: -ct * a / (a * a + b * b))),
        "the gradient of a in float16",
    ),
    "views, write": ("views", wrong("neg", forward=_in_place), "read-only"),
    "views, alias": ("views", wrong("exp", forward=_alias), "shares memory"),
    "record, name": ("record", wrong("exp", vjp=(lambda ct, z: ct * z,)), "a rule needs 'z'"),
    "record, doc": ("record", wrong("exp", doc="exp"), "says nothing"),
}


def test_a_further_sample_is_checked_in_two_dtypes():
    dtypes = []

    def infer(x):
        dtypes.append(x.dtype.name)
        return x

    op = wrong("identity", infer=infer, samples=lambda: [sample(np.ones(n)) for n in (2, 3, 4)])
    check_op(op, law="spec", in_turn=True)
    assert sorted(dtypes[:-4]) == sorted(DTYPES)
    assert dtypes[-4:] == ["float64", "float32", "float64", "complex64"]


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_op_breaks_the_law(why):
    law, op, text = WRONG[why]
    check_op(CATALOGUE[op.name], law=law)  # what is wrong is the change alone
    with pytest.raises(LawError, match=text) as caught:
        check_op(op, law=law)
    assert caught.match(f"op '{op.name}' .*'{law}'")


def test_an_op_declared_non_differentiable_has_no_gradient_to_check():
    check_op(wrong("exp", vjp=(NON_DIFFERENTIABLE,), jvp=(NON_DIFFERENTIABLE,)), law="vjp")


def test_an_unregistered_op_must_refuse():
    check_op(CATALOGUE["adjust_contrast"], law="vjp")
    op = wrong("adjust_contrast", vjp=(NOT_REGISTERED, NON_DIFFERENTIABLE))
    check_op(op, law="vjp")  # one missing rule is enough


# --------------------------------------------------------------------------------------------------------------- memory
N = 200_000
ROWS = {
    "softmax": ([(2000, 100)], {}),
    "log_softmax": ([(2000, 100)], {}),
    "reduce_logsumexp": ([(2000, 100)], {"axis": 1}),
    "reduce_euclidean_norm": ([(N,)], {}),
    "reduce_sum": ([(N,)], {}),
    "reduce_mean": ([(2000, 100)], {"axis": 0}),
    "reduce_prod": ([(2000, 100)], {"axis": 0}),
    "reduce_max": ([(2000, 100)], {"axis": 0}),
    "argmax": ([(2000, 100)], {}),
    "cumsum": ([(N,)], {"exclusive": True}),
    "l2_loss": ([(N,)], {}),
    "matmul": ([(300, 400), (400, 500)], {}),
    "softmax_cross_entropy": ([(2000, 100), (2000, 100)], {}),
    "add": ([(N,), (N,)], {}),
    "tanh": ([(N,)], {}),
    "sigmoid": ([(N,)], {}),
    "softplus": ([(N,)], {}),
    "erf": ([(N,)], {}),
    "leaky_relu": ([(N,)], {}),
    "relu_grad": ([(N,), (N,)], {}),
    "gelu": ([(N,)], {}),
    "gelu_grad": ([(N,), (N,)], {"approximate": True}),
    "elu": ([(N,)], {}),
    "selu": ([(N,)], {}),
    "rsqrt": ([(N,)], {}),
    "relu6": ([(N,)], {}),
    "squared_difference": ([(N,), (N,)], {}),
    "floordiv": ([(N,), (N,)], {}),
    "concat": ([(N,), (N,)], {"axis": 0}),
    "pad": ([(N,)], {"paddings": ((10, 10),)}),
    "tile": ([(N,)], {"multiples": (2,)}),
    "strided_slice_grad": ([(N,)], {"index": ((0, N, None),), "shape": (2 * N,)}),
    "resize": ([(4, 50, 60, 3)], {"size": (120, 100)}),
    "resize_backprop": ([(4, 50, 60, 3)], {"shape": (4, 120, 100, 3), "method": "area"}),
    "adjust_contrast": ([(2, 100, 500, 3), ()], {}),
    "transpose": ([(2000, 100)], {}),
    "cast": ([(N,)], {"dtype": "float64"}),
    "conv2d": ([(16, 32, 32, 8), (3, 3, 8, 16)], {"padding": "SAME"}),
    "conv2d_backprop_input": ([(16, 30, 30, 16), (3, 3, 8, 16)], {"shape": (16, 32, 32, 8)}),
    "conv2d_backprop_filter": ([(16, 32, 32, 8), (16, 30, 30, 16)], {"shape": (3, 3, 8, 16)}),
    "max_pool": ([(16, 32, 32, 8)], {"ksize": (3, 3), "strides": (2, 2), "padding": "SAME"}),
    "max_pool_backprop": ([(16, 16, 16, 8), (16, 32, 32, 8)], {"ksize": (2, 2), "strides": (2, 2)}),
    "max_pool_pick": ([(16, 32, 32, 8), (16, 32, 32, 8)], {"ksize": (2, 2), "strides": (2, 2)}),
    "avg_pool": ([(16, 32, 32, 8)], {"ksize": (3, 3), "strides": (2, 2), "padding": "SAME"}),
    "avg_pool_backprop": ([(16, 16, 16, 8)], {"ksize": (2, 2), "strides": (2, 2), "shape": (16, 32, 32, 8)}),
    "band_part": ([(300, 400)], {"num_lower": 1, "num_upper": -1}),
    "diag": ([(400,)], {}),
    "set_diag": ([(300, 400), (300,)], {}),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ROWS)
def test_the_price_covers_what_the_forward_allocates(name, dtype):
    shapes, attrs = ROWS[name]
    op = CATALOGUE[name]
    random = np.random.default_rng(0)
    arrays = [random.uniform(0.2, 0.9, shape).astype(dtype) for shape in shapes]
    bound = bind(op, tuple(Spec.of(array.shape, array.dtype) for array in arrays), op.attrs(attrs))
    assert allocated(bound, arrays) <= 1.05 * bound.price + 200_000


def allocated(bound, arrays):
    """Bytes at the peak of the forward."""
    with np.errstate(all="ignore"):
        bound.forward(np, *arrays)  # what the first call alone allocates is not its price
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            bound.forward(np, *arrays)
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()


IDS = np.arange(N) % 1000
STATE = np.array([0, 2, 1])


@pytest.mark.parametrize(
    ("name", "arrays", "attrs"),
    [
        ("gather", [np.ones((1000, 4), F32), IDS], {}),
        ("unsorted_segment_sum", [np.ones((N, 4), F32), IDS], {"num_segments": 1000}),
        ("philox_normal", [STATE], {"shape": (N,)}),
        ("philox_truncated_normal", [STATE], {"shape": (N,)}),
        ("philox_uniform", [STATE], {"shape": (N,), "dtype": "float16"}),
        ("philox_bits", [STATE], {"shape": (N,)}),
        ("philox_gamma", [STATE, np.ones(N, F32)], {"shape": (N,)}),
        ("philox_poisson", [STATE, np.ones(N, F32)], {"shape": (N,)}),
        ("philox_binomial", [STATE, np.ones(N, F32), np.ones(N, F32)], {"shape": (N,)}),
        ("philox_categorical", [STATE, np.ones((3, N), F32)], {"num_samples": N}),
        ("philox_permutation", [STATE], {"n": N}),
        ("conv2d", [np.ones((8, 60, 60, 16), F32), np.ones((3, 3, 1, 32), F32)], {"padding": "SAME"}),
        (
            "conv2d_backprop_input",
            [np.ones((8, 60, 60, 32), F32), np.ones((3, 3, 1, 32), F32)],
            {"padding": "SAME", "shape": (8, 60, 60, 16)},
        ),
        (
            "conv2d_backprop_filter",
            [np.ones((8, 60, 60, 16), F32), np.ones((8, 60, 60, 32), F32)],
            {"padding": "SAME", "shape": (3, 3, 1, 32)},
        ),
        (
            "projective_transform",
            [np.ones((4, 60, 60, 3), F32), np.ones((4, 8), F32)],
            {"output_shape": (60, 60), "interpolation": "BILINEAR"},
        ),
        ("sparse_softmax_cross_entropy", [IDS % 50, np.ones((N, 50), F32)], {}),
        ("one_hot", [IDS], {"depth": 20}),
        ("nonzero", [np.ones(N, F32)], {}),
        ("range", [], {"limit": N}),
        ("linspace", [np.array(0.0), np.array(1.0)], {"num": N}),
        ("cholesky", [np.eye(400)], {}),
        ("unsorted_segment_max", [np.ones((N, 4), F32), IDS], {"num_segments": 1000}),
        ("unsorted_segment_min", [np.ones((N, 4), F32), IDS - 1], {"num_segments": 1000}),
        ("cumprod", [np.ones((N, 4), F32)], {"exclusive": True, "reverse": True}),
        ("inv", [np.eye(300)], {"adjoint": True}),
        ("solve", [np.eye(300), np.ones((300, 100))], {"adjoint": True}),
        ("det", [np.eye(300)], {}),
        ("log_abs_det", [np.eye(300)], {}),
        ("det_sign", [np.eye(300)], {}),
        ("triangular_solve", [np.eye(300), np.ones((300, 400))], {}),
        ("triangular_solve", [np.eye(300), np.ones((3, 300, 40))], {"adjoint": True}),
    ],
)
def test_the_price_of_what_makes_arrays_covers_it(name, arrays, attrs):
    op = CATALOGUE[name]
    bound = bind(op, tuple(Spec.of(array.shape, array.dtype) for array in arrays), op.attrs(attrs))
    assert allocated(bound, arrays) <= 1.05 * bound.price + 200_000


# ----------------------------------------------------------------------------------------------------------- properties
@settings(max_examples=150)
@given(hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3, 1, 2), max_dims=4, max_side=3))
def test_sum_to_is_the_transpose_of_broadcasting(shapes):
    (shape,), out = shapes
    random = np.random.default_rng(0)
    x, ct = random.uniform(-1, 1, shape), random.uniform(-1, 1, out)
    result = np.asarray(sum_to(ct, shape))
    assert result.shape == shape
    np.testing.assert_allclose(np.sum(result * x), np.sum(ct * np.broadcast_to(x, out)), rtol=1e-9, atol=1e-9)


@st.composite
def indexed(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    index = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=7))
    return shape, index if isinstance(index, tuple) else (index,)


@settings(max_examples=300)
@given(indexed())
def test_strided_slice_is_numpys_indexing(case):
    shape, index = case
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    written = [
        [item.start, item.stop, item.step] if isinstance(item, slice) else "..." if item is ... else item
        for item in index
    ]
    op = CATALOGUE["strided_slice"]
    attrs = op.attrs({"index": written})
    expected = x[index]
    bound = bind(op, (Spec.of(shape, x.dtype),), attrs)
    assert bound.spec.shape == expected.shape
    np.testing.assert_array_equal(bound.forward(np, x), expected)
    back = CATALOGUE["strided_slice_grad"](np.asarray(expected), index=attrs["index"], shape=shape)
    zeros = np.zeros(shape)
    zeros[index] = expected
    np.testing.assert_array_equal(back, zeros)


@settings(max_examples=100)
@given(st.data())
def test_specs_of_reductions_are_numpys(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    axis = data.draw(st.none() | hnp.valid_tuple_axes(len(shape)))
    keepdims = data.draw(st.booleans())
    op = CATALOGUE["reduce_sum"]
    bound = bind(op, (Spec.of(shape, DTYPES["float32"]),), op.attrs({"axis": axis, "keepdims": keepdims}))
    axes = None if axis is None else axis
    assert bound.spec.shape == np.sum(np.ones(shape, F32), axis=axes, keepdims=keepdims).shape


@settings(max_examples=100)
@given(st.data())
def test_gather_and_its_transpose_agree_with_plain_indexing(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    ids = data.draw(
        hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=2), elements=st.integers(0, shape[axis] - 1))
    )
    x = np.random.default_rng(1).uniform(-1, 1, shape)
    taken = CATALOGUE["gather"](x, ids, axis=axis)
    np.testing.assert_array_equal(taken, np.take(x, ids, axis=axis))
    back = CATALOGUE["unsorted_segment_sum"](taken, ids, num_segments=shape[axis], axis=axis)
    expected = np.zeros(shape)
    np.add.at(expected, (slice(None),) * axis + (ids,), taken)
    np.testing.assert_allclose(back, expected)


# ------------------------------------------------------------------------------------------------------ random numbers
def draw(name, seed, counter, **attrs):
    return CATALOGUE[name](np.array(seed), np.array(counter), **attrs)


@pytest.mark.parametrize("name", ["random_normal", "random_uniform", "truncated_normal"])
def test_random_numbers_hang_on_seed_and_counter_alone(name):
    first = draw(name, 7, 1, shape=(100,))
    np.testing.assert_array_equal(first, draw(name, 7, 1, shape=(100,)))
    assert not np.array_equal(first, draw(name, 7, 2, shape=(100,)))
    assert not np.array_equal(first, draw(name, 8, 1, shape=(100,)))
    assert not np.array_equal(draw(name, 1, 2, shape=(100,)), draw(name, 2, 1, shape=(100,)))


def test_random_moments():
    n = 200_000
    normal = draw("random_normal", 3, 0, shape=(n,), dtype=np.dtype("float64"))
    assert abs(normal.mean()) < 5 / np.sqrt(n)
    assert abs(normal.var() - 1) < 5 * np.sqrt(2 / n)
    uniform = draw("random_uniform", 3, 0, shape=(n,))
    assert uniform.dtype == F32
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5 / np.sqrt(12 * n)
    cut = draw("truncated_normal", 3, 0, shape=(n,))
    assert np.abs(cut).max() <= 2
    assert abs(cut.var() - 0.7737413) < 0.01  # 1 - 4φ(2)/(2Φ(2) - 1)
    whole = CATALOGUE["random_uniform_int"](np.array(3), np.array(0), np.array(-2), np.array(3), shape=(n,))
    assert set(np.unique(whole)) == {-2, -1, 0, 1, 2}
    assert np.abs(np.bincount(whole + 2) / n - 0.2).max() < 5 * np.sqrt(0.16 / n)


def test_half_uniform_never_reaches_one():
    drawn = draw("random_uniform", 0, 0, shape=(300_000,), dtype=np.dtype("float16"))
    assert drawn.max() < 1


def test_slices_are_what_gather_gives():
    op = CATALOGUE["gather"]
    plan = bind(op, (Spec.of((3, 2), DTYPES["float32"]), Spec.of((2, 2), DTYPES["int32"])), op.attrs({})).plan(1)
    ((i, rule),) = plan.rules
    indices = np.array([[0, 1], [1, 1]], np.int32)
    result = rule(np.ones((2, 2, 2), F32), [indices])
    assert i == 0
    assert isinstance(result, SparseGradient)
    assert result.values.shape == (4, 2)
    assert result.indices.tolist() == [0, 1, 1, 1]
    assert result.indices.dtype == np.int32
    assert result.dense is Spec.of((3, 2), DTYPES["float32"])


def test_samples_are_drawn_from_their_seed():
    first, again = sample((2, 2), seed=4), sample((2, 2), seed=4)
    np.testing.assert_array_equal(first.inputs[0], again.inputs[0])
    assert isinstance(first, Sample)


def test_context_of_the_laws_runs_ops():
    context = CpuExecutor()
    result = context.apply(CATALOGUE["add"], [as_operand(context, np.array(1.0)), as_operand(context, 2)])
    assert result.array == 3
