"""`tf.raw_ops`: every op that is there, called by its argument names; results, gradients and errors."""

from conformance.probes import raises
from conformance.program import program

POSITIVE = [[0.2, 0.5], [0.7, 0.9]]
SIGNED = [[-1.5, 0.5], [1.25, -0.75]]
MATRIX = [[4.0, 1.0], [1.0, 3.0]]
UNARY = """Abs Acos Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e
    BesselK1 BesselK1e BesselY0 BesselY1 Ceil Cos Cosh Dawsn Digamma Erf Erfc Erfinv Exp Expint Expm1 Floor FresnelCos
    FresnelSin Inv IsFinite IsInf IsNan Lgamma Log Log1p Ndtri Neg OnesLike Reciprocal Rint Round Rsqrt Sigmoid Sign Sin
    Sinh Spence Sqrt Square Tan Tanh ZerosLike""".split()
ACTIVATIONS = "Elu LeakyRelu Relu Relu6 Selu Softplus Softsign".split()
BINARY = """Add AddV2 Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual Less LessEqual Maximum Minimum Mul
    MulNoNan NotEqual RealDiv SquaredDifference Sub TruncateMod Xdivy Xlog1py Xlogy""".split()
REDUCTIONS = "EuclideanNorm Max Mean Min Prod Sum".split()
SEGMENTS = "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum".split()
UNSORTED = "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum".split()
SCATTERS = "TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate".split()


def gradients(tf, call, *values):
    """The results of a call of variables with these values, and the gradients."""
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape() as tape:
        result = call(*variables)
    parts = list(result) if isinstance(result, list | tuple) else [result]
    parts = [part for part in parts if part.dtype in (tf.float32, tf.float64)]
    try:
        return result, tape.gradient(parts, variables) if parts else None
    except LookupError as error:
        return result, type(error).__name__


def results_of(tf, names, call, *values):
    return {
        name: gradients(tf, lambda *inputs, op=name: call(getattr(tf.raw_ops, op), *inputs), *values) for name in names
    }


@program(rtol=2e-5)  # the kernels' own errors: SciPy's are smaller
def raw_functions_of_one_tensor(tf, np):
    return [
        results_of(tf, UNARY, lambda op, x: op(x=x), POSITIVE),
        results_of(tf, ["Acosh"], lambda op, x: op(x=x), [[1.2, 1.5]]),
        results_of(tf, ACTIVATIONS, lambda op, x: op(features=x), SIGNED),
        gradients(tf, lambda x: tf.raw_ops.LeakyRelu(features=x, alpha=0.5), SIGNED),
        results_of(tf, ["Identity", "StopGradient"], lambda op, x: op(input=x), SIGNED),
        results_of(tf, ["Softmax", "LogSoftmax"], lambda op, x: op(logits=x), SIGNED),
        gradients(tf, lambda x: tf.raw_ops.Cast(x=x, DstT=tf.float64), SIGNED),
        gradients(tf, lambda x: tf.raw_ops.L2Loss(t=x), SIGNED),
    ]


@program(rtol=2e-5)  # igamma and betainc: the kernels' own errors
def raw_functions_of_two_tensors(tf, np):
    raw = tf.raw_ops
    integers = {"x": tf.constant([-7, 7]), "y": tf.constant([2, -2])}
    shifts = {"x": tf.constant([6, 9]), "y": tf.constant([1, 2])}
    bits = "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift".split()
    truths = {"x": tf.constant([True, False]), "y": tf.constant([True, True])}
    return [
        results_of(tf, BINARY, lambda op, x, y: op(x=x, y=y), SIGNED, POSITIVE),
        results_of(tf, ["Pow"], lambda op, x, y: op(x=x, y=y), POSITIVE, SIGNED),
        gradients(tf, lambda y, x: raw.Atan2(y=y, x=x), SIGNED, POSITIVE),
        results_of(tf, ["Igamma", "Igammac"], lambda op, a, x: op(a=a, x=x), POSITIVE, MATRIX),
        gradients(tf, lambda q: raw.Zeta(x=tf.constant(MATRIX) + 1.5, q=q), POSITIVE),
        gradients(tf, lambda x: raw.Polygamma(a=tf.ones([2, 2]), x=x), POSITIVE),
        gradients(tf, lambda x: raw.Betainc(a=tf.constant(MATRIX), b=tf.constant(POSITIVE), x=x), POSITIVE),
        raw.NextAfter(x1=tf.constant([1.0]), x2=tf.constant([2.0])),
        {
            name: getattr(raw, name)(**integers)
            for name in ("TruncateDiv", "TruncateMod", "FloorDiv", "FloorMod", "Mod")
        },
        {name: getattr(raw, name)(**shifts) for name in bits},
        {name: getattr(raw, name)(**truths) for name in ("LogicalAnd", "LogicalOr")},
        [raw.LogicalNot(x=truths["x"]), raw.Invert(x=shifts["x"])],
        gradients(tf, lambda x, y: raw.AddN(inputs=[x, y, x]), SIGNED, POSITIVE),
    ]


