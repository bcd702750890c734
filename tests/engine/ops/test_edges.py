"""Values, gradients and messages at ties, zeros, infinities and bad input: as TensorFlow 2.21 gives them."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import CpuExecutor, as_operand, dense
from teletape_engine.arrays import backend
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.tape import Tape

F32 = np.float32
INF, NAN = np.inf, np.nan


def run(name, *inputs, **attrs):
    """The result of one op; lists are float32 arrays, Python numbers stay numbers."""
    context, op = CpuExecutor(), CATALOGUE[name]
    with backend("cpu").quiet():
        results = [as_operand(context, array(operand)) for operand in inputs]
        return np.asarray(context.apply(op, results, op.attrs(attrs)).array)


def array(item):
    return np.array(item, F32) if isinstance(item, list) else item


def gradients(f, *inputs):
    """(dy, d(Σ dy)): the gradient of f by each array input, and of the sum of those; None if it is unconnected."""
    context = CpuExecutor()
    with backend("cpu").quiet():
        results = [as_operand(context, array(operand)) for operand in inputs]
        arrays = [item for item in results if item.uid is not None]
        outer, inner = Tape(), Tape()
        for tape in (outer, inner):
            context.context.open(tape)
            context.context.watch(tape, arrays)
        y = f(lambda name, *args, **attrs: context.apply(CATALOGUE[name], args, CATALOGUE[name].attrs(attrs)), *results)
        first = gradient(context, GradientQuery(inner, [y], arrays))
        targets = [item.values if isinstance(item, SlicesValue) else item for item in first if item is not None]
        second = gradient(context, GradientQuery(outer, targets, arrays))
    return [plain(item) for item in first], [plain(item) for item in second]


def plain(item):
    result = dense(item)
    return None if result is None else np.asarray(result).tolist()


def of(name, **attrs):
    return lambda call, *args: call(name, *args, **attrs)


def close(result, expected):
    if expected is None or result is None:
        assert result is expected
    else:
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-6)


def clip(call, x):
    return call("clip_by_value", x, call("fill", scalar(0.0), shape=()), call("fill", scalar(1.0), shape=()))


def scalar(number):
    return CpuExecutor().constant(np.array(number, F32))


Z = [-1.0, 0.0, 2.0]
EDGES = {
    "maximum, tie": (of("maximum"), ([1.0, 3, 3], [2.0, 3, 1]), [[0, 1, 1], [1, 0, 0]], [None, None]),
    "minimum, tie": (of("minimum"), ([1.0, 3, 3], [2.0, 3, 1]), [[1, 1, 0], [0, 0, 1]], [None, None]),
    "maximum, nan": (of("maximum"), ([1.0, NAN], [NAN, 1.0]), [[0, 0], [1, 1]], [None, None]),
    "reduce_max, tie": (of("reduce_max"), ([1.0, 3, 3],), [[0, 0.5, 0.5]], [None]),
    "reduce_min, tie": (of("reduce_min"), ([1.0, 1, 3],), [[0.5, 0.5, 0]], [None]),
    "reduce_max, nan": (of("reduce_max"), ([1.0, NAN, 3],), [[NAN] * 3], [None]),
    "clip": (clip, ([-1.0, 0, 0.5, 1, 2],), [[0, 1, 1, 1, 0]], [None]),
    "abs": (of("abs"), (Z,), [[-1, 0, 1]], [[0, 0, 0]]),
    "relu": (of("relu"), (Z,), [[0, 0, 1]], [[0, 0, 0]]),
    "relu6": (of("relu6"), ([-1.0, 0, 2, 6, 7],), [[0, 0, 1, 0, 0]], [[0] * 5]),
    "leaky_relu": (of("leaky_relu"), (Z,), [[0.2, 0.2, 1]], [[0, 0, 0]]),
    "elu": (of("elu"), (Z,), [[0.36787945, 1, 1]], [[0.36787945, 0, 0]]),
    "selu, at 0": (of("selu"), ([0.0],), [[1.050701]], [[0]]),
    "sign": (of("sign"), (Z,), [[0, 0, 0]], [None]),
    "sqrt": (of("sqrt"), ([0.0, 4],), [[INF, 0.25]], [[-INF, -0.03125]]),
    "rsqrt": (of("rsqrt"), ([0.0, 4],), [[-INF, -0.0625]], [[INF, 0.0234375]]),
    "log": (of("log"), ([0.0, 4],), [[INF, 0.25]], [[-INF, -0.0625]]),
    "log1p": (of("log1p"), ([-1.0, 0],), [[INF, 1]], [[-INF, -1]]),
    "x**0": (of("pow"), ([0.0, 2], 0.0), [[NAN, 0]], [[NAN, 0]]),
    "x**2": (of("pow"), ([0.0, 2], 2.0), [[0, 4]], [[2, 2]]),
    "x**0.5": (of("pow"), ([0.0, 4], 0.5), [[INF, 0.25]], [[-INF, -0.03125]]),
    "2**x": (of("pow"), (2.0, [0.0, 2]), [[0.6931472, 2.7725887]], [[0.48045301, 1.921812]]),
    "pow": (
        of("pow"),
        ([0.0, 0, 2, -2, 0], [0.0, 2, 3, 2, -1]),
        [[NAN, 0, 12, -4, -INF], [0, 0, 5.5451775, 0, NAN]],
        [[NAN, 2, 24.317766, 2, NAN], [NAN, 0, 16.16139, -2, NAN]],
    ),
    "division by zero": (of("div"), ([1.0, 0], [0.0, 0]), [[INF, INF], [-INF, NAN]], [[-INF, -INF], [NAN, NAN]]),
    "floordiv": (of("floordiv"), ([7.0, -7], [2.0, 2]), [None, None], [None, None]),
    "floormod": (of("floormod"), ([7.0, -7], [2.0, 2]), [[1, 1], [-3, 4]], [None, None]),
    "reduce_prod, a zero": (of("reduce_prod"), ([0.0, 2, 3],), [[6, 0, 0]], [[5, 3, 2]]),
    "reduce_prod, two zeros": (of("reduce_prod"), ([0.0, 0, 3],), [[0, 0, 0]], [[3, 3, 0]]),
    "norm at 0": (of("reduce_euclidean_norm"), ([0.0, 0],), [[NAN, NAN]], [[NAN, NAN]]),
    "std at 0": (of("reduce_std"), ([1.0, 1],), [[NAN, NAN]], [[NAN, NAN]]),
    "variance at 0": (of("reduce_variance"), ([1.0, 1],), [[0, 0]], None),
    "logsumexp of -inf": (of("reduce_logsumexp"), ([-INF, -INF],), [[NAN, NAN]], [[NAN, NAN]]),
    "softplus": (of("softplus"), ([0.0, 100, -100],), [[0.5, 1, 0]], [[0.25, 0, 0]]),
    "squared_difference": (of("squared_difference"), ([1.0, 2], [3.0, 3]), [[-4, -2], [4, 2]], [[0, 0], [0, 0]]),
    "cast": (of("cast", dtype="float64"), ([1.5],), [[1]], [None]),
    "floor": (of("floor"), ([1.5],), [None], [None]),
    "stop_gradient": (of("stop_gradient"), ([1.5],), [None], [None]),
    "reshape": (of("reshape", shape=[1]), ([1.5],), [[1]], [None]),
    "where, the nan trap": (
        lambda call, x: call("where", call("greater", x, scalar(0.0)), call("log", x), call("zeros_like", x)),
        ([0.0, 2],),
        [[NAN, 0.5]],
        None,
    ),
    "softmax cross-entropy": (
        of("softmax_cross_entropy"),
        ([[0.3, 0.7]], [[1.0, 2]]),
        [[[1.31326162, 0.31326166]], [[-0.0310586, 0.0310586]]],
        None,
    ),
    "sigmoid cross-entropy": (
        of("sigmoid_cross_entropy"),
        ([0.0, 1, 0.5], [0.0, 2, -3]),
        [[0, -2, 3], [0.5, -0.1192029, -0.4525741]],
        [[-1, -1, -1], [-0.75, -0.8950064, -0.9548233]],
    ),
    "linspace": (of("linspace", num=3), (np.array(0.0, F32), np.array(1.0, F32)), [1.5, 1.5], [None, None]),
    "gather twice": (of("gather"), ([1.0, 2, 3], np.array([0, 0, 2])), [[2, 0, 1], None], [None, None]),
}


@pytest.mark.parametrize("name", EDGES)
def test_gradients_at_the_edge(name):
    f, inputs, first, second = EDGES[name]
    found_first, found_second = gradients(f, *inputs)
    for result, expected in zip(found_first, first, strict=True):
        close(result, expected)
    for result, expected in zip(found_second, second or (), strict=bool(second)):
        close(result, expected)


def test_a_gather_of_the_source_is_sparse_and_of_other_axes_dense():
    context = CpuExecutor()
    x, ids = as_operand(context, np.ones((3, 2), F32)), as_operand(context, np.array([[0, 1]], np.int32))
    for axis, kind in ((0, SlicesValue), (1, None)):
        tape, op = Tape(), CATALOGUE["gather"]
        context.context.open(tape)
        context.context.watch(tape, [x])
        y = context.apply(op, [x, ids], op.attrs({"axis": axis}))
        (result,) = gradient(context, GradientQuery(tape, [y], [x]))
        assert isinstance(result, SlicesValue) == (kind is not None)


Z1 = np.array([1 + 2j], np.complex64)
COMPLEX = {
    "x·x": (lambda call, z: call("mul", z, z), 2 - 4j, 2),
    "x·conj x": (lambda call, z: call("mul", z, call("conj", z)), 2 + 4j, 2),
    "real": (of("real"), 1, None),
    "imag": (of("imag"), 1j, None),
    "exp": (of("exp"), -1.1312044 - 2.4717267j, -1.1312044 - 2.4717267j),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients_follow_the_conjugate_convention(name):
    f, first, second = COMPLEX[name]
    (result,), (then,) = gradients(f, Z1)
    close(result, [first])
    close(then, None if second is None else [second])


def test_abs_of_complex():
    (result,), (then,) = gradients(of("abs"), np.array([3 + 4j, 0], np.complex64))
    close(result, [0.6 + 0.8j, 0])
    close(then, [0.128 - 0.096j, 0])


VALUES = {
    "int / int": (("div", np.array([1]), np.array([2])), np.array([0.5])),
    "int8 / int8": (("div", np.array([1], np.int8), np.array([2], np.int8)), np.array([0.5], F32)),
    "int / number": (("div", np.array([7]), 2), np.array([3.5])),
    "floordiv": (("floordiv", [-7.0], 2.0), [-4.0]),
    "floordiv, rounding": (("floordiv", [1.0], np.array([0.1], F32)), [10.0]),
    "floordiv by 0": (("floordiv", [1.0], 0.0), [INF]),
    "floormod": (("floormod", np.array(-7), np.array(3)), np.array(2)),
    "round": (("round", [0.5, 1.5, 2.5, -0.5]), [0.0, 2, 2, -0.0]),
    "sign": (("sign", [NAN, -0.0]), [NAN, 0.0]),
    "maximum, nan": (("maximum", [1.0, NAN], [NAN, 1.0]), [NAN, NAN]),
    "mean of ints": (("reduce_mean", np.array([-1, -2], np.int32)), np.array(-1, np.int32)),
    "mean of nothing": (("reduce_mean", np.zeros(0, F32)), np.array(NAN, F32)),
    "sum wraps": (("reduce_sum", np.array([200, 100], np.uint8)), np.array(44, np.uint8)),
    "max of nothing": (("reduce_max", np.zeros(0, F32)), np.array(-INF, F32)),
    "min of nothing": (("reduce_min", np.zeros(0, F32)), np.array(INF, F32)),
    "max of no ints": (("reduce_max", np.zeros(0, np.int32)), np.array(-(2**31), np.int32)),
    "prod of nothing": (("reduce_prod", np.zeros(0, F32)), np.array(1, F32)),
    "logsumexp of nothing": (("reduce_logsumexp", np.zeros(0, F32)), np.array(-INF, F32)),
    "logsumexp, large": (("reduce_logsumexp", [1000.0, 0]), np.array(1000, F32)),
    "logsumexp, -inf": (("reduce_logsumexp", [-INF]), np.array(-INF, F32)),
    "argmax, ties": (("argmax", [1.0, 3, 3]), np.array(1)),
    "argmax, nan": (("argmax", [1.0, NAN, 3]), np.array(2)),
    "softmax, large": (("softmax", [1000.0, 0]), [1.0, 0]),
    "log_softmax, large": (("log_softmax", [1000.0, 0]), [0.0, -1000]),
    "softplus": (("softplus", [20.0, -20]), [20.0, 2.0611537e-09]),
    "sigmoid": (("sigmoid", [-100.0, 100]), [0.0, 1]),
    "expm1": (("expm1", [1e-8]), [1e-8]),
    "cast, toward zero": (("cast", [1.7, -1.7], {"dtype": "int32"}), np.array([1, -1], np.int32)),
    "cast, to bool": (("cast", [0.0, -2], {"dtype": "bool"}), np.array([False, True])),
    "cast, real part": (("cast", Z1, {"dtype": "float32"}), [1.0]),
    "one_hot, outside": (("one_hot", np.array([1, -1, 3]), {"depth": 3}), [[0.0, 1, 0], [0, 0, 0], [0, 0, 0]]),
    "range, floats": (("range", {"start": 1, "limit": 2, "delta": 0.25}), [1.0, 1.25, 1.5, 1.75]),
    "range, down": (("range", {"start": 3, "limit": 0, "delta": -1}), np.array([3, 2, 1], np.int32)),
    "nonzero": (("nonzero", np.array([[1, 0], [0, 2]])), np.array([[0, 0], [1, 1]])),
    "pad": (("pad", [1.0, 2], {"paddings": [[1, 2]], "constant_value": 5}), [5.0, 1, 2, 5, 5]),
    "reflect": (("mirror_pad", [1.0, 2, 3], {"paddings": [[1, 2]], "mode": "REFLECT"}), [2.0, 1, 2, 3, 2, 1]),
    "symmetric": (("mirror_pad", [1.0, 2, 3], {"paddings": [[1, 1]], "mode": "SYMMETRIC"}), [1.0, 1, 2, 3, 3]),
    "int matmul": (("matmul", np.array([[1, 2]]), np.array([[1], [2]])), np.array([[5]])),
    "adjoint": (("matmul", Z1[None], Z1[None], {"adjoint_a": True}), np.array([[5]], np.complex64)),
    "a class of no probability": (("softmax_cross_entropy", [1.0, 0], [0.0, -INF]), np.array(0, F32)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_at_the_edge(name):
    (op, *inputs), expected = VALUES[name]
    attrs = inputs.pop() if inputs and isinstance(inputs[-1], dict) else {}
    result, expected = run(op, *inputs, **attrs), np.asarray(array(expected))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6)


I32 = np.array([1, 2], np.int32)
M = [[1.0, 2, 3], [4, 5, 6]]
BAD = [
    (("add", [1.0, 2], I32), {},
     "cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a int32 tensor"),
    (("add", [1.0, 2], [1.0, 2, 3]), {}, "Incompatible shapes: [2] vs. [3]"),
    (("add", I32, 1.5), {}, "a Python float cannot take the dtype int32 of the array in the same call"),
    (("exp", I32), {},
     "Value for attr 'T' of int32 is not in the list of allowed values: bfloat16, half, float, double, "
     "complex64, complex128"),
    (("logical_and", I32, I32), {},
     "cannot compute LogicalAnd as input #0(zero-based) was expected to be a bool tensor but is a int32 tensor"),
    (("floordiv", I32, np.array([1, 0], np.int32)), {}, "Integer division by zero"),
    (("floormod", I32, 0), {}, "Integer division by zero"),
    (("pow", I32, -1), {}, "Integers to negative integer powers are not allowed"),
    (("where", I32, I32, I32), {},
     "cannot compute SelectV2 as input #0(zero-based) was expected to be a bool tensor but is a int32 tensor"),
    (("where", I32 > 0, [1.0, 2, 3], [1.0, 2, 3]), {},
     "condition [2], then [3], and else [3] must be broadcastable"),
    (("matmul", [[1.0, 2]], [[1.0, 2]]), {}, "Matrix size-incompatible: In[0]: [1,2], In[1]: [1,2]"),
    (("matmul", [1.0, 2], [1.0, 2]), {}, "In[0] and In[1] ndims must be == 2: 1. matvec multiplies a matrix and a"),
    (("matmul", [[1.0, 2]], [1.0, 2]), {},
     "In[0] and In[1] has different ndims: [1,2] vs. [2]. matvec multiplies a matrix and a vector, dot also two"),
    (("numpy_matmul", [[1.0, 2]], [1.0, 2, 3]), {},
     "sums over the last axis of a and the only axis of b, which must have the same length; found [1,2] and [3]"),
    (("numpy_matmul", [1.0, 2], [[1.0, 2]]), {}, "the last but one axis of b, which must have the same length"),
    (("numpy_matmul", [1.0, 2], 2.0), {}, "found [2] and []: a number is multiplied with *"),
    (("dot", np.ones((2, 3)), np.ones((2, 2, 3))), {}, "must have the same length; found [2,3] and [2,2,3]"),
    (("matmul", [[1.0]], [[1.0]]), {"transpose_a": True, "adjoint_a": True},
     "Only one of `transpose_a` and `adjoint_a`"),
    (("reshape", [1.0, 2, 3]), {"shape": [2, 2]},
     "Input to reshape is a tensor with 3 values, but the requested shape has 4"),
    (("reshape", [1.0, 2, 3]), {"shape": [-1, 2]}, "the requested shape requires a multiple of 2"),
    (("reshape", [1.0, 2, 3]), {"shape": [-1, -1]}, "Only one input size may be -1, not both 0 and 1"),
    (("reshape", [1.0]), {"shape": [-2]}, "Size 0 must be non-negative, not -2"),
    (("expand_dims", [1.0]), {"axis": 3}, "Tried to expand dim index 3 for tensor with 1 dimensions."),
    (("squeeze", [[1.0, 2]]), {"axis": 1}, "Can not squeeze dim[1], expected a dimension of 1, got 2"),
    (("squeeze", [[1.0, 2]]), {"axis": 5}, "Tried to squeeze dim index 5 for tensor with 2 dimensions."),
    (("transpose", [[1.0, 2]]), {"perm": [0, 0]}, "1 is missing from {0,0}."),
    (("transpose", [[1.0, 2]]), {"perm": [0]},
     "transpose expects a vector of size 2. But input(1) is a vector of size 1"),
    (("transpose", [[1.0, 2]]), {"perm": [0, 2]}, "2 is out of range [0 .. 2)"),
    (("broadcast_to", [1.0, 2]), {"shape": [3, 3]}, "Incompatible shapes: [2] vs. [3,3]"),
    (("broadcast_to", [[1.0, 2]]), {"shape": [2]},
     "Rank of input (2) must be no greater than rank of output shape (1)."),
    (("tile", [1.0]), {"multiples": [2, 2]},
     "Expected multiples argument to be a vector of length 1 but got length 2"),
    (("tile", [1.0]), {"multiples": [-1]}, "Expected multiples[0] >= 0, but got -1"),
    (("concat", [[1.0, 2]], [[1.0]]), {"axis": 0},
     "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [1,2] vs. shape[1] = [1,1]"),
    (("concat", [[1.0]], [1.0]), {"axis": 0}, "ConcatOp : Ranks of all input tensors should match"),
    (("concat", [[1.0]], [[1.0]]), {"axis": 2}, "concatenating dimensions in the range [-2, 2), but got 2"),
    (("concat", 1.0, 2.0), {"axis": 0}, "Can't concatenate scalars"),
    (("concat",), {"axis": 0}, "takes one or more inputs, found none"),
    (("stack", [1.0], [1.0, 2]), {},
     "Shapes of all inputs must match: values[0].shape = [1] != values[1].shape = [2]"),
    (("stack", [1.0], [1.0]), {"axis": 2}, "Argument `axis` = 2 not in range [-2, 2)"),
    (("add_n", [1.0], [1.0, 2]), {}, "must have the same size and shape.  Input 0: [1] != input 1: [2]"),
    (("pad", [1.0, 2]), {"paddings": [[-1, 2]]}, "Paddings must be non-negative: -1 2"),
    (("pad", [1.0, 2]), {"paddings": [[1, 2], [0, 0]]},
     "The first dimension of paddings must be the rank of inputs[2,2] [2]"),
    (("mirror_pad", [1.0, 2]), {"paddings": [[1, 2]], "mode": "REFLECT"},
     "paddings must be less than the dimension size: 1, 2 not less than 2"),
    (("strided_slice", M), {"index": [2]}, "slice index 2 of dimension 0 out of bounds."),
    (("strided_slice", M), {"index": [-3]}, "slice index -1 of dimension 0 out of bounds."),
    (("strided_slice", M), {"index": [0, 0, 0]}, "Index out of range using input dim 2; input has only 2 dims"),
    (("strided_slice", M), {"index": [[None, None, 0]]}, "strides[0] must be non-zero"),
    (("strided_slice", 1.0), {"index": [0]}, "Attempting to slice scalar input."),
    (("gather", [1.0, 2], np.array([0, 2])), {}, "indices[1] = 2 is not in [0, 2)"),
    (("gather", [1.0, 2], np.array(-1)), {}, "indices = -1 is not in [0, 2)"),
    (("gather", [[1.0, 2]], np.array([[0], [5]])), {"axis": 1}, "indices[1,0] = 5 is not in [0, 2)"),
    (("gather", [1.0, 2], [0.0]), {},
     "Value for attr 'Tindices' of float is not in the list of allowed values: int16, int32, int64"),
    (("gather", [[1.0, 2]], np.array([0])), {"axis": 2}, "Shape must be at least rank 3 but is rank 2"),
    (("gather", 1.0, np.array(0)), {}, "params must be at least 1 dimensional"),
    (("unsorted_segment_sum", [1.0], np.array([5])), {"num_segments": 3},
     "segment_ids[0] = 5 is out of range [0, 3)"),
    (("unsorted_segment_sum", [1.0], np.array([0, 1])), {"num_segments": 3},
     "data.shape = [1] does not start with segment_ids.shape = [2]"),
    (("reduce_sum", [1.0]), {"axis": 1}, "Invalid reduction dimension (1 for input with 1 dimension(s)"),
    (("reduce_sum", [[1.0]]), {"axis": [0, 0]},
     "Invalid reduction arguments: Axes contains duplicate dimension: 0"),
    (("reduce_any", I32), {},
     "cannot compute Any as input #0(zero-based) was expected to be a bool tensor but is a int32"),
    (("argmax", [1.0]), {"axis": 1}, "Expected dimension in the range [-1, 1), but got 1"),
    (("argmax", np.zeros(0, F32)), {}, "Reduction axis 0 is empty in shape [0]"),
    (("softmax", [1.0]), {"axis": 1},
     "`dim` must be in the range [-1, 1) where 1 is the number of dimensions in the input. Received: dim=1"),
    (("softmax", 1.0), {}, "logits must have >= 1 dimension, got []"),
    (("softmax_cross_entropy", [[1.0, 0]], [[1.0, 2, 3]]), {},
     "logits and labels must be broadcastable: logits_size=[1,3] labels_size=[1,2]"),
    (("sparse_softmax_cross_entropy", np.array([2]), [[1.0, 2]]), {},
     "Received a label value of 2 which is outside the valid range of [0, 2).  Label values: 2"),
    (("sparse_softmax_cross_entropy", np.array([1, 0]), [[1.0, 2]]), {},
     "`labels.shape` must equal `logits.shape` except for the last dimension. Received: labels.shape=(2,) "
     "and logits.shape=(1, 2)"),
    (("sigmoid_cross_entropy", [1.0], [1.0, 2]), {}, "must have the same shape, received ((2,) vs (1,))."),
    (("bias_add", [[1.0, 2]], [1.0, 2, 3]), {},
     "Must provide as many biases as the last dimension of the input tensor: [3] vs. [1,2]"),
    (("bias_add", [1.0], [1.0]), {}, "Input tensor must be at least 2D: [1]"),
    (("adjust_contrast", [1.0, 2], 2.0), {}, "input must be at least 3-D, got shape[2]"),
    (("complex", [1.0], np.array([1.0])), {}, "incorrect types: float32 float64"),
    (("range",), {"start": 3, "limit": 0}, "Requires start <= limit when delta > 0: 3/0"),
    (("range",), {"limit": 3, "delta": 0}, "Requires delta != 0: 0"),
    (("range",), {"limit": "Infinity"}, "Requires finite numbers"),
    (("one_hot", np.array([0])), {"depth": -1}, "depth must be non-negative, got: -1"),
    (("one_hot", [0.0]), {"depth": 1}, "Value for attr 'T' of float is not in the list of allowed values"),
    (("fill", [1.0]), {"shape": [2]}, "value must be a scalar, found shape [1]"),
    (("philox_integers", np.array([0, 2, 1]), 5, 5), {"shape": [2]}, "Need minval < maxval, got 5 >= 5"),
    (("random_normal", 1.5, 2), {"shape": [2]}, "seed must be an integer scalar, found float32 of shape []"),
    (("philox_normal", np.array([0, 2, 1])), {"shape": [2], "dtype": "int32"},
     "Value for attr 'dtype' of int32 is not in the list"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "attrs", "text"), BAD, ids=[f"{n}-{call[0]}" for n, (call, _, _) in enumerate(BAD)])
def test_bad_input_says_what_is_wrong(call, attrs, text):
    name, *inputs = call
    with pytest.raises(InvalidArgumentError) as caught:
        run(name, *inputs, **attrs)
    assert text in str(caught.value)
    assert caught.value.details["op"] in (name, "minimum", "maximum")
