"""Graphs of one operator, with their inputs; `make onnx-answers` stores what ONNX Runtime answers to them.

Long because it is one list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, shape_inference


class Fixed(NamedTuple):
    """An input that is an initializer of the graph."""

    array: Any


@dataclass(frozen=True)
class Case:
    """A graph and the arrays for its inputs, by name."""

    model: bytes
    inputs: dict[str, Any]


CASES: dict[str, Case] = {}


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape) + len(shape)).normal(size=shape).astype(np.float32)


def _positive(*shape: int) -> Any:
    return np.abs(_normal(*shape)) + np.float32(0.25)


def _integers(*values: Any) -> Fixed:
    return Fixed(np.array(values, np.int64))


def _case(label: str, operator: str, *inputs: Any, opset: int = 17, outputs: int = 1, **attributes: Any) -> None:
    names, graph_inputs, initializers, arrays = [], [], [], {}
    for number, value in enumerate(inputs):
        name = "" if value is None else f"x{number}"
        names.append(name)
        if isinstance(value, Fixed):
            initializers.append(numpy_helper.from_array(value.array, name))
        elif value is not None:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            graph_inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
            arrays[name] = value
    results = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    infos = [ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph([node], "case", graph_inputs, infos, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    assert label not in CASES, label
    model = shape_inference.infer_shapes(model)
    for result in model.graph.output:
        if not result.HasField("type"):  # GroupNormalization has no inference
            result.type.CopyFrom(model.graph.input[0].type)
    CASES[label] = Case(model.SerializeToString(), arrays)


# -------------------------------------------------------------------------------------------------------- elementwise
for name in "Abs Atan Ceil Cos Elu Erf Exp Floor HardSigmoid HardSwish Identity LeakyRelu Neg Relu Round".split():
    _case(name, name, _normal(3, 4) * 3)
for name in "Selu Sigmoid Sign Sin Sinh Softplus Softsign Tan Tanh Celu ThresholdedRelu Shrink Asinh Cosh".split():
    _case(name, name, _normal(3, 4) * 2)
for name in "Log Sqrt Reciprocal".split():
    _case(name, name, _positive(3, 4))
for name in "Acos Asin Atanh".split():
    _case(name, name, np.tanh(_normal(3, 4)))
_case("Acosh", "Acosh", _positive(3, 4) + 1)
_case("Mish", "Mish", _normal(3, 4), opset=18)
_case("Gelu", "Gelu", _normal(3, 4), opset=20)
_case("Gelu tanh", "Gelu", _normal(3, 4), opset=20, approximate="tanh")
_case("Elu alpha", "Elu", _normal(3, 4), alpha=0.5)
_case("LeakyRelu alpha", "LeakyRelu", _normal(3, 4), alpha=0.2)
_case("HardSigmoid alpha", "HardSigmoid", _normal(3, 4) * 4, alpha=0.3, beta=0.4)
for name in "Add Sub Mul Div".split():
    _case(name, name, _normal(3, 4), _positive(4))
    _case(f"{name} int32", name, np.array([7, -7, 8], np.int32), np.array([2, 2, -3], np.int32))
_case("Pow", "Pow", _positive(3, 4), _normal(3, 4))
_case("Pow int exponent", "Pow", _normal(3, 4), np.array(2, np.int64))
_case("Mod", "Mod", np.array([7, -7, 8], np.int64), np.array([3, 3, -3], np.int64))
_case("Mod fmod", "Mod", np.array([7.5, -7.5], np.float32), np.array([2.0, 2.0], np.float32), fmod=1)
for name in "Equal Greater GreaterOrEqual Less LessOrEqual".split():
    _case(name, name, np.array([1, 2, 3], np.float32), np.array([2, 2, 2], np.float32))
for name in "And Or Xor".split():
    _case(name, name, np.array([True, True, False]), np.array([True, False, False]))
_case("Not", "Not", np.array([True, False]))
for name in "Max Min Sum Mean".split():
    _case(name, name, _normal(3, 4), _normal(4), _normal(3, 1))
_case("Where", "Where", np.array([True, False, True]), _normal(2, 3), _normal(3))
_case("Clip", "Clip", _normal(3, 4), Fixed(np.float32(-0.5)), Fixed(np.float32(0.5)))
_case("Clip low", "Clip", _normal(3, 4), Fixed(np.float32(-0.5)))
_case("Clip high", "Clip", _normal(3, 4), None, Fixed(np.float32(0.5)))
_case("PRelu", "PRelu", _normal(2, 3, 4), _positive(3, 1))
_case("Cast", "Cast", np.array([1.7, -1.7], np.float32), to=TensorProto.INT64)
_case("CastLike", "CastLike", np.array([1.7, -1.7], np.float32), np.array([1], np.int32))
_case("IsNaN", "IsNaN", np.array([np.nan, 1, np.inf], np.float32))
_case("IsInf", "IsInf", np.array([np.inf, 1, -np.inf], np.float32), detect_negative=0)
_case("BitwiseAnd", "BitwiseAnd", np.array([6, 3], np.int32), np.array([3, 5], np.int32), opset=18)

# ------------------------------------------------------------------------------------------------------------- shapes
_case("Reshape", "Reshape", _normal(2, 3, 4), _integers(0, -1))
_case("Reshape split", "Reshape", _normal(2, 12), _integers(2, 3, 2, 2))
_case("Flatten", "Flatten", _normal(2, 3, 4))
_case("Flatten 0", "Flatten", _normal(2, 3, 4), axis=0)
_case("Flatten last", "Flatten", _normal(2, 3, 4), axis=-1)
_case("Transpose", "Transpose", _normal(2, 3, 4), perm=[1, 2, 0])
_case("Transpose reversed", "Transpose", _normal(2, 3, 4))
_case("Concat", "Concat", _normal(2, 3), _normal(2, 2), axis=-1)
_case("Split", "Split", _normal(4, 6), outputs=3, axis=1)
_case("Split sizes", "Split", _normal(4, 6), _integers(1, 5), outputs=2, axis=-1)
_case("Split uneven", "Split", _normal(4, 7), opset=18, outputs=3, axis=1, num_outputs=3)
_case("Squeeze", "Squeeze", _normal(1, 3, 1), _integers(2))
_case("Squeeze all", "Squeeze", _normal(1, 3, 1))
_case("Unsqueeze", "Unsqueeze", _normal(3, 4), _integers(0, -1))
_case("Expand", "Expand", _normal(3, 1), _integers(2, 1, 4))
_case("ConstantOfShape", "ConstantOfShape", _integers(2, 3), value=numpy_helper.from_array(np.array([2.5], np.float32)))
_case("Tile", "Tile", _normal(2, 3), _integers(2, 2))
_case("Gather", "Gather", _normal(4, 3), np.array([[0, -1], [2, 2]]), axis=0)
_case("Gather axis", "Gather", _normal(4, 3), np.array(1), axis=1)
_case("GatherElements", "GatherElements", _normal(3, 4), np.array([[0, 2], [-1, 0]]), axis=0)
_case("GatherElements last", "GatherElements", _normal(2, 3, 4), np.array([[[0, 3]] * 3] * 2), axis=2)
_case("GatherND", "GatherND", _normal(3, 4, 2), np.array([[0, 1], [2, -1]]))
_case("GatherND batch", "GatherND", _normal(2, 4, 3), np.array([[1], [-1]]), batch_dims=1)
_case("ScatterND", "ScatterND", _normal(4, 2), np.array([[1], [-1]]), _normal(2, 2))
_case("ScatterND add", "ScatterND", _normal(4, 2), np.array([[1], [1]]), _normal(2, 2), reduction="add")
_case("Slice", "Slice", _normal(5, 6), _integers(1, -4), _integers(9, -1))
_case("Slice steps", "Slice", _normal(5, 6), _integers(-1), _integers(-99), _integers(1), _integers(-2))
_case("Slice axes", "Slice", _normal(5, 6), _integers(0), _integers(2**62), _integers(-1), _integers(3))
_case("Pad", "Pad", _normal(3, 4), _integers(1, 0, 2, 1))
_case("Pad value", "Pad", _normal(3, 4), _integers(1, 0, 2, 1), Fixed(np.float32(1.5)))
_case("Pad negative", "Pad", _normal(3, 4), _integers(-1, 0, 2, -1))
_case("Pad reflect", "Pad", _normal(3, 4), _integers(1, 2, 1, 2), mode="reflect")
_case("Pad edge", "Pad", _normal(3, 4), _integers(1, 2, 1, 2), mode="edge")
_case("Pad wrap", "Pad", _normal(3, 4), _integers(1, 2, 1, 2), opset=19, mode="wrap")
_case("Pad axes", "Pad", _normal(3, 4), _integers(1, 2), None, _integers(-1), opset=18)
_case("OneHot", "OneHot", np.array([[0, 2], [-1, 9]]), Fixed(np.int64(3)), Fixed(np.array([0.5, 2], np.float32)))
_case("OneHot axis", "OneHot", np.array([0, 2]), Fixed(np.int64(3)), Fixed(np.array([0, 1], np.float32)), axis=0)
for upper in (0, 1):
    for k in (-1, 0, 1):
        _case(f"Trilu {upper} {k}", "Trilu", _normal(4, 5), Fixed(np.int64(k)), upper=upper)
_case("CumSum", "CumSum", _normal(3, 4), Fixed(np.int64(1)))
_case("CumSum reverse", "CumSum", _normal(3, 4), Fixed(np.int64(0)), exclusive=1, reverse=1)
_case("DepthToSpace", "DepthToSpace", _normal(2, 8, 2, 3), blocksize=2)
_case("DepthToSpace CRD", "DepthToSpace", _normal(2, 8, 2, 3), blocksize=2, mode="CRD")
_case("SpaceToDepth", "SpaceToDepth", _normal(2, 3, 4, 6), blocksize=2)
_case("Shape", "Shape", _normal(2, 3, 4), start=1)
_case("Size", "Size", _normal(2, 3, 4))
_case("Range", "Range", Fixed(np.int64(1)), Fixed(np.int64(8)), Fixed(np.int64(3)))
for frame in "half_pixel pytorch_half_pixel align_corners asymmetric".split():
    for mode in "nearest linear cubic".split():
        _case(
            f"Resize {mode} {frame}",
            "Resize",
            _normal(1, 2, 4, 5),
            None,
            Fixed(np.array([1, 1, 2, 0.6], np.float32)),
            mode=mode,
            coordinate_transformation_mode=frame,
        )
_case("Resize sizes", "Resize", _normal(1, 2, 4, 5), None, None, _integers(1, 2, 7, 3), mode="linear")
_case(
    "Resize floor",
    "Resize",
    _normal(1, 2, 4, 5),
    None,
    Fixed(np.array([2, 2], np.float32)),
    opset=18,
    axes=[2, 3],
    nearest_mode="floor",
    coordinate_transformation_mode="asymmetric",
)

# --------------------------------------------------------------------------------------------------------- reductions
for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod SumSquare".split():
    _case(f"Reduce{name}", f"Reduce{name}", _positive(2, 3, 4), axes=[0, -1], keepdims=0)
    _case(f"Reduce{name} 18", f"Reduce{name}", _positive(2, 3, 4), _integers(1), opset=18)
_case("ReduceSum", "ReduceSum", _normal(2, 3, 4), _integers(-1), keepdims=0)
_case("ReduceSum all", "ReduceSum", _normal(2, 3, 4))
_case("ReduceSum none", "ReduceSum", _normal(2, 3, 4), noop_with_empty_axes=1)
_case("ArgMax", "ArgMax", _normal(3, 4), axis=1)
_case("ArgMin", "ArgMin", _normal(3, 4), axis=0, keepdims=0)
_case("TopK", "TopK", _normal(3, 5), _integers(2), outputs=2)
_case("TopK smallest", "TopK", _normal(5, 3), _integers(2), outputs=2, axis=0, largest=0)
_case("MatMul", "MatMul", _normal(2, 3, 4), _normal(4, 5))
_case("MatMul vector", "MatMul", _normal(4), _normal(2, 4, 5))
_case("MatMul columns", "MatMul", _normal(3, 4), _normal(4))
_case("MatMul vectors", "MatMul", _normal(4), _normal(4))
_case("Gemm", "Gemm", _normal(3, 4), _normal(5, 4), _normal(5), transB=1)
_case("Gemm scaled", "Gemm", _normal(4, 3), _normal(4, 5), _normal(1, 5), transA=1, alpha=0.5, beta=2.0)
_case("Einsum", "Einsum", _normal(2, 3, 4), _normal(2, 4, 5), equation="bij, bjk -> bik")

# ------------------------------------------------------------------------------------------------- convolutions, pools
_case("Conv", "Conv", _normal(2, 3, 7, 8), _normal(4, 3, 3, 2), _normal(4), pads=[1, 0, 2, 1], strides=[2, 1])
_case("Conv 1", "Conv", _normal(2, 3, 9), _normal(4, 3, 3), dilations=[2])
_case("Conv 3", "Conv", _normal(1, 2, 4, 5, 6), _normal(3, 2, 2, 2, 2), pads=[1] * 6)
_case("Conv groups", "Conv", _normal(2, 4, 6, 6), _normal(6, 2, 3, 3), group=2)
_case("Conv depthwise", "Conv", _normal(2, 4, 6, 6), _normal(4, 1, 3, 3), group=4, pads=[1, 1, 1, 1])
for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
    _case(f"Conv {auto}", "Conv", _normal(1, 2, 7, 6), _normal(3, 2, 2, 3), auto_pad=auto, strides=[2, 2])
_case("ConvTranspose", "ConvTranspose", _normal(2, 3, 4, 5), _normal(3, 4, 3, 2), _normal(4), strides=[2, 3])
_case(
    "ConvTranspose pads",
    "ConvTranspose",
    _normal(2, 3, 4, 5),
    _normal(3, 4, 3, 3),
    strides=[2, 2],
    pads=[1, 0, 1, 2],
    output_padding=[1, 0],
)
_case("ConvTranspose groups", "ConvTranspose", _normal(2, 4, 4), _normal(4, 3, 3), group=2, dilations=[2])
_case("ConvTranspose small", "ConvTranspose", _normal(1, 2, 5), _normal(2, 2, 2), pads=[2, 2], strides=[2])
_case("MaxPool", "MaxPool", _normal(2, 3, 7, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
_case("MaxPool ceil", "MaxPool", _normal(2, 3, 7, 8), kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
_case("MaxPool dilated", "MaxPool", _normal(1, 2, 8), kernel_shape=[2], dilations=[3])
_case("MaxPool same", "MaxPool", _normal(1, 2, 7, 7), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
_case("AveragePool", "AveragePool", _normal(2, 3, 7, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
_case("AveragePool pads", "AveragePool", _normal(2, 3, 6), kernel_shape=[3], pads=[1, 1], count_include_pad=1)
_case("AveragePool ceil", "AveragePool", _normal(1, 2, 7, 7), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
_case("GlobalAveragePool", "GlobalAveragePool", _normal(2, 3, 4, 5))
_case("GlobalMaxPool", "GlobalMaxPool", _normal(2, 3, 4, 5))

# ------------------------------------------------------------------------------------------------------ normalizations
_case("BatchNormalization", "BatchNormalization", _normal(2, 3, 4), _normal(3), _normal(3), _normal(3), _positive(3))
_case("InstanceNormalization", "InstanceNormalization", _normal(2, 3, 4, 5), _normal(3), _normal(3), epsilon=0.01)
_case("LayerNormalization", "LayerNormalization", _normal(2, 3, 4), _normal(4), _normal(4))
_case("LayerNormalization axis", "LayerNormalization", _normal(2, 3, 4), _normal(3, 4), axis=1, epsilon=0.01)
_case("GroupNormalization", "GroupNormalization", _normal(2, 4, 3, 3), _normal(4), _normal(4), opset=21, num_groups=2)
_case("LRN", "LRN", _normal(2, 6, 3, 3), size=3, alpha=0.2, bias=2.0)
_case("LpNormalization", "LpNormalization", _normal(3, 4), axis=0)
_case("Softmax", "Softmax", _normal(3, 4))
_case("Softmax axis", "Softmax", _normal(3, 4, 2), axis=1)
_case("LogSoftmax", "LogSoftmax", _normal(3, 4), axis=0)
_case("Hardmax", "Hardmax", _normal(3, 4))
_case("Dropout", "Dropout", _normal(3, 4), Fixed(np.float32(0.5)))

# ----------------------------------------------------------------------------------------------------------- recurrent
_GATES = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 2)}
for name, (gates, results) in _GATES.items():
    for direction in ("forward", "reverse", "bidirectional"):
        ways = 1 + (direction == "bidirectional")
        _case(
            f"{name} {direction}",
            name,
            _normal(5, 2, 3),
            _normal(ways, gates * 4, 3) / 2,
            _normal(ways, gates * 4, 4) / 2,
            _normal(ways, gates * 8),
            outputs=results,
            hidden_size=4,
            direction=direction,
        )
_case(
    "LSTM states",
    "LSTM",
    _normal(5, 2, 3),
    _normal(1, 16, 3),
    _normal(1, 16, 4),
    None,
    None,
    _normal(1, 2, 4),
    _normal(1, 2, 4),
    outputs=3,
    hidden_size=4,
)
_case(
    "GRU linear",
    "GRU",
    _normal(5, 2, 3),
    _normal(1, 12, 3),
    _normal(1, 12, 4),
    _normal(1, 24),
    None,
    _normal(1, 2, 4),
    outputs=2,
    hidden_size=4,
    linear_before_reset=1,
)