@program()
def raw_functions_of_complex_numbers(tf, np):
    z = tf.constant([1 + 2j, -0.5 + 0.25j], tf.complex64)
    matrices = tf.cast(tf.reshape(tf.range(8.0), [2, 2, 2]), tf.complex64)
    raw = tf.raw_ops
    return [
        [raw.Real(input=z), raw.Imag(input=z), raw.Conj(input=z), raw.Angle(input=z), raw.ComplexAbs(x=z)],
        gradients(tf, lambda x, y: raw.ComplexAbs(x=raw.Complex(real=x, imag=y)), SIGNED, POSITIVE),
        [raw.FFT(input=z), raw.IFFT(input=z)],
        [op(input=matrices) for op in (raw.FFT2D, raw.IFFT2D, raw.FFT3D, raw.IFFT3D)],
    ]


@program()
def raw_reductions(tf, np):
    raw, parts = tf.raw_ops, tf.constant([0, 0, 1])
    rows = [[1.0, -2.0], [0.5, 3.0], [2.0, 4.0]]
    truths = tf.constant([[True, False], [True, True]])
    return [
        results_of(tf, REDUCTIONS, lambda op, x: op(input=x, axis=[1]), rows),
        results_of(tf, REDUCTIONS, lambda op, x: op(input=x, axis=0, keep_dims=True), rows),
        [raw.All(input=truths, axis=1), raw.Any(input=truths, axis=[0], keep_dims=True)],
        [raw.ArgMax(input=rows, dimension=1), raw.ArgMin(input=rows, dimension=0, output_type=tf.int32)],
        results_of(tf, ["Cumsum", "Cumprod"], lambda op, x: op(x=x, axis=0, exclusive=True, reverse=True), rows),
        results_of(tf, SEGMENTS, lambda op, x: op(data=x, segment_ids=parts), rows),
        results_of(tf, UNSORTED, lambda op, x: op(data=x, segment_ids=parts, num_segments=2), rows),
        gradients(tf, lambda x: raw.TopKV2(input=x, k=1), rows),
        raw.TopKV2(input=rows, k=2).indices,
    ]


@program()
def raw_functions_of_shapes(tf, np):
    raw, x = tf.raw_ops, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    blocks = tf.reshape(tf.range(16.0), [1, 2, 2, 4])
    return [
        gradients(tf, lambda x: raw.BroadcastTo(input=x, shape=[2, 2, 3]), x),
        gradients(tf, lambda x, y: raw.ConcatV2(values=[x, y], axis=1), x, SIGNED),
        gradients(tf, lambda x: raw.DepthToSpace(input=raw.SpaceToDepth(input=x, block_size=2), block_size=2), blocks),
        gradients(tf, lambda x: raw.ExpandDims(input=x, axis=1), x),
        gradients(tf, lambda x: raw.Fill(dims=[2, 2], value=x), 1.5),
        gradients(tf, lambda x, y: raw.LinSpace(start=x, stop=y, num=3)[:2], 1.0, 2.0)[0],
        gradients(tf, lambda x: raw.MirrorPad(input=x, paddings=[[1, 0], [0, 1]], mode="REFLECT"), x),
        gradients(tf, lambda x, y: raw.Pack(values=[x, y], axis=1), x, x),
        gradients(tf, lambda x: raw.Pad(input=x, paddings=[[1, 0], [0, 1]]), x),
        gradients(tf, lambda x: raw.PadV2(input=x, paddings=[[1, 0], [0, 1]], constant_values=7.0), x),
        [raw.Range(start=1, limit=7, delta=2), raw.Rank(input=x), raw.Shape(input=x), raw.Size(input=x)],
        raw.Shape(input=x, out_type=tf.int64),
        gradients(tf, lambda x: raw.Reshape(tensor=x, shape=[3, -1]), x),
        gradients(tf, lambda x: raw.ReverseSequence(input=x, seq_lengths=[2, 3], seq_dim=1), x),
        gradients(tf, lambda x: raw.ReverseV2(tensor=x, axis=[1]), x),
        gradients(tf, lambda x: raw.Roll(input=x, shift=[1], axis=[1]), x),
        gradients(tf, lambda x: raw.Slice(input=x, begin=[0, 1], size=[2, -1]), x),
        gradients(tf, lambda x: raw.Split(axis=1, value=x, num_split=3), x),
        gradients(tf, lambda x: raw.SplitV(value=x, size_splits=[1, 2], axis=1, num_split=2), x),
        gradients(tf, lambda x: raw.Squeeze(input=x), [[1.0], [2.0]]),
        gradients(tf, lambda x: raw.Squeeze(input=x, axis=[0]), [[[1.0], [2.0]]]),
        gradients(tf, lambda x: raw.StridedSlice(input=x, begin=[0, 0], end=[0, 2], strides=[1, 1], end_mask=1), x),
        gradients(tf, lambda x: raw.Tile(input=x, multiples=[2, 1]), x),
        gradients(tf, lambda x: raw.Transpose(x=x, perm=[1, 0]), x),
        gradients(tf, lambda x: raw.Unpack(value=x, num=2), x),
    ]


