"""`tf.raw_ops`: TensorFlow's ops by their own names, each a call of the public function for it.

A raw op takes its arguments by name only, and in one form only. Each row of the table names the public function and
the arguments that it gets; an op whose function takes the same arguments needs no row.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from teletape.extras import raw_calls
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.signature import REQUIRED, PublicFunction

__all__ = ["NAMES", "function"]


# --------------------------------------------------------------------------------------------------------------- table
class _Row(NamedTuple):
    """A raw op.

    Attributes:
        function: The public function, without the leading `tf.`, or one of raw_calls.
        arguments: The raw op's arguments with their defaults, separated by spaces; `name` comes after them.
        passed: The function's arguments: a raw argument's name or a literal, or `keyword=argument`; empty: all, in
            order. Where `padding` is "EXPLICIT", the function gets `explicit_paddings` in pairs.
    """

    function: str | Callable[..., Any]
    arguments: str
    passed: str = ""


#: Ops that are the first function in the record of the catalogue's op, with its arguments and defaults.
_OF_RECORDS: Final = frozenset(
    """
    Abs Acos Acosh AddN AddV2 Asin Asinh Atan Atan2 Atanh BatchToSpaceND BesselI0 BesselI0e BesselI1 BesselI1e
    BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc BitwiseAnd BitwiseOr
    BitwiseXor BroadcastTo Ceil Cholesky ClipByValue Cos Cosh Cross Dawsn DepthToSpace Diag DiagPart Digamma
    DivNoNan Elu Erf Erfc Erfinv Exp ExpandDims Expint Expm1 FFT FFT2D FFT3D Floor FloorDiv FloorMod FresnelCos
    FresnelSin Greater GreaterEqual HSVToRGB IFFT IFFT2D IFFT3D Igamma Igammac Invert InvertPermutation IsFinite
    IsInf IsNan L2Loss LeakyRelu LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr
    MatrixBandPart MatrixDeterminant MatrixInverse MatrixLogarithm MatrixSolve MatrixSquareRoot
    MatrixTriangularSolve Maximum Minimum Mul MulNoNan Ndtri Neg NextAfter Polygamma Pow RGBToHSV RealDiv Reciprocal
    Relu Relu6 Reshape ReverseV2 RightShift Rint Roll Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign
    SpaceToBatchND SpaceToDepth Spence Sqrt Square SquaredDifference StopGradient Sub Tan Tanh Tile TruncateDiv
    TruncateMod UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd Xdivy Xlog1py Xlogy Zeta
    """.split()
)


def _alike(functions: str, arguments: str, passed: str = "") -> dict[str, _Row]:
    """Returns rows with the same arguments, from pairs `op=function` that are separated by spaces."""
    pairs = (pair.split("=") for pair in functions.split())
    return {op: _Row(function, arguments, passed) for op, function in pairs}


_CONV: Final = "explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1]"
_CONV2D: Final = f"use_cudnn_on_gpu=True {_CONV}"
_BATCH_NORM: Final = (
    "x scale offset mean variance epsilon=0.0001 exponential_avg_factor=1 data_format='NHWC' is_training=True"
)

_ROWS: Final = {
    # Elementwise.
    **_alike("Add=add Div=math.divide Mod=truncatemod", "x y"),
    **_alike("Angle=math.angle Imag=math.imag Real=math.real", "input Tout='float32'", "input"),
    **_alike("Inv=math.reciprocal OnesLike=ones_like ZerosLike=zeros_like", "x"),
    "Cast": _Row("cast", "x DstT Truncate=False", "x DstT"),
    "Complex": _Row("complex", "real imag Tout='complex64'", "real imag"),
    "ComplexAbs": _Row("abs", "x Tout='float32'", "x"),
    "Conj": _Row("math.conj", "input"),
    "Equal": _Row(raw_calls.equal, "x y incompatible_shape_error=True"),
    "Identity": _Row("identity", "input"),
    "NotEqual": _Row(raw_calls.not_equal, "x y incompatible_shape_error=True"),
    # Sums.
    **_alike(
        "All=reduce_all Any=reduce_any EuclideanNorm=math.reduce_euclidean_norm Max=reduce_max Mean=reduce_mean "
        "Min=reduce_min Prod=reduce_prod Sum=reduce_sum",
        "input axis keep_dims=False",
    ),
    **_alike(
        "SegmentMax=math.segment_max SegmentMean=math.segment_mean SegmentMin=math.segment_min "
        "SegmentProd=math.segment_prod SegmentSum=math.segment_sum",
        "data segment_ids",
    ),
    **_alike(
        "SparseSegmentMean=sparse.segment_mean SparseSegmentSqrtN=sparse.segment_sqrt_n "
        "SparseSegmentSum=sparse.segment_sum",
        "data indices segment_ids sparse_gradient=False",
        "data indices segment_ids",
    ),
    "ArgMax": _Row("argmax", "input dimension output_type='int64'"),
    "ArgMin": _Row("argmin", "input dimension output_type='int64'"),
    **_alike(
        "CumulativeLogsumexp=math.cumulative_logsumexp Cumprod=math.cumprod Cumsum=cumsum",
        "x axis exclusive=False reverse=False",
    ),
    "UnsortedSegmentSum": _Row("math.unsorted_segment_sum", "data segment_ids num_segments"),
    # Arrays.
    "Bincount": _Row(raw_calls.bincount, "arr size weights"),
    "BroadcastArgs": _Row("broadcast_dynamic_shape", "s0 s1"),
    "ConcatV2": _Row("concat", "values axis"),
    "DynamicPartition": _Row("dynamic_partition", "data partitions num_partitions"),
    "DynamicStitch": _Row("dynamic_stitch", "indices data"),
    "EnsureShape": _Row("ensure_shape", "input shape"),
    "Fill": _Row("fill", "dims value"),
    "GatherNd": _Row("gather_nd", "params indices bad_indices_policy=''", "params indices"),
    "GatherV2": _Row("gather", "params indices axis batch_dims=0", "params indices axis=axis batch_dims=batch_dims"),
    "IdentityN": _Row("identity_n", "input"),
    "InTopKV2": _Row("math.in_top_k", "predictions targets k", "targets predictions k"),
    "LinSpace": _Row("linspace", "start stop num"),
    "LowerBound": _Row("searchsorted", "sorted_inputs values out_type='int32'", "sorted_inputs values 'left' out_type"),
    "MirrorPad": _Row("pad", "input paddings mode"),
    "OneHot": _Row("one_hot", "indices depth on_value off_value axis=-1"),
    "Pack": _Row("stack", "values axis=0"),
    "Pad": _Row("pad", "input paddings"),
    "PadV2": _Row("pad", "input paddings constant_values", "input paddings constant_values=constant_values"),
    "Range": _Row("range", "start limit delta"),
    "Rank": _Row("rank", "input"),
    "ReverseSequence": _Row("reverse_sequence", "input seq_lengths seq_dim batch_dim=0"),
    "ScatterNd": _Row("scatter_nd", "indices updates shape bad_indices_policy=''", "indices updates shape"),
    "SelectV2": _Row("where", "condition t e"),
    "Shape": _Row("shape", "input out_type='int32'"),
    "Size": _Row("size", "input out_type='int32'"),
    "Slice": _Row("slice", "input begin size"),
    "Split": _Row("split", "axis value num_split", "value num_split axis"),
    "SplitV": _Row("split", "value size_splits axis num_split"),
    "Squeeze": _Row(raw_calls.squeeze, "input axis=[]"),
    "StridedSlice": _Row(
        "strided_slice",
        "input begin end strides begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0",
    ),
    **_alike(
        "TensorScatterAdd=tensor_scatter_nd_add TensorScatterMax=tensor_scatter_nd_max "
        "TensorScatterMin=tensor_scatter_nd_min TensorScatterSub=tensor_scatter_nd_sub "
        "TensorScatterUpdate=tensor_scatter_nd_update",
        "tensor indices updates bad_indices_policy=''",
        "tensor indices updates",
    ),
    "TopKV2": _Row("math.top_k", "input k sorted=True index_type='int32'"),
    "Transpose": _Row("transpose", "x perm"),
    "Unique": _Row("unique", "x out_idx='int32'"),
    "UniqueWithCounts": _Row("unique_with_counts", "x out_idx='int32'"),
    "Unpack": _Row("unstack", "value num axis=0"),
    "UpperBound": _Row(
        "searchsorted", "sorted_inputs values out_type='int32'", "sorted_inputs values 'right' out_type"
    ),
    "Where": _Row("where", "condition"),
    # Matrices.
    **_alike("LogMatrixDeterminant=linalg.slogdet MatrixDiagPart=linalg.diag_part", "input"),
    "BandedTriangularSolve": _Row("linalg.banded_triangular_solve", "matrix rhs lower=True adjoint=False"),
    **_alike(
        "BatchMatMul=matmul BatchMatMulV2=matmul",
        "x y adj_x=False adj_y=False grad_x=False grad_y=False",
        "x y adjoint_a=adj_x adjoint_b=adj_y",
    ),
    "BatchMatMulV3": _Row(
        "matmul",
        "x y Tout adj_x=False adj_y=False grad_x=False grad_y=False",
        "x y adjoint_a=adj_x adjoint_b=adj_y output_type=Tout",
    ),
    "Einsum": _Row(raw_calls.einsum, "inputs equation"),
    "Eig": _Row(raw_calls.eig, "input compute_v=True Tout='complex64'", "input compute_v"),
    "Lu": _Row("linalg.lu", "input output_idx_type='int32'"),
    "MatMul": _Row(
        "matmul", "a b transpose_a=False transpose_b=False grad_a=False grad_b=False", "a b transpose_a transpose_b"
    ),
    "MatrixDiag": _Row("linalg.diag", "diagonal"),
    "MatrixDiagPartV3": _Row(
        "linalg.diag_part",
        "input k padding_value align='RIGHT_LEFT'",
        "input k=k padding_value=padding_value align=align",
    ),
    "MatrixDiagV3": _Row(
        "linalg.diag",
        "diagonal k num_rows num_cols padding_value align='RIGHT_LEFT'",
        "diagonal k=k num_rows=num_rows num_cols=num_cols padding_value=padding_value align=align",
    ),
    "MatrixSetDiag": _Row("linalg.set_diag", "input diagonal"),
    "MatrixSetDiagV3": _Row("linalg.set_diag", "input diagonal k align='RIGHT_LEFT'", "input diagonal k=k align=align"),
    "MatrixSolveLs": _Row(raw_calls.lstsq, "matrix rhs l2_regularizer fast=True"),
    "Qr": _Row("linalg.qr", "input full_matrices=False"),
    "SelfAdjointEigV2": _Row(raw_calls.eigh, "input compute_v=True"),
    "Svd": _Row(raw_calls.svd, "input compute_uv=True full_matrices=False"),
    "TridiagonalMatMul": _Row(raw_calls.tridiagonal_matmul, "superdiag maindiag subdiag rhs"),
    "TridiagonalSolve": _Row(
        "linalg.tridiagonal_solve",
        "diagonals rhs partial_pivoting=True perturb_singular=False",
        "diagonals rhs partial_pivoting=partial_pivoting perturb_singular=perturb_singular",
    ),
    # Networks.
    "AvgPool": _Row("nn.avg_pool2d", "value ksize strides padding data_format='NHWC'"),
    "AvgPool3D": _Row("nn.avg_pool3d", "input ksize strides padding data_format='NDHWC'"),
    "AvgPoolGrad": _Row(raw_calls.avg_pool_grad, "orig_input_shape grad ksize strides padding data_format='NHWC'"),
    "BiasAdd": _Row("nn.bias_add", "value bias data_format='NHWC'"),
    "BiasAddGrad": _Row(raw_calls.bias_add_grad, "out_backprop data_format='NHWC'"),
    "BiasAddV1": _Row("nn.bias_add", "value bias"),
    "Conv2D": _Row(
        "nn.conv2d",
        f"input filter strides padding {_CONV2D}",
        "input filter strides padding data_format dilations",
    ),
    "Conv2DBackpropFilter": _Row(
        raw_calls.conv2d_backprop_filter,
        f"input filter_sizes out_backprop strides padding {_CONV2D}",
        "input filter_sizes out_backprop strides padding data_format dilations",
    ),
    "Conv2DBackpropInput": _Row(
        "nn.conv2d_transpose",
        f"input_sizes filter out_backprop strides padding {_CONV2D}",
        "out_backprop filter input_sizes strides padding data_format dilations",
    ),
    "Conv3D": _Row("nn.conv3d", "input filter strides padding data_format='NDHWC' dilations=[1,1,1,1,1]"),
    "DepthwiseConv2dNative": _Row(
        raw_calls.depthwise_conv2d,
        f"input filter strides padding {_CONV}",
        "input filter strides padding data_format dilations",
    ),
    "DepthwiseConv2dNativeBackpropFilter": _Row(
        "nn.depthwise_conv2d_backprop_filter",
        f"input filter_sizes out_backprop strides padding {_CONV}",
        "input filter_sizes out_backprop strides padding data_format dilations",
    ),
    "DepthwiseConv2dNativeBackpropInput": _Row(
        "nn.depthwise_conv2d_backprop_input",
        f"input_sizes filter out_backprop strides padding {_CONV}",
        "input_sizes filter out_backprop strides padding data_format dilations",
    ),
    "Dilation2D": _Row(
        "nn.dilation2d",
        "input filter strides rates padding data_format='NHWC'",
        "input filter strides padding data_format rates",
    ),
    "EluGrad": _Row(raw_calls.elu_grad, "gradients outputs"),
    "FusedBatchNorm": _Row(raw_calls.fused_batch_norm, _BATCH_NORM),
    "FusedBatchNormV2": _Row(raw_calls.fused_batch_norm, _BATCH_NORM),
    "FusedBatchNormV3": _Row(raw_calls.fused_batch_norm_v3, _BATCH_NORM),
    "LRN": _Row("nn.local_response_normalization", "input depth_radius=5 bias=1 alpha=1 beta=0.5"),
    "LeakyReluGrad": _Row(raw_calls.leaky_relu_grad, "gradients features alpha=0.2"),
    "LogSoftmax": _Row("nn.log_softmax", "logits"),
    "MaxPool": _Row(
        "nn.max_pool2d",
        "input ksize strides padding explicit_paddings=[] data_format='NHWC'",
        "input ksize strides padding data_format",
    ),
    "MaxPool3D": _Row("nn.max_pool3d", "input ksize strides padding data_format='NDHWC'"),
    "MaxPoolGrad": _Row(
        raw_calls.max_pool_grad,
        "orig_input orig_output grad ksize strides padding explicit_paddings=[] data_format='NHWC'",
        "orig_input grad ksize strides padding data_format",
    ),
    "MaxPoolWithArgmax": _Row(
        "nn.max_pool_with_argmax",
        "input ksize strides padding Targmax='int64' include_batch_in_index=False",
        "input ksize strides padding output_dtype=Targmax include_batch_in_index=include_batch_in_index",
    ),
    "ReciprocalGrad": _Row(raw_calls.reciprocal_grad, "y dy"),
    "Relu6Grad": _Row(raw_calls.relu6_grad, "gradients features"),
    "ReluGrad": _Row(raw_calls.relu_grad, "gradients features"),
    "RsqrtGrad": _Row(raw_calls.rsqrt_grad, "y dy"),
    "SeluGrad": _Row(raw_calls.selu_grad, "gradients outputs"),
    "SigmoidGrad": _Row(raw_calls.sigmoid_grad, "y dy"),
    "Softmax": _Row("nn.softmax", "logits"),
    "SoftmaxCrossEntropyWithLogits": _Row(raw_calls.softmax_cross_entropy, "features labels"),
    "SoftplusGrad": _Row(raw_calls.softplus_grad, "gradients features"),
    "SoftsignGrad": _Row(raw_calls.softsign_grad, "gradients features"),
    "SparseSoftmaxCrossEntropyWithLogits": _Row(raw_calls.sparse_softmax_cross_entropy, "features labels"),
    "SqrtGrad": _Row(raw_calls.sqrt_grad, "y dy"),
    "TanhGrad": _Row(raw_calls.tanh_grad, "y dy"),
    # Random numbers.
    "StatelessMultinomial": _Row("random.stateless_categorical", "logits num_samples seed output_dtype='int64'"),
    **_alike(
        "StatelessRandomNormal=random.stateless_normal StatelessRandomUniform=random.stateless_uniform "
        "StatelessTruncatedNormal=random.stateless_truncated_normal",
        "shape seed dtype='float32'",
        "shape seed dtype=dtype",
    ),
    "StatelessRandomUniformInt": _Row(raw_calls.stateless_uniform_int, "shape seed minval maxval"),
    # Strings.
    "AsString": _Row("strings.as_string", "input precision=-1 scientific=False shortest=False width=-1 fill=''"),
    "DecodeBase64": _Row("io.decode_base64", "input"),
    "EncodeBase64": _Row("io.encode_base64", "input pad=False"),
    "ReduceJoin": _Row("strings.reduce_join", "inputs reduction_indices keep_dims=False separator=''"),
    **_alike("RegexFullMatch=strings.regex_full_match StaticRegexFullMatch=strings.regex_full_match", "input pattern"),
    **_alike(
        "RegexReplace=strings.regex_replace StaticRegexReplace=strings.regex_replace",
        "input pattern rewrite replace_global=True",
    ),
    "StringJoin": _Row("strings.join", "inputs separator=''"),
    "StringLength": _Row("strings.length", "input unit='BYTE'"),
    "StringLower": _Row("strings.lower", "input encoding=''"),
    "StringStrip": _Row("strings.strip", "input"),
    "StringToHashBucketFast": _Row("strings.to_hash_bucket_fast", "input num_buckets"),
    "StringToHashBucketStrong": _Row("strings.to_hash_bucket_strong", "input num_buckets key"),
    "StringToNumber": _Row("strings.to_number", "string_tensor out_type='float32'"),
    "StringUpper": _Row("strings.upper", "input encoding=''"),
    "Substr": _Row("strings.substr", "input pos len unit='BYTE'"),
    # Images.
    "AdjustContrastv2": _Row("image.adjust_contrast", "images contrast_factor"),
    "AdjustHue": _Row("image.adjust_hue", "images delta"),
    "AdjustSaturation": _Row("image.adjust_saturation", "images scale"),
    "CropAndResize": _Row(
        "image.crop_and_resize", "image boxes box_ind crop_size method='bilinear' extrapolation_value=0"
    ),
    "DecodePng": _Row("io.decode_png", "contents channels=0 dtype='uint8'"),
    "EncodePng": _Row("io.encode_png", "image compression=-1"),
    "ExtractImagePatches": _Row("image.extract_patches", "images ksizes strides rates padding"),
    "NonMaxSuppressionV3": _Row(
        "image.non_max_suppression", "boxes scores max_output_size iou_threshold score_threshold"
    ),
    # Signals.
    **_alike(
        "IRFFT=signal.irfft IRFFT2D=signal.irfft2d IRFFT3D=signal.irfft3d",
        "input fft_length Treal='float32'",
        "input fft_length",
    ),
    **_alike(
        "RFFT=signal.rfft RFFT2D=signal.rfft2d RFFT3D=signal.rfft3d",
        "input fft_length Tcomplex='complex64'",
        "input fft_length",
    ),
}


# ----------------------------------------------------------------------------------------------------------- functions
NAMES: Final = _OF_RECORDS | _ROWS.keys()


def function(name: str, public: Callable[[str], Any]) -> Callable[..., Any]:
    """Returns the function of `tf.raw_ops` with that name.

    Args:
        name: One of NAMES.
        public: Returns TensorFlow's function with a name without the leading `tf.`.
    """
    row = _ROWS.get(name) or _row_of_record(name)
    target = public(row.function) if isinstance(row.function, str) else row.function
    defaults = dict(_argument(text) for text in row.arguments.split())
    required = {argument for argument, default in defaults.items() if default is inspect.Parameter.empty}
    passed = [text.rpartition("=")[::2] for text in (row.passed or " ".join(defaults)).split()]

    def raw(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("name", None)
        if args or not required <= kwargs.keys() <= defaults.keys():
            raise TypeError(_misuse(name, list(defaults), required, args, kwargs))
        values = defaults | kwargs
        if "explicit_paddings" in values and values["padding"] == "EXPLICIT":
            values["padding"] = _pairs(values["explicit_paddings"])
        inputs = [(keyword, values[text] if text in values else ast.literal_eval(text)) for keyword, text in passed]
        return target(*[value for keyword, value in inputs if not keyword], **{key: v for key, v in inputs if key})

    raw.__name__ = raw.__qualname__ = name
    raw.__doc__ = f"`tf.{row.function}`." if isinstance(row.function, str) else row.function.__doc__
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(argument, keyword_only, default=value) for argument, value in defaults.items()]
    name_parameter = inspect.Parameter("name", keyword_only, default=None)
    setattr(raw, "__signature__", inspect.Signature([*parameters, name_parameter]))  # noqa: B010  # no attribute to mypy
    return raw


@functools.cache
def _records() -> dict[str, PublicFunction]:
    """Returns the first record of a function of each op, by TensorFlow's type of the op."""
    return {op.op_type: op.functions[0] for op in reversed(CATALOGUE.values()) if op.functions}


