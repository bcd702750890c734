"""`tf.raw_ops`: TensorFlow's ops by their own names, each a call of the public function for it.

A raw op takes its arguments by name only, and in one form only. Each row of the table names the public function and
the arguments that it gets. Long because the table has a row for each op.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from teletape.extras import raw_calls

__all__ = ["NAMES", "function"]


# --------------------------------------------------------------------------------------------------------------- table
class _Row(NamedTuple):
    """A raw op.

    Attributes:
        function: The public function, without the leading `tf.`, or one of raw_calls.
        arguments: The raw op's arguments with their defaults, separated by spaces; `name` comes after them.
        passed: The function's arguments: a raw argument's name, or `keyword=argument`; empty: all, in order.
    """

    function: str | Callable[..., Any]
    arguments: str
    passed: str = ""


_CONV: Final = "explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1]"
_CONV2D: Final = f"use_cudnn_on_gpu=True {_CONV}"
_BATCH_NORM: Final = (
    "x scale offset mean variance epsilon=0.0001 exponential_avg_factor=1 data_format='NHWC' is_training=True"
)

_ROWS: Final = {
    # Elementwise.
    "Abs": _Row("abs", "x"),
    "Acos": _Row("acos", "x"),
    "Acosh": _Row("acosh", "x"),
    "Add": _Row("add", "x y"),
    "AddN": _Row("add_n", "inputs"),
    "AddV2": _Row("add", "x y"),
    "Angle": _Row("math.angle", "input Tout='float32'", "input"),
    "Asin": _Row("asin", "x"),
    "Asinh": _Row("asinh", "x"),
    "Atan": _Row("atan", "x"),
    "Atan2": _Row("atan2", "y x"),
    "Atanh": _Row("atanh", "x"),
    "BesselI0": _Row("math.special.bessel_i0", "x"),
    "BesselI0e": _Row("math.special.bessel_i0e", "x"),
    "BesselI1": _Row("math.special.bessel_i1", "x"),
    "BesselI1e": _Row("math.special.bessel_i1e", "x"),
    "BesselJ0": _Row("math.special.bessel_j0", "x"),
    "BesselJ1": _Row("math.special.bessel_j1", "x"),
    "BesselK0": _Row("math.special.bessel_k0", "x"),
    "BesselK0e": _Row("math.special.bessel_k0e", "x"),
    "BesselK1": _Row("math.special.bessel_k1", "x"),
    "BesselK1e": _Row("math.special.bessel_k1e", "x"),
    "BesselY0": _Row("math.special.bessel_y0", "x"),
    "BesselY1": _Row("math.special.bessel_y1", "x"),
    "Betainc": _Row("math.betainc", "a b x"),
    "BitwiseAnd": _Row("bitwise.bitwise_and", "x y"),
    "BitwiseOr": _Row("bitwise.bitwise_or", "x y"),
    "BitwiseXor": _Row("bitwise.bitwise_xor", "x y"),
    "Cast": _Row("cast", "x DstT Truncate=False", "x DstT"),
    "Ceil": _Row("math.ceil", "x"),
    "Complex": _Row("complex", "real imag Tout='complex64'", "real imag"),
    "ComplexAbs": _Row("abs", "x Tout='float32'", "x"),
    "Conj": _Row("math.conj", "input"),
    "Cos": _Row("cos", "x"),
    "Cosh": _Row("cosh", "x"),
    "Dawsn": _Row("math.special.dawsn", "x"),
    "Digamma": _Row("math.digamma", "x"),
    "Div": _Row("math.divide", "x y"),
    "DivNoNan": _Row("math.divide_no_nan", "x y"),
    "Elu": _Row("nn.elu", "features"),
    "Equal": _Row(raw_calls.equal, "x y incompatible_shape_error=True"),
    "Erf": _Row("math.erf", "x"),
    "Erfc": _Row("math.erfc", "x"),
    "Erfinv": _Row("math.erfinv", "x"),
    "Exp": _Row("exp", "x"),
    "Expint": _Row("math.special.expint", "x"),
    "Expm1": _Row("math.expm1", "x"),
    "Floor": _Row("floor", "x"),
    "FloorDiv": _Row("math.floordiv", "x y"),
    "FloorMod": _Row("math.floormod", "x y"),
    "FresnelCos": _Row("math.special.fresnel_cos", "x"),
    "FresnelSin": _Row("math.special.fresnel_sin", "x"),
    "Greater": _Row("greater", "x y"),
    "GreaterEqual": _Row("greater_equal", "x y"),
    "Identity": _Row("identity", "input"),
    "Igamma": _Row("math.igamma", "a x"),
    "Igammac": _Row("math.igammac", "a x"),
    "Imag": _Row("math.imag", "input Tout='float32'", "input"),
    "Inv": _Row("math.reciprocal", "x"),
    "Invert": _Row("bitwise.invert", "x"),
    "IsFinite": _Row("math.is_finite", "x"),
    "IsInf": _Row("math.is_inf", "x"),
    "IsNan": _Row("math.is_nan", "x"),
    "LeakyRelu": _Row("nn.leaky_relu", "features alpha=0.2"),
    "LeftShift": _Row("bitwise.left_shift", "x y"),
    "Less": _Row("less", "x y"),
    "LessEqual": _Row("less_equal", "x y"),
    "Lgamma": _Row("math.lgamma", "x"),
    "Log": _Row("math.log", "x"),
    "Log1p": _Row("math.log1p", "x"),
    "LogicalAnd": _Row("logical_and", "x y"),
    "LogicalNot": _Row("logical_not", "x"),
    "LogicalOr": _Row("logical_or", "x y"),
    "Maximum": _Row("maximum", "x y"),
    "Minimum": _Row("minimum", "x y"),
    "Mod": _Row("truncatemod", "x y"),
    "Mul": _Row("multiply", "x y"),
    "MulNoNan": _Row("math.multiply_no_nan", "x y"),
    "Ndtri": _Row("math.ndtri", "x"),
    "Neg": _Row("negative", "x"),
    "NextAfter": _Row("math.nextafter", "x1 x2"),
    "NotEqual": _Row(raw_calls.not_equal, "x y incompatible_shape_error=True"),
    "OnesLike": _Row("ones_like", "x"),
    "Polygamma": _Row("math.polygamma", "a x"),
    "Pow": _Row("pow", "x y"),
    "Real": _Row("math.real", "input Tout='float32'", "input"),
    "RealDiv": _Row("realdiv", "x y"),
    "Reciprocal": _Row("math.reciprocal", "x"),
    "Relu": _Row("nn.relu", "features"),
    "Relu6": _Row("nn.relu6", "features"),
    "RightShift": _Row("bitwise.right_shift", "x y"),
    "Rint": _Row("math.rint", "x"),
    "Round": _Row("round", "x"),
    "Rsqrt": _Row("math.rsqrt", "x"),
    "Selu": _Row("nn.selu", "features"),
    "Sigmoid": _Row("sigmoid", "x"),
    "Sign": _Row("sign", "x"),
    "Sin": _Row("sin", "x"),
    "Sinh": _Row("sinh", "x"),
    "Softplus": _Row("math.softplus", "features"),
    "Softsign": _Row("nn.softsign", "features"),
    "Spence": _Row("math.special.spence", "x"),
    "Sqrt": _Row("sqrt", "x"),
    "Square": _Row("square", "x"),
    "SquaredDifference": _Row("math.squared_difference", "x y"),
    "StopGradient": _Row("stop_gradient", "input"),
    "Sub": _Row("subtract", "x y"),
    "Tan": _Row("tan", "x"),
    "Tanh": _Row("tanh", "x"),
    "TruncateDiv": _Row("truncatediv", "x y"),
    "TruncateMod": _Row("truncatemod", "x y"),
    "Xdivy": _Row("math.xdivy", "x y"),
    "Xlog1py": _Row("math.xlog1py", "x y"),
    "Xlogy": _Row("math.xlogy", "x y"),
    "ZerosLike": _Row("zeros_like", "x"),
    "Zeta": _Row("math.zeta", "x q"),
    # Sums.
    "All": _Row("reduce_all", "input axis keep_dims=False"),
    "Any": _Row("reduce_any", "input axis keep_dims=False"),
    "ArgMax": _Row("argmax", "input dimension output_type='int64'"),
    "ArgMin": _Row("argmin", "input dimension output_type='int64'"),
    "CumulativeLogsumexp": _Row("math.cumulative_logsumexp", "x axis exclusive=False reverse=False"),
    "Cumprod": _Row("math.cumprod", "x axis exclusive=False reverse=False"),
    "Cumsum": _Row("cumsum", "x axis exclusive=False reverse=False"),
    "EuclideanNorm": _Row("math.reduce_euclidean_norm", "input axis keep_dims=False"),
    "L2Loss": _Row("nn.l2_loss", "t"),
    "Max": _Row("reduce_max", "input axis keep_dims=False"),
    "Mean": _Row("reduce_mean", "input axis keep_dims=False"),
    "Min": _Row("reduce_min", "input axis keep_dims=False"),
    "Prod": _Row("reduce_prod", "input axis keep_dims=False"),
    "SegmentMax": _Row("math.segment_max", "data segment_ids"),
    "SegmentMean": _Row("math.segment_mean", "data segment_ids"),
    "SegmentMin": _Row("math.segment_min", "data segment_ids"),
    "SegmentProd": _Row("math.segment_prod", "data segment_ids"),
    "SegmentSum": _Row("math.segment_sum", "data segment_ids"),
    "Sum": _Row("reduce_sum", "input axis keep_dims=False"),
    "UnsortedSegmentMax": _Row("math.unsorted_segment_max", "data segment_ids num_segments"),
    "UnsortedSegmentMin": _Row("math.unsorted_segment_min", "data segment_ids num_segments"),
    "UnsortedSegmentProd": _Row("math.unsorted_segment_prod", "data segment_ids num_segments"),
    "UnsortedSegmentSum": _Row("math.unsorted_segment_sum", "data segment_ids num_segments"),
    # Arrays.
    "BatchToSpaceND": _Row("batch_to_space", "input block_shape crops"),
    "Bincount": _Row(raw_calls.bincount, "arr size weights"),
    "BroadcastArgs": _Row("broadcast_dynamic_shape", "s0 s1"),
    "BroadcastTo": _Row("broadcast_to", "input shape"),
    "ClipByValue": _Row("clip_by_value", "t clip_value_min clip_value_max"),
    "ConcatV2": _Row("concat", "values axis"),
    "DepthToSpace": _Row("nn.depth_to_space", "input block_size data_format='NHWC'"),
    "DynamicPartition": _Row("dynamic_partition", "data partitions num_partitions"),
    "DynamicStitch": _Row("dynamic_stitch", "indices data"),
    "EnsureShape": _Row("ensure_shape", "input shape"),
    "ExpandDims": _Row("expand_dims", "input axis"),
    "Fill": _Row("fill", "dims value"),
    "GatherNd": _Row("gather_nd", "params indices bad_indices_policy=''", "params indices"),
    "GatherV2": _Row("gather", "params indices axis batch_dims=0", "params indices axis=axis batch_dims=batch_dims"),
    "IdentityN": _Row("identity_n", "input"),
    "InTopKV2": _Row("math.in_top_k", "predictions targets k", "targets predictions k"),
    "InvertPermutation": _Row("math.invert_permutation", "x"),
    "LinSpace": _Row("linspace", "start stop num"),
    "LowerBound": _Row(raw_calls.lower_bound, "sorted_inputs values out_type='int32'"),
    "MirrorPad": _Row("pad", "input paddings mode"),
    "OneHot": _Row("one_hot", "indices depth on_value off_value axis=-1"),
    "Pack": _Row("stack", "values axis=0"),
    "Pad": _Row("pad", "input paddings"),
    "PadV2": _Row("pad", "input paddings constant_values", "input paddings constant_values=constant_values"),
    "Range": _Row("range", "start limit delta"),
    "Rank": _Row("rank", "input"),
    "Reshape": _Row("reshape", "tensor shape"),
    "ReverseSequence": _Row("reverse_sequence", "input seq_lengths seq_dim batch_dim=0"),
    "ReverseV2": _Row("reverse", "tensor axis"),
    "Roll": _Row("roll", "input shift axis"),
    "ScatterNd": _Row("scatter_nd", "indices updates shape bad_indices_policy=''", "indices updates shape"),
    "SelectV2": _Row("where", "condition t e"),
    "Shape": _Row("shape", "input out_type='int32'"),
    "Size": _Row("size", "input out_type='int32'"),
    "Slice": _Row("slice", "input begin size"),
    "SpaceToBatchND": _Row("space_to_batch", "input block_shape paddings"),
    "SpaceToDepth": _Row("nn.space_to_depth", "input block_size data_format='NHWC'"),
    "Split": _Row("split", "axis value num_split", "value num_split axis"),
    "SplitV": _Row("split", "value size_splits axis num_split"),
    "Squeeze": _Row(raw_calls.squeeze, "input axis=[]"),
    "StridedSlice": _Row(
        "strided_slice",
        "input begin end strides begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0",
    ),
    "TensorScatterAdd": _Row(
        "tensor_scatter_nd_add", "tensor indices updates bad_indices_policy=''", "tensor indices updates"
    ),
    "TensorScatterMax": _Row(
        "tensor_scatter_nd_max", "tensor indices updates bad_indices_policy=''", "tensor indices updates"
    ),
    "TensorScatterMin": _Row(
        "tensor_scatter_nd_min", "tensor indices updates bad_indices_policy=''", "tensor indices updates"
    ),
    "TensorScatterSub": _Row(
        "tensor_scatter_nd_sub", "tensor indices updates bad_indices_policy=''", "tensor indices updates"
    ),
    "TensorScatterUpdate": _Row(
        "tensor_scatter_nd_update", "tensor indices updates bad_indices_policy=''", "tensor indices updates"
    ),
    "Tile": _Row("tile", "input multiples"),
    "TopKV2": _Row("math.top_k", "input k sorted=True index_type='int32'"),
    "Transpose": _Row("transpose", "x perm"),
    "Unique": _Row("unique", "x out_idx='int32'"),
    "UniqueWithCounts": _Row("unique_with_counts", "x out_idx='int32'"),
    "Unpack": _Row("unstack", "value num axis=0"),
    "UpperBound": _Row(raw_calls.upper_bound, "sorted_inputs values out_type='int32'"),
    "Where": _Row("where", "condition"),
    # Matrices.
    "BandedTriangularSolve": _Row("linalg.banded_triangular_solve", "matrix rhs lower=True adjoint=False"),
    "BatchMatMul": _Row(
        "matmul", "x y adj_x=False adj_y=False grad_x=False grad_y=False", "x y adjoint_a=adj_x adjoint_b=adj_y"
    ),
    "BatchMatMulV2": _Row(
        "matmul", "x y adj_x=False adj_y=False grad_x=False grad_y=False", "x y adjoint_a=adj_x adjoint_b=adj_y"
    ),
    "BatchMatMulV3": _Row(
        "matmul",
        "x y Tout adj_x=False adj_y=False grad_x=False grad_y=False",
        "x y adjoint_a=adj_x adjoint_b=adj_y output_type=Tout",
    ),
    "Cholesky": _Row("linalg.cholesky", "input"),
    "Cross": _Row("linalg.cross", "a b"),
    "Diag": _Row("linalg.tensor_diag", "diagonal"),
    "DiagPart": _Row("linalg.tensor_diag_part", "input"),
    "Einsum": _Row(raw_calls.einsum, "inputs equation"),
    "Eig": _Row(raw_calls.eig, "input compute_v=True Tout='complex64'", "input compute_v"),
    "LogMatrixDeterminant": _Row("linalg.slogdet", "input"),
    "Lu": _Row("linalg.lu", "input output_idx_type='int32'"),
    "MatMul": _Row(
        "matmul", "a b transpose_a=False transpose_b=False grad_a=False grad_b=False", "a b transpose_a transpose_b"
    ),
    "MatrixBandPart": _Row("linalg.band_part", "input num_lower num_upper"),
    "MatrixDeterminant": _Row("linalg.det", "input"),
    "MatrixDiag": _Row("linalg.diag", "diagonal"),
    "MatrixDiagPart": _Row("linalg.diag_part", "input"),
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
    "MatrixInverse": _Row("linalg.inv", "input adjoint=False"),
    "MatrixLogarithm": _Row("linalg.logm", "input"),
    "MatrixSetDiag": _Row("linalg.set_diag", "input diagonal"),
    "MatrixSetDiagV3": _Row("linalg.set_diag", "input diagonal k align='RIGHT_LEFT'", "input diagonal k=k align=align"),
    "MatrixSolve": _Row("linalg.solve", "matrix rhs adjoint=False"),
    "MatrixSolveLs": _Row(raw_calls.lstsq, "matrix rhs l2_regularizer fast=True"),
    "MatrixSquareRoot": _Row("linalg.sqrtm", "input"),
    "MatrixTriangularSolve": _Row("linalg.triangular_solve", "matrix rhs lower=True adjoint=False"),
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
    "Conv2D": _Row(raw_calls.conv2d, f"input filter strides padding {_CONV2D}"),
    "Conv2DBackpropFilter": _Row(
        raw_calls.conv2d_backprop_filter, f"input filter_sizes out_backprop strides padding {_CONV2D}"
    ),
    "Conv2DBackpropInput": _Row(
        raw_calls.conv2d_backprop_input, f"input_sizes filter out_backprop strides padding {_CONV2D}"
    ),
    "Conv3D": _Row("nn.conv3d", "input filter strides padding data_format='NDHWC' dilations=[1,1,1,1,1]"),
    "DepthwiseConv2dNative": _Row(raw_calls.depthwise_conv2d, f"input filter strides padding {_CONV}"),
    "DepthwiseConv2dNativeBackpropFilter": _Row(
        raw_calls.depthwise_conv2d_backprop_filter, f"input filter_sizes out_backprop strides padding {_CONV}"
    ),
    "DepthwiseConv2dNativeBackpropInput": _Row(
        raw_calls.depthwise_conv2d_backprop_input, f"input_sizes filter out_backprop strides padding {_CONV}"
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
    "MaxPool": _Row(raw_calls.max_pool, "input ksize strides padding explicit_paddings=[] data_format='NHWC'"),
    "MaxPool3D": _Row("nn.max_pool3d", "input ksize strides padding data_format='NDHWC'"),
    "MaxPoolGrad": _Row(
        raw_calls.max_pool_grad,
        "orig_input orig_output grad ksize strides padding explicit_paddings=[] data_format='NHWC'",
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
    "StatelessRandomNormal": _Row("random.stateless_normal", "shape seed dtype='float32'", "shape seed dtype=dtype"),
    "StatelessRandomUniform": _Row("random.stateless_uniform", "shape seed dtype='float32'", "shape seed dtype=dtype"),
    "StatelessRandomUniformInt": _Row(raw_calls.stateless_uniform_int, "shape seed minval maxval"),
    "StatelessTruncatedNormal": _Row(
        "random.stateless_truncated_normal", "shape seed dtype='float32'", "shape seed dtype=dtype"
    ),
    # Strings.
    "AsString": _Row("strings.as_string", "input precision=-1 scientific=False shortest=False width=-1 fill=''"),
    "DecodeBase64": _Row("io.decode_base64", "input"),
    "EncodeBase64": _Row("io.encode_base64", "input pad=False"),
    "ReduceJoin": _Row("strings.reduce_join", "inputs reduction_indices keep_dims=False separator=''"),
    "RegexFullMatch": _Row("strings.regex_full_match", "input pattern"),
    "RegexReplace": _Row("strings.regex_replace", "input pattern rewrite replace_global=True"),
    "StaticRegexFullMatch": _Row("strings.regex_full_match", "input pattern"),
    "StaticRegexReplace": _Row("strings.regex_replace", "input pattern rewrite replace_global=True"),
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
    "HSVToRGB": _Row("image.hsv_to_rgb", "images"),
    "NonMaxSuppressionV3": _Row(
        "image.non_max_suppression", "boxes scores max_output_size iou_threshold score_threshold"
    ),
    "RGBToHSV": _Row("image.rgb_to_hsv", "images"),
    # Rows chosen from a dense tensor.
    "SparseSegmentMean": _Row(
        "sparse.segment_mean", "data indices segment_ids sparse_gradient=False", "data indices segment_ids"
    ),
    "SparseSegmentSqrtN": _Row(
        "sparse.segment_sqrt_n", "data indices segment_ids sparse_gradient=False", "data indices segment_ids"
    ),
    "SparseSegmentSum": _Row(
        "sparse.segment_sum", "data indices segment_ids sparse_gradient=False", "data indices segment_ids"
    ),
    # Signals.
    "FFT": _Row("signal.fft", "input"),
    "FFT2D": _Row("signal.fft2d", "input"),
    "FFT3D": _Row("signal.fft3d", "input"),
    "IFFT": _Row("signal.ifft", "input"),
    "IFFT2D": _Row("signal.ifft2d", "input"),
    "IFFT3D": _Row("signal.ifft3d", "input"),
    "IRFFT3D": _Row("signal.irfft3d", "input fft_length Treal='float32'", "input fft_length"),
    "RFFT3D": _Row("signal.rfft3d", "input fft_length Tcomplex='complex64'", "input fft_length"),
    "IRFFT2D": _Row("signal.irfft2d", "input fft_length Treal='float32'", "input fft_length"),
    "RFFT2D": _Row("signal.rfft2d", "input fft_length Tcomplex='complex64'", "input fft_length"),
    "IRFFT": _Row("signal.irfft", "input fft_length Treal='float32'", "input fft_length"),
    "RFFT": _Row("signal.rfft", "input fft_length Tcomplex='complex64'", "input fft_length"),
}


# ----------------------------------------------------------------------------------------------------------- functions
NAMES: Final = frozenset(_ROWS)  #: The rows above, by the op's name.


def function(name: str, public: Callable[[str], Any]) -> Callable[..., Any]:
    """Returns the function of `tf.raw_ops` with that name.

    Args:
        name: One of NAMES.
        public: Returns TensorFlow's function with a name without the leading `tf.`.
    """
    row = _ROWS[name]
    target = public(row.function) if isinstance(row.function, str) else row.function
    defaults = dict(_argument(text) for text in row.arguments.split())
    required = {argument for argument, default in defaults.items() if default is inspect.Parameter.empty}
    passed = [text.rpartition("=")[::2] for text in (row.passed or " ".join(defaults)).split()]

    def raw(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("name", None)
        if args or not required <= kwargs.keys() <= defaults.keys():
            raise TypeError(_misuse(name, list(defaults), required, args, kwargs))
        values = defaults | kwargs
        keywords = {keyword: values[argument] for keyword, argument in passed if keyword}
        return target(*[values[argument] for keyword, argument in passed if not keyword], **keywords)

    raw.__name__ = raw.__qualname__ = name
    raw.__doc__ = f"`tf.{row.function}`." if isinstance(row.function, str) else row.function.__doc__
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(argument, keyword_only, default=value) for argument, value in defaults.items()]
    name_parameter = inspect.Parameter("name", keyword_only, default=None)
    setattr(raw, "__signature__", inspect.Signature([*parameters, name_parameter]))  # noqa: B010  # no attribute to mypy
    return raw


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