@program()
def raw_functions_of_places(tf, np):
    raw, x = tf.raw_ops, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    places, updates = [[1]], [[7.0, 8.0, 9.0]]
    return [
        gradients(tf, lambda x: raw.DynamicPartition(data=x, partitions=[1, 0], num_partitions=2), x),
        gradients(tf, lambda x, y: raw.DynamicStitch(indices=[[0], [2, 1]], data=[x, y]), [1.0], [2.0, 3.0]),
        gradients(tf, lambda x: raw.GatherNd(params=x, indices=[[1, 0], [0, 2]]), x),
        raw.GatherV2(params=x, indices=[2, 0], axis=1),
        raw.GatherV2(params=x, indices=[[2], [0]], axis=1, batch_dims=1),
        [raw.InvertPermutation(x=[2, 0, 1]), raw.Where(condition=[True, False, True])],
        raw.OneHot(indices=[1, 0], depth=3, on_value=2.0, off_value=-1.0),
        gradients(tf, lambda u: raw.ScatterNd(indices=places, updates=u, shape=[3, 3]), updates),
        results_of(tf, SCATTERS, lambda op, x, u: op(tensor=x, indices=places, updates=u), x, updates),
        gradients(tf, lambda x, y: raw.SelectV2(condition=[True, False], t=x, e=y), SIGNED, POSITIVE),
    ]


@program(rtol=1e-5)
def raw_functions_of_matrices(tf, np):
    raw, vectors = tf.raw_ops, [[1.0], [2.0]]
    of_one = "Cholesky MatrixDeterminant MatrixInverse MatrixSquareRoot MatrixDiagPart DiagPart".split()
    symmetric = raw.SelfAdjointEigV2(input=MATRIX)
    singular = raw.Svd(input=MATRIX)
    return [
        results_of(tf, of_one, lambda op, x: op(input=x), MATRIX),
        gradients(tf, lambda a, b: raw.MatMul(a=a, b=b, transpose_a=True), SIGNED, POSITIVE),
        results_of(
            tf, ["BatchMatMul", "BatchMatMulV2"], lambda op, x, y: op(x=x, y=y, adj_y=True), [SIGNED], [POSITIVE]
        ),
        gradients(tf, lambda x, y: raw.Einsum(inputs=[x, y], equation="ij,kj->ik"), SIGNED, POSITIVE),
        gradients(tf, lambda a, b: raw.Cross(a=a, b=b), [1.0, 2.0, 3.0], [0.5, -1.0, 2.0]),
        [raw.Diag(diagonal=[1.0, 2.0]), raw.MatrixDiag(diagonal=SIGNED)],
        raw.MatrixBandPart(input=MATRIX, num_lower=0, num_upper=-1),
        raw.MatrixSetDiag(input=MATRIX, diagonal=[9.0, 8.0]),
        raw.LogMatrixDeterminant(input=MATRIX).log_abs_determinant,
        gradients(tf, lambda a, b: raw.MatrixSolve(matrix=a, rhs=b, adjoint=True), SIGNED, vectors),
        gradients(tf, lambda a, b: raw.MatrixTriangularSolve(matrix=a, rhs=b, lower=False), MATRIX, vectors),
        gradients(tf, lambda a: raw.MatrixInverse(input=a, adjoint=True), SIGNED),
        [tf.abs(part) for part in raw.Qr(input=MATRIX)],
        [symmetric.e, tf.abs(symmetric.v), raw.SelfAdjointEigV2(input=MATRIX, compute_v=False).e],
        [singular.s, tf.abs(singular.u), tf.abs(singular.v), raw.Svd(input=MATRIX, compute_uv=False).s],
    ]