def _row_of_record(name: str) -> _Row:
    record = _records()[name]
    own = (argument for argument in record.arguments if argument.name != "name")
    texts = [arg.name if arg.default is REQUIRED else f"{arg.name}={arg.default!r}" for arg in own]
    return _Row(record.names[0], " ".join(texts))


def _pairs(explicit_paddings: Sequence[int]) -> list[tuple[int, int]]:
    """The padding for a public function: a raw op's "EXPLICIT" has its numbers in a list, two for each axis."""
    return list(zip(explicit_paddings[::2], explicit_paddings[1::2], strict=True))


def _argument(text: str) -> tuple[str, Any]:
    argument, _, default = text.partition("=")
    return argument, ast.literal_eval(default) if default else inspect.Parameter.empty


def _misuse(name: str, arguments: list[str], required: set[str], args: Any, kwargs: Mapping[str, Any]) -> str:
    """The error message for a wrong call."""
    if args:
        return f"{name} only takes keyword args (possible keys: {[*arguments, 'name']}). Please pass them as keywords."
    unknown = [argument for argument in kwargs if argument not in arguments]
    if unknown:
        return f"{name} has no argument {unknown[0]!r}; its arguments are {', '.join([*arguments, 'name'])}"
    return (
        f"{name} misses {', '.join(repr(argument) for argument in arguments if argument in required - kwargs.keys())}"
    )