@program(rtol=1e-5)
def raw_functions_of_networks(tf, np):
    raw = tf.raw_ops
    images = np.linspace(-1.0, 1.0, 32, dtype=np.float32).reshape(1, 4, 4, 2)
    filters = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(2, 2, 2, 2)
    volumes, cubes = images.reshape(1, 2, 4, 2, 2), filters.reshape(2, 1, 2, 2, 2)
    ones, window = [1, 1, 1, 1], [1, 2, 2, 1]
    explicit = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]}
    convolution = {"strides": ones, **explicit}
    pooling = {"ksize": window, "strides": window}
    labels = [[0.25, 0.75], [1.0, 0.0]]
    return [
        gradients(tf, lambda x, w: raw.Conv2D(input=x, filter=w, strides=ones, padding="SAME"), images, filters),
        gradients(tf, lambda x, w: raw.Conv2D(input=x, filter=w, **convolution), images, filters),
        gradients(
            tf,
            lambda x, w: raw.DepthwiseConv2dNative(input=x, filter=w, strides=ones, padding="VALID"),
            images,
            filters,
        ),
        gradients(tf, lambda x, w: raw.Conv3D(input=x, filter=w, strides=[1] * 5, padding="SAME"), volumes, cubes),
        gradients(tf, lambda x: raw.MaxPool(input=x, **pooling, padding="SAME"), images),
        gradients(tf, lambda x: raw.MaxPool(input=x, **pooling, **explicit), images),
        gradients(tf, lambda x: raw.AvgPool(value=x, **pooling, padding="VALID"), images),
        gradients(
            tf, lambda x: raw.AvgPool3D(input=x, ksize=[1] * 5, strides=[1, 1, 2, 1, 1], padding="VALID"), volumes
        ),
        gradients(tf, lambda x, b: raw.BiasAdd(value=x, bias=b), images, [1.0, 2.0]),
        gradients(tf, lambda x: raw.LRN(input=x, depth_radius=1, bias=2.0), images),
        gradients(tf, lambda x: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=labels).loss, SIGNED),
        raw.SoftmaxCrossEntropyWithLogits(features=SIGNED, labels=labels).backprop,
        gradients(tf, lambda x: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=[1, 0]).loss, SIGNED),
        raw.SparseSoftmaxCrossEntropyWithLogits(features=SIGNED, labels=[1, 0]).backprop,
        results_of(
            tf,
            ["ReluGrad", "Relu6Grad", "SoftplusGrad"],
            lambda op, g, x: op(gradients=g, features=x),
            POSITIVE,
            [[-1.5, 0.0], [6.0, 7.5]],
        ),
        gradients(tf, lambda g, y: raw.EluGrad(gradients=g, outputs=y), POSITIVE, SIGNED),
        results_of(
            tf,
            ["SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"],
            lambda op, y, dy: op(y=y, dy=dy),
            POSITIVE,
            SIGNED,
        ),
    ]


@program()
def raw_gradients_of_networks(tf, np):
    raw = tf.raw_ops
    images = np.linspace(-1.0, 1.0, 32, dtype=np.float32).reshape(1, 4, 4, 2)
    filters = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(2, 2, 2, 2)
    grads = np.cos(np.arange(32, dtype=np.float32)).reshape(1, 4, 4, 2)
    few = grads[:, :2, :2].copy()
    ones, window = [1, 1, 1, 1], [1, 2, 2, 1]
    same, pooling = {"strides": ones, "padding": "SAME"}, {"ksize": window, "strides": window, "padding": "VALID"}
    explicit = {"strides": ones, "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]}
    sizes, lengths = filters.shape, images.shape

    def of_images(kernel, grad):
        return raw.Conv2DBackpropInput(input_sizes=lengths, filter=kernel, out_backprop=grad, **same)

    def of_filters(x, grad):
        return raw.Conv2DBackpropFilter(input=x, filter_sizes=sizes, out_backprop=grad, **same)

    return [
        gradients(tf, of_images, filters, grads),
        gradients(tf, of_filters, images, grads),
        raw.Conv2DBackpropFilter(input=images, filter_sizes=sizes, out_backprop=grads, **explicit),
        raw.Conv2DBackpropInput(input_sizes=lengths, filter=filters, out_backprop=grads, **explicit),
        raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=lengths, filter=filters[..., :1].copy(), out_backprop=grads, **same
        ),
        raw.DepthwiseConv2dNativeBackpropFilter(input=images, filter_sizes=[2, 2, 2, 1], out_backprop=grads, **same),
        raw.MaxPoolGrad(orig_input=images, orig_output=images[:, 1::2, 1::2].copy(), grad=few, **pooling),
        gradients(tf, lambda g: raw.AvgPoolGrad(orig_input_shape=lengths, grad=g, **pooling), few),
        gradients(tf, lambda g: raw.BiasAddGrad(out_backprop=g), grads),
        raw.BiasAddGrad(out_backprop=grads, data_format="NCHW"),
        gradients(tf, lambda g: raw.LeakyReluGrad(gradients=g, features=SIGNED, alpha=0.3), POSITIVE),
        gradients(tf, lambda g, y: raw.SeluGrad(gradients=g, outputs=y), POSITIVE, SIGNED),
        raw.SoftsignGrad(gradients=POSITIVE, features=SIGNED),
    ]


@program()
def raw_functions_of_decompositions_and_spectra(tf, np):
    raw = tf.raw_ops
    matrix = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)
    diagonals = np.array([[[1.0, 0.5, 0.0]], [[4.0, 5.0, 6.0]], [[0.0, 1.0, 0.5]]], np.float32)
    right = np.ones((3, 2), np.float32)
    signal = np.cos(np.arange(8, dtype=np.float32)).reshape(1, 2, 4)
    factors = raw.Lu(input=matrix)
    whole = raw.Eig(input=matrix, Tout=tf.complex64)
    structure = np.ones((2, 2, 1), np.float32)

    def squared(a):
        return raw.MatrixSolveLs(matrix=a, rhs=tf.ones([2, 1]), l2_regularizer=tf.zeros([], tf.float64))

    return [
        [factors.lu, factors.p],
        tf.sort(tf.math.real(whole.e)),
        tf.sort(tf.math.real(raw.Eig(input=matrix, compute_v=False, Tout=tf.complex64).e)),
        gradients(tf, squared, matrix),
        raw.TridiagonalSolve(diagonals=diagonals[:, 0], rhs=right),
        raw.TridiagonalMatMul(superdiag=diagonals[0], maindiag=diagonals[1], subdiag=diagonals[2], rhs=right),
        raw.BandedTriangularSolve(matrix=diagonals[1:, 0], rhs=right),
        raw.BatchMatMulV3(x=tf.ones([2, 2], tf.int8), y=tf.ones([2, 2], tf.int8), Tout=tf.int32),
        raw.MatrixDiagV3(diagonal=[1.0, 2.0], k=1, num_rows=-1, num_cols=-1, padding_value=0.0),
        raw.MatrixDiagPartV3(input=matrix, k=(-1, 0), padding_value=9.0),
        raw.MatrixSetDiagV3(input=matrix, diagonal=[7.0], k=1),
        raw.RFFT(input=signal, fft_length=[4]),
        raw.RFFT2D(input=signal, fft_length=[2, 4]),
        raw.RFFT3D(input=signal, fft_length=[1, 2, 4]),
        raw.IRFFT(input=tf.cast(signal[..., :3], tf.complex64), fft_length=[4]),
        raw.IRFFT2D(input=tf.cast(signal[..., :3], tf.complex64), fft_length=[2, 4]),
        raw.IRFFT3D(input=tf.cast(signal[..., :3], tf.complex64), fft_length=[1, 2, 4]),
        raw.MatrixLogarithm(input=tf.cast(matrix, tf.complex64)),
        raw.MaxPool3D(input=signal[..., None, None], ksize=[1, 1, 2, 1, 1], strides=[1] * 5, padding="SAME"),
        raw.BiasAddV1(value=matrix, bias=[1.0, 2.0]),
        raw.ExtractImagePatches(
            images=signal[..., None], ksizes=[1, 2, 2, 1], strides=[1] * 4, rates=[1] * 4, padding="VALID"
        ),
        raw.SpaceToBatchND(input=signal[..., None], block_shape=[2, 2], paddings=[[0, 0], [0, 0]]),
        raw.BatchToSpaceND(input=np.ones((4, 1, 2, 1), np.float32), block_shape=[2, 2], crops=[[0, 0], [0, 1]]),
        raw.InTopKV2(predictions=matrix, targets=[0, 0], k=1),
        raw.Dilation2D(
            input=signal[..., None],
            filter=np.ones((2, 2, 1), np.float32),
            strides=[1] * 4,
            rates=[1] * 4,
            padding="SAME",
        ),
        list(raw.MaxPoolWithArgmax(input=signal[..., None], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")),
    ]


@program()
def raw_ops_take_keywords_alone(tf, np):
    x = tf.constant(SIGNED)
    return [
        raises(lambda: tf.raw_ops.AddV2(x, x), "only takes keyword args"),
        raises(lambda: tf.raw_ops.AddV2(x=x)),
        raises(lambda: tf.raw_ops.AddV2(x=x, z=x)),
        tf.raw_ops.AddV2(x=x, y=x, name="sum"),
    ]


@program()
def raw_functions_of_random_numbers(tf, np):
    raw, seed = tf.raw_ops, [3, 5]
    names = "StatelessRandomNormal StatelessRandomUniform StatelessTruncatedNormal".split()
    return [
        {name: getattr(raw, name)(shape=[2, 3], seed=seed) for name in names},
        {name: getattr(raw, name)(shape=[2], seed=seed, dtype=tf.float64) for name in names},
        raw.StatelessRandomUniformInt(
            shape=[4], seed=seed, minval=tf.constant(-3, tf.int64), maxval=tf.constant(9, tf.int64)
        ),
        raw.StatelessMultinomial(logits=[[0.1, 0.9], [2.0, 0.0]], num_samples=5, seed=seed),
    ]


@program()
def raw_functions_of_strings(tf, np):
    raw, words = tf.raw_ops, [" Ab1", "cD "]
    numbers = [
        raw.StringLength(input=words),
        raw.StringToHashBucketFast(input=words, num_buckets=7),
        raw.StringToHashBucketStrong(input=words, num_buckets=7, key=[1, 2]),
        raw.StringToNumber(string_tensor=["1", "-2.5"]),
        raw.RegexFullMatch(input=words, pattern=".*[0-9]"),
        raw.StaticRegexFullMatch(input=words, pattern=".*[0-9]"),
    ]
    texts = [
        raw.AsString(input=[1.5, 2.0], precision=2),
        raw.DecodeBase64(input=raw.EncodeBase64(input=words, pad=True)),
        raw.ReduceJoin(inputs=[words, words], reduction_indices=[0], separator="-"),
        raw.RegexReplace(input=words, pattern="[a-z]", rewrite="#"),
        raw.StaticRegexReplace(input=words, pattern="[A-Z]", rewrite="#", replace_global=False),
        raw.StringJoin(inputs=[words, words], separator="+"),
        *[getattr(raw, name)(input=words) for name in ("StringLower", "StringStrip", "StringUpper")],
        raw.Substr(input=words, pos=1, len=2),
    ]
    return numbers, [tensor.numpy().tolist().__repr__() for tensor in texts]


@program()
def raw_functions_of_images(tf, np):
    raw = tf.raw_ops
    images = tf.constant(np.cos(np.arange(96.0)).reshape(2, 4, 4, 3) * 0.4 + 0.5, tf.float32)
    levels = tf.constant((np.arange(48) * 5).reshape(4, 4, 3), tf.uint8)
    boxes = [[0.0, 0.1, 0.8, 0.9], [0.2, 0.0, 1.0, 1.0]]
    return [
        raw.AdjustContrastv2(images=images, contrast_factor=1.5),
        raw.AdjustHue(images=images, delta=0.2),
        raw.AdjustSaturation(images=images, scale=0.7),
        gradients(tf, lambda x: raw.CropAndResize(image=x, boxes=boxes, box_ind=[0, 1], crop_size=[2, 3]), images),
        raw.DecodePng(contents=raw.EncodePng(image=levels)),
        gradients(
            tf,
            lambda x: raw.ExtractImagePatches(
                images=x, ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID"
            ),
            images,
        ),
        raw.HSVToRGB(images=raw.RGBToHSV(images=images)),
        raw.NonMaxSuppressionV3(
            boxes=boxes, scores=[0.5, 0.7], max_output_size=2, iou_threshold=0.5, score_threshold=0.1
        ),
    ]


@program()
def more_raw_functions_of_arrays(tf, np):
    raw, x = tf.raw_ops, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    segments = {"indices": [0, 1, 1], "segment_ids": [0, 0, 1]}
    blocks = tf.reshape(tf.range(16.0), [4, 2, 2, 1])
    spaces = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    filters, cotangent = tf.reshape(tf.range(8.0), [2, 2, 1, 2]), tf.reshape(tf.range(18.0), [1, 3, 3, 2])
    return [
        {
            name: gradients(tf, lambda t, op=name: getattr(raw, op)(data=t, **segments), x)
            for name in ("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum")
        },
        gradients(tf, lambda t: raw.BatchToSpaceND(input=t, block_shape=[2, 2], crops=[[0, 0], [0, 0]]), blocks),
        gradients(tf, lambda t: raw.SpaceToBatchND(input=t, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]), spaces),
        raw.Bincount(arr=tf.constant([1, 1, 3]), size=4, weights=tf.constant([], tf.int32)),
        raw.Bincount(arr=tf.constant([1, 1, 3]), size=4, weights=tf.constant([0.5, 0.25, 1.0])),
        raw.BroadcastArgs(s0=[2, 1], s1=[3]),
        gradients(tf, lambda t: raw.ClipByValue(t=t, clip_value_min=2.0, clip_value_max=5.0), x),
        gradients(tf, lambda t: raw.CumulativeLogsumexp(x=t, axis=1), x),
        gradients(tf, lambda t: raw.EnsureShape(input=t, shape=[None, 3]), x),
        gradients(tf, lambda t: raw.IdentityN(input=[t, t]), x),
        raw.InTopKV2(predictions=x, targets=[2, 0], k=1),
        raw.LowerBound(sorted_inputs=x, values=[[2.0], [7.0]]),
        raw.UpperBound(sorted_inputs=x, values=[[2.0], [7.0]], out_type=tf.int64),
        list(raw.Unique(x=[3, 1, 3])),
        list(raw.UniqueWithCounts(x=[3, 1, 3], out_idx=tf.int64)),
        raw.MatrixLogarithm(input=tf.constant([[1.5, 0.2], [0.1, 2.0]], tf.complex64)),
        gradients(
            tf,
            lambda w, ct: raw.Conv2DBackpropInput(
                input_sizes=[1, 4, 4, 1], filter=w, out_backprop=ct, strides=[1, 1, 1, 1], padding="VALID"
            ),
            filters,
            cotangent,
        ),
    ]


@program(rtol=2e-5)  # sums of a channel in another order
def raw_batch_normalization(tf, np):
    raw = tf.raw_ops
    x = np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 2, 3, 2)
    scale, offset = [1.5, -0.5], [0.25, 1.0]
    moments = {"mean": [0.1, -0.2], "variance": [0.5, 2.0]}
    none = {"mean": [], "variance": []}
    mixed = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, **moments, exponential_avg_factor=0.25)

    def normalized(op, options):
        return lambda *inputs: op(**dict(zip(("x", "scale", "offset"), inputs)), **options)[0]

    return [
        [
            gradients(tf, normalized(op, options), x, scale, offset)
            for op in (raw.FusedBatchNorm, raw.FusedBatchNormV2, raw.FusedBatchNormV3)
            for options in ({**none, "epsilon": 0.01}, {**moments, "is_training": False})
        ],
        list(mixed),
        [*raw.FusedBatchNormV2(x=x, scale=scale, offset=offset, **none)._asdict()],
        raw.FusedBatchNormV3(x=x[..., None], scale=scale[:1], offset=offset[:1], **none, data_format="NDHWC").y,
        raw.FusedBatchNormV3(x=tf.cast(x, tf.float16), scale=scale, offset=offset, **none).y.dtype,
        raises(lambda: raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, **none, is_training=False)),
    ]
