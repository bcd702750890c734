"""Written by `make reference` from the catalogue; a test holds it current. See `namespace.py`."""

from typing import Final

from teletape_engine.catalogue.attributes import Axes, Axis, Ints, Pairs, Slices
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand, Term
from teletape_engine.spec import DType, Number, Shape

class _Abs(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Acos(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Acosh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Add(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _AddN(Op):
    def __call__(self, *xs: Term) -> Operand: ...

class _Adjoint(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _AdjustContrast(Op):
    def __call__(self, images: Term, contrast_factor: Term, /) -> Operand: ...

class _AdjustHue(Op):
    def __call__(self, x: Term, delta: Term, /) -> Operand: ...

class _AdjustSaturation(Op):
    def __call__(self, x: Term, factor: Term, /) -> Operand: ...

class _Angle(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Argmax(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., output_type: DType | str = ...) -> Operand: ...

class _Argmin(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., output_type: DType | str = ...) -> Operand: ...

class _Argsort(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., direction: str = ...) -> Operand: ...

class _Asin(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Asinh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Atan(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Atan2(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Atanh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Attention(Op):
    def __call__(self, q: Term, k: Term, v: Term, bias: Term, /, *, scale: float, causal: bool = ...) -> Operand: ...

class _AvgPool(Op):
    def __call__(
        self, x: Term, /, *, ksize: Ints, strides: Ints, padding: str = ..., paddings: Pairs | None = ...
    ) -> Operand: ...

class _AvgPoolBackprop(Op):
    def __call__(
        self, x: Term, /, *, shape: Shape, ksize: Ints, strides: Ints, padding: str = ..., paddings: Pairs | None = ...
    ) -> Operand: ...

class _AvgPooling(Op):
    def __call__(
        self,
        x: Term,
        /,
        *,
        ksize: Ints,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        channels_first: bool = ...,
    ) -> Operand: ...

class _BandPart(Op):
    def __call__(self, x: Term, /, *, num_lower: int, num_upper: int) -> Operand: ...

class _BandedSolve(Op):
    def __call__(self, bands: Term, rhs: Term, /, *, lower: bool = ..., adjoint: bool = ...) -> Operand: ...

class _BandedTriangularSolve(Op):
    def __call__(self, bands: Term, rhs: Term, /, *, lower: bool = ..., adjoint: bool = ...) -> Operand: ...

class _BatchToSpace(Op):
    def __call__(self, x: Term, /, *, block_shape: Ints, crops: Pairs) -> Operand: ...

class _BesselI0(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselI0e(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselI1(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselI1e(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselJ0(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselJ1(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselK0(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselK0e(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselK1(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselK1e(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselY0(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _BesselY1(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Betainc(Op):
    def __call__(self, a: Term, b: Term, x: Term, /) -> Operand: ...

class _BiasAdd(Op):
    def __call__(self, value: Term, bias: Term, /) -> Operand: ...

class _Bincount(Op):
    def __call__(self, x: Term, weights: Term, /, *, size: int, rows: bool = ...) -> Operand: ...

class _Bitcast(Op):
    def __call__(self, x: Term, /, *, dtype: DType | str) -> Operand: ...

class _BitwiseAnd(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _BitwiseOr(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _BitwiseXor(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _BroadcastTo(Op):
    def __call__(self, x: Term, /, *, shape: Shape) -> Operand: ...

class _Bucketize(Op):
    def __call__(self, x: Term, boundaries: Term, /) -> Operand: ...

class _Cast(Op):
    def __call__(self, x: Term, /, *, dtype: DType | str) -> Operand: ...

class _Ceil(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _CheckNumerics(Op):
    def __call__(self, x: Term, /, *, message: str) -> Operand: ...

class _Cholesky(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _CholeskyGrad(Op):
    def __call__(self, chol: Term, grad: Term, /) -> Operand: ...

class _CholeskySolve(Op):
    def __call__(self, chol: Term, rhs: Term, /) -> Operand: ...

class _ClipByValue(Op):
    def __call__(self, x: Term, clip_value_min: Term, clip_value_max: Term, /) -> Operand: ...

class _CombinedNonMaxSuppression(Op):
    def __call__(  # type: ignore[override]
        self,
        boxes: Term,
        scores: Term,
        /,
        *,
        max_output_size_per_class: int,
        max_total_size: int,
        iou_threshold: float = ...,
        score_threshold: float = ...,
        pad_per_class: bool = ...,
        clip_boxes: bool = ...,
    ) -> tuple[Operand, Operand, Operand, Operand]: ...

class _Complex(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Concat(Op):
    def __call__(self, *xs: Term, axis: Axis) -> Operand: ...

class _Conj(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Conv2d(Op):
    def __call__(
        self,
        x: Term,
        filters: Term,
        /,
        *,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
    ) -> Operand: ...

class _Conv2dBackpropFilter(Op):
    def __call__(
        self,
        x: Term,
        grad: Term,
        /,
        *,
        shape: Shape,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
    ) -> Operand: ...

class _Conv2dBackpropInput(Op):
    def __call__(
        self,
        grad: Term,
        filters: Term,
        /,
        *,
        shape: Shape,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
    ) -> Operand: ...

class _Convolution(Op):
    def __call__(
        self,
        x: Term,
        filters: Term,
        /,
        *,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
        channels_first: bool = ...,
    ) -> Operand: ...

class _ConvolutionTranspose(Op):
    def __call__(
        self,
        x: Term,
        filters: Term,
        /,
        *,
        shape: Shape,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
        channels_first: bool = ...,
    ) -> Operand: ...

class _Cos(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Cosh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _CountNonzero(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ..., dtype: DType | str = ...) -> Operand: ...

class _Crelu(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ...) -> Operand: ...

class _CropAndResize(Op):
    def __call__(
        self,
        image: Term,
        boxes: Term,
        box_indices: Term,
        /,
        *,
        crop_size: Ints,
        method: str = ...,
        extrapolation_value: float = ...,
        slope: str = ...,
    ) -> Operand: ...

class _CropAndResizeBackprop(Op):
    def __call__(
        self, grad: Term, boxes: Term, box_indices: Term, /, *, shape: Shape, method: str = ..., slope: str = ...
    ) -> Operand: ...

class _Cross(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _CtcLoss(Op):
    def __call__(
        self, logits: Term, labels: Term, label_length: Term, logit_length: Term, /, *, blank: int = ...
    ) -> Operand: ...

class _Cumprod(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., exclusive: bool = ..., reverse: bool = ...) -> Operand: ...

class _Cumsum(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., exclusive: bool = ..., reverse: bool = ...) -> Operand: ...

class _CumulativeLogsumexp(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., exclusive: bool = ..., reverse: bool = ...) -> Operand: ...

class _Dawsn(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _DecayedCumsum(Op):
    def __call__(self, x: Term, exponents: Term, /, *, axis: Axis = ..., reverse: bool = ...) -> Operand: ...

class _Dependency(Op):
    def __call__(self, *xs: Term) -> Operand: ...

class _DepthToSpace(Op):
    def __call__(self, x: Term, /, *, block_size: int, channels_first: bool = ...) -> Operand: ...

class _DepthwiseConv2d(Op):
    def __call__(
        self,
        x: Term,
        filters: Term,
        /,
        *,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        dilations: Ints = ...,
        channels_first: bool = ...,
    ) -> Operand: ...

class _Det(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _DetSign(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Dft(Op):
    def __call__(self, x: Term, /, *, rank: int = ..., inverse: bool = ...) -> Operand: ...

class _Diag(Op):
    def __call__(
        self, x: Term, /, *, k: int = ..., num_rows: int = ..., num_cols: int = ..., padding_value: Number = ...
    ) -> Operand: ...

class _DiagPart(Op):
    def __call__(self, x: Term, /, *, k: int = ...) -> Operand: ...

class _Digamma(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Dilation2d(Op):
    def __call__(
        self, x: Term, filters: Term, /, *, strides: Ints = ..., rates: Ints = ..., padding: str = ...
    ) -> Operand: ...

class _Div(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _DivNoNan(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Dot(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _DrawBoundingBoxes(Op):
    def __call__(self, images: Term, boxes: Term, colors: Term, /) -> Operand: ...

class _Eig(Op):
    def __call__(self, x: Term, /) -> tuple[Operand, Operand]: ...  # type: ignore[override]

class _Eigh(Op):
    def __call__(self, x: Term, /) -> tuple[Operand, Operand]: ...  # type: ignore[override]

class _Eigvals(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Eigvalsh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Einsum(Op):
    def __call__(self, *xs: Term, equation: str) -> Operand: ...

class _ElementIndex(Op):
    def __call__(self, index: Term, /, *, length: int, wraps: bool, message: str) -> Operand: ...

class _Elu(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Ensure(Op):
    def __call__(self, condition: Term, /, *, message: str) -> Operand: ...

class _Equal(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Erf(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Erfc(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Erfcinv(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Erfinv(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Exp(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ExpandDims(Op):
    def __call__(self, x: Term, /, *, axis: Axis) -> Operand: ...

class _Expint(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Expm(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Expm1(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ExtractGlimpse(Op):
    def __call__(
        self, images: Term, offsets: Term, /, *, size: Ints, centered: bool = ..., normalized: bool = ...
    ) -> Operand: ...

class _ExtractPatches(Op):
    def __call__(self, x: Term, /, *, sizes: Ints, strides: Ints, rates: Ints = ..., padding: str = ...) -> Operand: ...

class _ExtractVolumePatches(Op):
    def __call__(self, x: Term, /, *, sizes: Ints, strides: Ints, padding: str) -> Operand: ...

class _Eye(Op):
    def __call__(
        self, *, num_rows: int, num_columns: int | None = ..., batch_shape: Shape = ..., dtype: DType | str = ...
    ) -> Operand: ...

class _Fft(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Fft2d(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Fft3d(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Fill(Op):
    def __call__(self, value: Term, /, *, shape: Shape, dtype: DType | str | None = ...) -> Operand: ...

class _Floor(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Floordiv(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Floormod(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _FractionalAvgPool(Op):
    def __call__(self, x: Term, rows: Term, columns: Term, /, *, overlapping: bool = ...) -> Operand: ...

class _FractionalMaxPool(Op):
    def __call__(self, x: Term, rows: Term, columns: Term, /, *, overlapping: bool = ...) -> Operand: ...

class _Frame(Op):
    def __call__(self, x: Term, /, *, length: int, step: int) -> Operand: ...

class _FresnelCos(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _FresnelSin(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _FusedAttention(Op):
    def __call__(self, q: Term, k: Term, v: Term, bias: Term, /, *, scale: float, causal: bool = ...) -> Operand: ...

class _Gather(Op):
    def __call__(self, params: Term, indices: Term, /, *, axis: Axis = ..., batch_dims: int = ...) -> Operand: ...

class _GatherNd(Op):
    def __call__(self, params: Term, indices: Term, /, *, batch_dims: int = ...) -> Operand: ...

class _Gelu(Op):
    def __call__(self, x: Term, /, *, approximate: bool = ...) -> Operand: ...

class _GeluGrad(Op):
    def __call__(self, grad: Term, x: Term, /, *, approximate: bool = ...) -> Operand: ...

class _Greater(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _GreaterEqual(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _HistogramFixedWidth(Op):
    def __call__(
        self, values: Term, value_range: Term, /, *, nbins: int = ..., dtype: DType | str = ...
    ) -> Operand: ...

class _HistogramFixedWidthBins(Op):
    def __call__(
        self, values: Term, value_range: Term, /, *, nbins: int = ..., dtype: DType | str = ...
    ) -> Operand: ...

class _HsvToRgb(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Identity(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Ifft(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Ifft2d(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Ifft3d(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Igamma(Op):
    def __call__(self, a: Term, x: Term, /) -> Operand: ...

class _Igammac(Op):
    def __call__(self, a: Term, x: Term, /) -> Operand: ...

class _Imag(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _InTopK(Op):
    def __call__(self, targets: Term, predictions: Term, /, *, k: int) -> Operand: ...

class _Inv(Op):
    def __call__(self, x: Term, /, *, adjoint: bool = ...) -> Operand: ...

class _InverseRealDft(Op):
    def __call__(self, x: Term, /, *, length: int, rank: int = ...) -> Operand: ...

class _Invert(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _InvertPermutation(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Irfft(Op):
    def __call__(self, x: Term, /, *, fft_length: Shape) -> Operand: ...

class _IsNonDecreasing(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _IsStrictlyIncreasing(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Isfinite(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Isinf(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Isnan(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _IsotonicRegression(Op):
    def __call__(self, x: Term, segments: Term, /) -> Operand: ...

class _IsotonicSegments(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _L2Loss(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _L2Normalize(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., epsilon: float = ...) -> Operand: ...

class _Lbeta(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LeakyRelu(Op):
    def __call__(self, x: Term, /, *, alpha: float = ...) -> Operand: ...

class _LeftShift(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Less(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _LessEqual(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Lgamma(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Linspace(Op):
    def __call__(self, start: Term, stop: Term, /, *, num: int, axis: Axis = ...) -> Operand: ...

class _LocalResponseNormalization(Op):
    def __call__(
        self, x: Term, /, *, depth_radius: int = ..., bias: float = ..., alpha: float = ..., beta: float = ...
    ) -> Operand: ...

class _Log(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Log1p(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LogAbsDet(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LogPoissonLoss(Op):
    def __call__(self, targets: Term, log_input: Term, /, *, compute_full_loss: bool = ...) -> Operand: ...

class _LogSigmoid(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LogSoftmax(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ...) -> Operand: ...

class _Logdet(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LogicalAnd(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _LogicalNot(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _LogicalOr(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Logm(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Lu(Op):
    def __call__(  # type: ignore[override]
        self, x: Term, /, *, index_type: DType | str = ...
    ) -> tuple[Operand, Operand]: ...

class _Matmul(Op):
    def __call__(
        self,
        a: Term,
        b: Term,
        /,
        *,
        transpose_a: bool = ...,
        transpose_b: bool = ...,
        adjoint_a: bool = ...,
        adjoint_b: bool = ...,
    ) -> Operand: ...

class _MatrixRank(Op):
    def __call__(self, x: Term, /, *, tol: float = ...) -> Operand: ...

class _MatrixTranspose(Op):
    def __call__(self, x: Term, /, *, conjugate: bool = ...) -> Operand: ...

class _Matvec(Op):
    def __call__(self, a: Term, b: Term, /, *, transpose_a: bool = ..., adjoint_a: bool = ...) -> Operand: ...

class _MaxPool(Op):
    def __call__(
        self, x: Term, /, *, ksize: Ints, strides: Ints, padding: str = ..., paddings: Pairs | None = ...
    ) -> Operand: ...

class _MaxPoolBackprop(Op):
    def __call__(
        self, grad: Term, x: Term, /, *, ksize: Ints, strides: Ints, padding: str = ..., paddings: Pairs | None = ...
    ) -> Operand: ...

class _MaxPoolPick(Op):
    def __call__(
        self, t: Term, x: Term, /, *, ksize: Ints, strides: Ints, padding: str = ..., paddings: Pairs | None = ...
    ) -> Operand: ...

class _MaxPoolWithArgmax(Op):
    def __call__(  # type: ignore[override]
        self,
        x: Term,
        /,
        *,
        ksize: Ints,
        strides: Ints,
        padding: str = ...,
        include_batch_in_index: bool = ...,
        index_type: DType | str = ...,
    ) -> tuple[Operand, Operand]: ...

class _MaxPooling(Op):
    def __call__(
        self,
        x: Term,
        /,
        *,
        ksize: Ints,
        strides: Ints = ...,
        padding: str = ...,
        paddings: Pairs | None = ...,
        channels_first: bool = ...,
    ) -> Operand: ...

class _Maximum(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Minimum(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _MirrorPad(Op):
    def __call__(self, x: Term, /, *, paddings: Pairs, mode: str) -> Operand: ...

class _Mul(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _MulNoNan(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Ndtri(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Neg(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Nextafter(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _NoGradient(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _NonMaxSuppression(Op):
    def __call__(  # type: ignore[override]
        self,
        boxes: Term,
        scores: Term,
        /,
        *,
        max_output_size: int,
        iou_threshold: float = ...,
        score_threshold: float = ...,
        soft_nms_sigma: float = ...,
    ) -> tuple[Operand, Operand]: ...

class _NonMaxSuppressionOverlaps(Op):
    def __call__(
        self,
        overlaps: Term,
        scores: Term,
        /,
        *,
        max_output_size: int,
        overlap_threshold: float = ...,
        score_threshold: float = ...,
    ) -> Operand: ...

class _NonMaxSuppressionPadded(Op):
    def __call__(  # type: ignore[override]
        self,
        boxes: Term,
        scores: Term,
        /,
        *,
        max_output_size: int,
        iou_threshold: float = ...,
        score_threshold: float = ...,
        sorted_input: bool = ...,
        canonicalized_coordinates: bool = ...,
    ) -> tuple[Operand, Operand]: ...

class _Nonzero(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _NotEqual(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _NumpyMatmul(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _OneHot(Op):
    def __call__(
        self,
        indices: Term,
        /,
        *,
        depth: int,
        on_value: Number = ...,
        off_value: Number = ...,
        axis: Axis = ...,
        dtype: DType | str = ...,
    ) -> Operand: ...

class _OnesLike(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _OverlapAndAdd(Op):
    def __call__(self, x: Term, /, *, step: int) -> Operand: ...

class _Pad(Op):
    def __call__(self, x: Term, /, *, paddings: Pairs, constant_value: Number = ...) -> Operand: ...

class _PerImageStandardization(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _PermuteRows(Op):
    def __call__(self, x: Term, order: Term, /, *, inverse: bool = ...) -> Operand: ...

class _PhiloxBinomial(Op):
    def __call__(
        self, state: Term, counts: Term, probs: Term, /, *, shape: Shape, dtype: DType | str = ...
    ) -> Operand: ...

class _PhiloxBits(Op):
    def __call__(self, state: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _PhiloxBorders(Op):
    def __call__(self, state: Term, /, *, lengths: Ints, counts: Ints, pseudo_random: bool = ...) -> Operand: ...

class _PhiloxBox(Op):
    def __call__(
        self,
        state: Term,
        image_size: Term,
        bounding_boxes: Term,
        /,
        *,
        min_object_covered: float = ...,
        min_aspect_ratio: float = ...,
        max_aspect_ratio: float = ...,
        min_area: float = ...,
        max_area: float = ...,
        max_attempts: int = ...,
        use_image_if_no_bounding_boxes: bool = ...,
    ) -> Operand: ...

class _PhiloxCandidates(Op):
    def __call__(
        self, state: Term, /, *, num_sampled: int, range_max: int, unique: bool = ..., distribution: str = ...
    ) -> Operand: ...

class _PhiloxCategorical(Op):
    def __call__(self, state: Term, logits: Term, /, *, num_samples: int, dtype: DType | str = ...) -> Operand: ...

class _PhiloxGamma(Op):
    def __call__(self, state: Term, alpha: Term, /, *, shape: Shape) -> Operand: ...

class _PhiloxIntegers(Op):
    def __call__(self, state: Term, minval: Term, maxval: Term, /, *, shape: Shape) -> Operand: ...

class _PhiloxNormal(Op):
    def __call__(self, state: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _PhiloxPermutation(Op):
    def __call__(self, state: Term, /, *, n: int) -> Operand: ...

class _PhiloxPoisson(Op):
    def __call__(self, state: Term, lam: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _PhiloxSkip(Op):
    def __call__(self, state: Term, delta: Term, /) -> Operand: ...

class _PhiloxState(Op):
    def __call__(self, seed: Term, /) -> Operand: ...

class _PhiloxTruncatedNormal(Op):
    def __call__(self, state: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _PhiloxUniform(Op):
    def __call__(self, state: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _PhiloxUnigrams(Op):
    def __call__(self, state: Term, weights: Term, /, *, num_sampled: int, unique: bool = ...) -> Operand: ...

class _Pinv(Op):
    def __call__(self, x: Term, rcond: Term, /) -> Operand: ...

class _Polygamma(Op):
    def __call__(self, x: Term, /, *, order: float) -> Operand: ...

class _Pow(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _ProjectiveTransform(Op):
    def __call__(
        self,
        images: Term,
        transforms: Term,
        /,
        *,
        output_shape: Ints,
        interpolation: str,
        fill_mode: str = ...,
        fill_value: float = ...,
    ) -> Operand: ...

class _Psnr(Op):
    def __call__(self, a: Term, b: Term, /, *, max_val: float) -> Operand: ...

class _Qr(Op):
    def __call__(  # type: ignore[override]
        self, x: Term, /, *, full_matrices: bool = ...
    ) -> tuple[Operand, Operand]: ...

class _RandomGammaGrad(Op):
    def __call__(self, alpha: Term, sample: Term, /) -> Operand: ...

class _RandomIndexShuffle(Op):
    def __call__(self, index: Term, seed: Term, max_index: Term, /, *, rounds: int = ...) -> Operand: ...

class _RandomNormal(Op):
    def __call__(self, seed: Term, counter: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _RandomUniform(Op):
    def __call__(self, seed: Term, counter: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _RandomUniformInt(Op):
    def __call__(self, seed: Term, counter: Term, minval: Term, maxval: Term, /, *, shape: Shape) -> Operand: ...

class _Range(Op):
    def __call__(
        self, *, start: Number = ..., limit: Number, delta: Number = ..., dtype: DType | str | None = ...
    ) -> Operand: ...

class _Real(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RealDft(Op):
    def __call__(self, x: Term, /, *, rank: int = ...) -> Operand: ...

class _Reciprocal(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ReciprocalGrad(Op):
    def __call__(self, inverse: Term, grad: Term, /) -> Operand: ...

class _ReciprocalNoNan(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Recurrence(Op):
    def __call__(
        self, x: Term, factors: Term, /, *, axis: Axis = ..., reverse: bool = ..., own: bool = ...
    ) -> Operand: ...

class _ReduceAll(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceAny(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceEuclideanNorm(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceLogsumexp(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceMax(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceMean(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceMin(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceProd(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceStd(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceSum(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _ReduceVariance(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ..., keepdims: bool = ...) -> Operand: ...

class _Relu(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Relu6(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ReluGrad(Op):
    def __call__(self, grad: Term, features: Term, /) -> Operand: ...

class _Repeat(Op):
    def __call__(self, x: Term, /, *, times: int, axis: Axis) -> Operand: ...

class _Reshape(Op):
    def __call__(self, x: Term, /, *, shape: Ints) -> Operand: ...

class _Resize(Op):
    def __call__(self, x: Term, /, *, size: Ints, method: str = ..., antialias: bool = ...) -> Operand: ...

class _ResizeBackprop(Op):
    def __call__(self, x: Term, /, *, shape: Shape, method: str = ..., antialias: bool = ...) -> Operand: ...

class _Reverse(Op):
    def __call__(self, x: Term, /, *, axis: Ints) -> Operand: ...

class _ReverseSequence(Op):
    def __call__(self, x: Term, seq_lengths: Term, /, *, seq_axis: int, batch_axis: int = ...) -> Operand: ...

class _Rfft(Op):
    def __call__(self, x: Term, /, *, fft_length: Shape) -> Operand: ...

class _RgbToGrayscale(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RgbToHsv(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RgbToYiq(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RgbToYuv(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RightShift(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Rint(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Roll(Op):
    def __call__(self, x: Term, /, *, shift: Ints, axis: Ints) -> Operand: ...

class _Round(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Rsqrt(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _RsqrtGrad(Op):
    def __call__(self, root: Term, grad: Term, /) -> Operand: ...

class _RunningLogsumexp(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., reverse: bool = ...) -> Operand: ...

class _SaturateCast(Op):
    def __call__(self, x: Term, /, *, dtype: DType | str) -> Operand: ...

class _ScatterNd(Op):
    def __call__(self, indices: Term, updates: Term, /, *, shape: Shape) -> Operand: ...

class _Searchsorted(Op):
    def __call__(
        self, sorted_sequence: Term, values: Term, /, *, side: str = ..., out_type: DType | str = ...
    ) -> Operand: ...

class _Selu(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SequenceMask(Op):
    def __call__(self, lengths: Term, /, *, maxlen: int, dtype: DType | str = ...) -> Operand: ...

class _SetDiag(Op):
    def __call__(self, x: Term, diagonal: Term, /, *, k: int = ...) -> Operand: ...

class _Sigmoid(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SigmoidCrossEntropy(Op):
    def __call__(self, labels: Term, logits: Term, /) -> Operand: ...

class _Sign(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Silu(Op):
    def __call__(self, x: Term, /, *, beta: float = ...) -> Operand: ...

class _Sin(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Sinh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SliceStart(Op):
    def __call__(self, begin: Term, /, *, shape: Shape, size: Shape) -> Operand: ...

class _SobelEdges(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SobolSample(Op):
    def __call__(self, *, dim: int, num_results: int, skip: int = ..., dtype: DType | str = ...) -> Operand: ...

class _Softmax(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ...) -> Operand: ...

class _SoftmaxCrossEntropy(Op):
    def __call__(self, labels: Term, logits: Term, /, *, axis: Axis = ...) -> Operand: ...

class _Softplus(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Softsign(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Solve(Op):
    def __call__(self, matrix: Term, rhs: Term, /, *, adjoint: bool = ...) -> Operand: ...

class _Sort(Op):
    def __call__(self, x: Term, /, *, axis: Axis = ..., direction: str = ...) -> Operand: ...

class _SpaceToBatch(Op):
    def __call__(self, x: Term, /, *, block_shape: Ints, paddings: Pairs) -> Operand: ...

class _SpaceToDepth(Op):
    def __call__(self, x: Term, /, *, block_size: int, channels_first: bool = ...) -> Operand: ...

class _SparseSoftmaxCrossEntropy(Op):
    def __call__(self, labels: Term, logits: Term, /) -> Operand: ...

class _Spence(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Sqrt(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SqrtGrad(Op):
    def __call__(self, root: Term, grad: Term, /) -> Operand: ...

class _Sqrtm(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Square(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _SquaredDifference(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Squeeze(Op):
    def __call__(self, x: Term, /, *, axis: Axes = ...) -> Operand: ...

class _Ssim(Op):
    def __call__(
        self, a: Term, b: Term, kernel: Term, /, *, max_val: float, k1: float = ..., k2: float = ...
    ) -> Operand: ...

class _SsimContrast(Op):
    def __call__(
        self, a: Term, b: Term, kernel: Term, /, *, max_val: float, k1: float = ..., k2: float = ...
    ) -> Operand: ...

class _Stack(Op):
    def __call__(self, *xs: Term, axis: Axis = ...) -> Operand: ...

class _Step(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _StopGradient(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _StridedSlice(Op):
    def __call__(self, x: Term, /, *, index: Slices) -> Operand: ...

class _StridedSliceGrad(Op):
    def __call__(self, x: Term, /, *, index: Slices, shape: Shape) -> Operand: ...

class _Sub(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Svd(Op):
    def __call__(  # type: ignore[override]
        self, x: Term, /, *, full_matrices: bool = ...
    ) -> tuple[Operand, Operand, Operand]: ...

class _Svdvals(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Tan(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Tanh(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _TanhGrad(Op):
    def __call__(self, grad: Term, x: Term, tanh: Term, /) -> Operand: ...

class _TensorDiag(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _TensorDiagPart(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _TensorScatterNdAdd(Op):
    def __call__(self, tensor: Term, indices: Term, updates: Term, /) -> Operand: ...

class _TensorScatterNdMax(Op):
    def __call__(self, tensor: Term, indices: Term, updates: Term, /) -> Operand: ...

class _TensorScatterNdMin(Op):
    def __call__(self, tensor: Term, indices: Term, updates: Term, /) -> Operand: ...

class _TensorScatterNdSub(Op):
    def __call__(self, tensor: Term, indices: Term, updates: Term, /) -> Operand: ...

class _TensorScatterNdUpdate(Op):
    def __call__(self, tensor: Term, indices: Term, updates: Term, /) -> Operand: ...

class _Tile(Op):
    def __call__(self, x: Term, /, *, multiples: Ints) -> Operand: ...

class _TopK(Op):
    def __call__(  # type: ignore[override]
        self, x: Term, /, *, k: int = ..., index_type: DType | str = ...
    ) -> tuple[Operand, Operand]: ...

class _TotalVariation(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Trace(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Transpose(Op):
    def __call__(self, x: Term, /, *, perm: Ints | None = ...) -> Operand: ...

class _TriangularSolve(Op):
    def __call__(self, matrix: Term, rhs: Term, /, *, lower: bool = ..., adjoint: bool = ...) -> Operand: ...

class _TridiagonalMatmul(Op):
    def __call__(self, diagonals: Term, rhs: Term, /) -> Operand: ...

class _TridiagonalSolve(Op):
    def __call__(self, diagonals: Term, rhs: Term, /) -> Operand: ...

class _TruncatedNormal(Op):
    def __call__(self, seed: Term, counter: Term, /, *, shape: Shape, dtype: DType | str = ...) -> Operand: ...

class _Truncatediv(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Truncatemod(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Unique(Op):
    def __call__(  # type: ignore[override]
        self, x: Term, /, *, index_type: DType | str = ...
    ) -> tuple[Operand, Operand, Operand]: ...

class _UnravelIndex(Op):
    def __call__(self, x: Term, /, *, dims: Shape) -> Operand: ...

class _UnsortedSegmentMax(Op):
    def __call__(self, data: Term, segment_ids: Term, /, *, num_segments: int) -> Operand: ...

class _UnsortedSegmentMean(Op):
    def __call__(self, data: Term, segment_ids: Term, /, *, num_segments: int) -> Operand: ...

class _UnsortedSegmentMin(Op):
    def __call__(self, data: Term, segment_ids: Term, /, *, num_segments: int) -> Operand: ...

class _UnsortedSegmentProd(Op):
    def __call__(self, data: Term, segment_ids: Term, /, *, num_segments: int) -> Operand: ...

class _UnsortedSegmentSqrtN(Op):
    def __call__(self, data: Term, segment_ids: Term, /, *, num_segments: int) -> Operand: ...

class _UnsortedSegmentSum(Op):
    def __call__(
        self, data: Term, segment_ids: Term, /, *, num_segments: int, axis: Axis = ..., batch_dims: int = ...
    ) -> Operand: ...

class _WeightedCrossEntropy(Op):
    def __call__(self, labels: Term, logits: Term, pos_weight: Term, /) -> Operand: ...

class _WeightedProduct(Op):
    def __call__(self, *xs: Term, scale: float, causal: bool = ..., transposed: bool = ...) -> Operand: ...

class _Where(Op):
    def __call__(self, condition: Term, a: Term, b: Term, /) -> Operand: ...

class _Xdivy(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Xlog1py(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _Xlogy(Op):
    def __call__(self, a: Term, b: Term, /) -> Operand: ...

class _YiqToRgb(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _YuvToRgb(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ZeroFraction(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _ZerosEdge(Op):
    def __call__(self, *xs: Term) -> Operand: ...

class _ZerosLike(Op):
    def __call__(self, x: Term, /) -> Operand: ...

class _Zeta(Op):
    def __call__(self, x: Term, q: Term, /) -> Operand: ...

class Ops:
    abs: Final[_Abs]
    acos: Final[_Acos]
    acosh: Final[_Acosh]
    add: Final[_Add]
    add_n: Final[_AddN]
    adjoint: Final[_Adjoint]
    adjust_contrast: Final[_AdjustContrast]
    adjust_hue: Final[_AdjustHue]
    adjust_saturation: Final[_AdjustSaturation]
    angle: Final[_Angle]
    argmax: Final[_Argmax]
    argmin: Final[_Argmin]
    argsort: Final[_Argsort]
    asin: Final[_Asin]
    asinh: Final[_Asinh]
    atan: Final[_Atan]
    atan2: Final[_Atan2]
    atanh: Final[_Atanh]
    attention: Final[_Attention]
    avg_pool: Final[_AvgPool]
    avg_pool_backprop: Final[_AvgPoolBackprop]
    avg_pooling: Final[_AvgPooling]
    band_part: Final[_BandPart]
    banded_solve: Final[_BandedSolve]
    banded_triangular_solve: Final[_BandedTriangularSolve]
    batch_to_space: Final[_BatchToSpace]
    bessel_i0: Final[_BesselI0]
    bessel_i0e: Final[_BesselI0e]
    bessel_i1: Final[_BesselI1]
    bessel_i1e: Final[_BesselI1e]
    bessel_j0: Final[_BesselJ0]
    bessel_j1: Final[_BesselJ1]
    bessel_k0: Final[_BesselK0]
    bessel_k0e: Final[_BesselK0e]
    bessel_k1: Final[_BesselK1]
    bessel_k1e: Final[_BesselK1e]
    bessel_y0: Final[_BesselY0]
    bessel_y1: Final[_BesselY1]
    betainc: Final[_Betainc]
    bias_add: Final[_BiasAdd]
    bincount: Final[_Bincount]
    bitcast: Final[_Bitcast]
    bitwise_and: Final[_BitwiseAnd]
    bitwise_or: Final[_BitwiseOr]
    bitwise_xor: Final[_BitwiseXor]
    broadcast_to: Final[_BroadcastTo]
    bucketize: Final[_Bucketize]
    cast: Final[_Cast]
    ceil: Final[_Ceil]
    check_numerics: Final[_CheckNumerics]
    cholesky: Final[_Cholesky]
    cholesky_grad: Final[_CholeskyGrad]
    cholesky_solve: Final[_CholeskySolve]
    clip_by_value: Final[_ClipByValue]
    combined_non_max_suppression: Final[_CombinedNonMaxSuppression]
    complex: Final[_Complex]
    concat: Final[_Concat]
    conj: Final[_Conj]
    conv2d: Final[_Conv2d]
    conv2d_backprop_filter: Final[_Conv2dBackpropFilter]
    conv2d_backprop_input: Final[_Conv2dBackpropInput]
    convolution: Final[_Convolution]
    convolution_transpose: Final[_ConvolutionTranspose]
    cos: Final[_Cos]
    cosh: Final[_Cosh]
    count_nonzero: Final[_CountNonzero]
    crelu: Final[_Crelu]
    crop_and_resize: Final[_CropAndResize]
    crop_and_resize_backprop: Final[_CropAndResizeBackprop]
    cross: Final[_Cross]
    ctc_loss: Final[_CtcLoss]
    cumprod: Final[_Cumprod]
    cumsum: Final[_Cumsum]
    cumulative_logsumexp: Final[_CumulativeLogsumexp]
    dawsn: Final[_Dawsn]
    decayed_cumsum: Final[_DecayedCumsum]
    dependency: Final[_Dependency]
    depth_to_space: Final[_DepthToSpace]
    depthwise_conv2d: Final[_DepthwiseConv2d]
    det: Final[_Det]
    det_sign: Final[_DetSign]
    dft: Final[_Dft]
    diag: Final[_Diag]
    diag_part: Final[_DiagPart]
    digamma: Final[_Digamma]
    dilation2d: Final[_Dilation2d]
    div: Final[_Div]
    div_no_nan: Final[_DivNoNan]
    dot: Final[_Dot]
    draw_bounding_boxes: Final[_DrawBoundingBoxes]
    eig: Final[_Eig]
    eigh: Final[_Eigh]
    eigvals: Final[_Eigvals]
    eigvalsh: Final[_Eigvalsh]
    einsum: Final[_Einsum]
    element_index: Final[_ElementIndex]
    elu: Final[_Elu]
    ensure: Final[_Ensure]
    equal: Final[_Equal]
    erf: Final[_Erf]
    erfc: Final[_Erfc]
    erfcinv: Final[_Erfcinv]
    erfinv: Final[_Erfinv]
    exp: Final[_Exp]
    expand_dims: Final[_ExpandDims]
    expint: Final[_Expint]
    expm: Final[_Expm]
    expm1: Final[_Expm1]
    extract_glimpse: Final[_ExtractGlimpse]
    extract_patches: Final[_ExtractPatches]
    extract_volume_patches: Final[_ExtractVolumePatches]
    eye: Final[_Eye]
    fft: Final[_Fft]
    fft2d: Final[_Fft2d]
    fft3d: Final[_Fft3d]
    fill: Final[_Fill]
    floor: Final[_Floor]
    floordiv: Final[_Floordiv]
    floormod: Final[_Floormod]
    fractional_avg_pool: Final[_FractionalAvgPool]
    fractional_max_pool: Final[_FractionalMaxPool]
    frame: Final[_Frame]
    fresnel_cos: Final[_FresnelCos]
    fresnel_sin: Final[_FresnelSin]
    fused_attention: Final[_FusedAttention]
    gather: Final[_Gather]
    gather_nd: Final[_GatherNd]
    gelu: Final[_Gelu]
    gelu_grad: Final[_GeluGrad]
    greater: Final[_Greater]
    greater_equal: Final[_GreaterEqual]
    histogram_fixed_width: Final[_HistogramFixedWidth]
    histogram_fixed_width_bins: Final[_HistogramFixedWidthBins]
    hsv_to_rgb: Final[_HsvToRgb]
    identity: Final[_Identity]
    ifft: Final[_Ifft]
    ifft2d: Final[_Ifft2d]
    ifft3d: Final[_Ifft3d]
    igamma: Final[_Igamma]
    igammac: Final[_Igammac]
    imag: Final[_Imag]
    in_top_k: Final[_InTopK]
    inv: Final[_Inv]
    inverse_real_dft: Final[_InverseRealDft]
    invert: Final[_Invert]
    invert_permutation: Final[_InvertPermutation]
    irfft: Final[_Irfft]
    is_non_decreasing: Final[_IsNonDecreasing]
    is_strictly_increasing: Final[_IsStrictlyIncreasing]
    isfinite: Final[_Isfinite]
    isinf: Final[_Isinf]
    isnan: Final[_Isnan]
    isotonic_regression: Final[_IsotonicRegression]
    isotonic_segments: Final[_IsotonicSegments]
    l2_loss: Final[_L2Loss]
    l2_normalize: Final[_L2Normalize]
    lbeta: Final[_Lbeta]
    leaky_relu: Final[_LeakyRelu]
    left_shift: Final[_LeftShift]
    less: Final[_Less]
    less_equal: Final[_LessEqual]
    lgamma: Final[_Lgamma]
    linspace: Final[_Linspace]
    local_response_normalization: Final[_LocalResponseNormalization]
    log: Final[_Log]
    log1p: Final[_Log1p]
    log_abs_det: Final[_LogAbsDet]
    log_poisson_loss: Final[_LogPoissonLoss]
    log_sigmoid: Final[_LogSigmoid]
    log_softmax: Final[_LogSoftmax]
    logdet: Final[_Logdet]
    logical_and: Final[_LogicalAnd]
    logical_not: Final[_LogicalNot]
    logical_or: Final[_LogicalOr]
    logm: Final[_Logm]
    lu: Final[_Lu]
    matmul: Final[_Matmul]
    matrix_rank: Final[_MatrixRank]
    matrix_transpose: Final[_MatrixTranspose]
    matvec: Final[_Matvec]
    max_pool: Final[_MaxPool]
    max_pool_backprop: Final[_MaxPoolBackprop]
    max_pool_pick: Final[_MaxPoolPick]
    max_pool_with_argmax: Final[_MaxPoolWithArgmax]
    max_pooling: Final[_MaxPooling]
    maximum: Final[_Maximum]
    minimum: Final[_Minimum]
    mirror_pad: Final[_MirrorPad]
    mul: Final[_Mul]
    mul_no_nan: Final[_MulNoNan]
    ndtri: Final[_Ndtri]
    neg: Final[_Neg]
    nextafter: Final[_Nextafter]
    no_gradient: Final[_NoGradient]
    non_max_suppression: Final[_NonMaxSuppression]
    non_max_suppression_overlaps: Final[_NonMaxSuppressionOverlaps]
    non_max_suppression_padded: Final[_NonMaxSuppressionPadded]
    nonzero: Final[_Nonzero]
    not_equal: Final[_NotEqual]
    numpy_matmul: Final[_NumpyMatmul]
    one_hot: Final[_OneHot]
    ones_like: Final[_OnesLike]
    overlap_and_add: Final[_OverlapAndAdd]
    pad: Final[_Pad]
    per_image_standardization: Final[_PerImageStandardization]
    permute_rows: Final[_PermuteRows]
    philox_binomial: Final[_PhiloxBinomial]
    philox_bits: Final[_PhiloxBits]
    philox_borders: Final[_PhiloxBorders]
    philox_box: Final[_PhiloxBox]
    philox_candidates: Final[_PhiloxCandidates]
    philox_categorical: Final[_PhiloxCategorical]
    philox_gamma: Final[_PhiloxGamma]
    philox_integers: Final[_PhiloxIntegers]
    philox_normal: Final[_PhiloxNormal]
    philox_permutation: Final[_PhiloxPermutation]
    philox_poisson: Final[_PhiloxPoisson]
    philox_skip: Final[_PhiloxSkip]
    philox_state: Final[_PhiloxState]
    philox_truncated_normal: Final[_PhiloxTruncatedNormal]
    philox_uniform: Final[_PhiloxUniform]
    philox_unigrams: Final[_PhiloxUnigrams]
    pinv: Final[_Pinv]
    polygamma: Final[_Polygamma]
    pow: Final[_Pow]
    projective_transform: Final[_ProjectiveTransform]
    psnr: Final[_Psnr]
    qr: Final[_Qr]
    random_gamma_grad: Final[_RandomGammaGrad]
    random_index_shuffle: Final[_RandomIndexShuffle]
    random_normal: Final[_RandomNormal]
    random_uniform: Final[_RandomUniform]
    random_uniform_int: Final[_RandomUniformInt]
    range: Final[_Range]
    real: Final[_Real]
    real_dft: Final[_RealDft]
    reciprocal: Final[_Reciprocal]
    reciprocal_grad: Final[_ReciprocalGrad]
    reciprocal_no_nan: Final[_ReciprocalNoNan]
    recurrence: Final[_Recurrence]
    reduce_all: Final[_ReduceAll]
    reduce_any: Final[_ReduceAny]
    reduce_euclidean_norm: Final[_ReduceEuclideanNorm]
    reduce_logsumexp: Final[_ReduceLogsumexp]
    reduce_max: Final[_ReduceMax]
    reduce_mean: Final[_ReduceMean]
    reduce_min: Final[_ReduceMin]
    reduce_prod: Final[_ReduceProd]
    reduce_std: Final[_ReduceStd]
    reduce_sum: Final[_ReduceSum]
    reduce_variance: Final[_ReduceVariance]
    relu: Final[_Relu]
    relu6: Final[_Relu6]
    relu_grad: Final[_ReluGrad]
    repeat: Final[_Repeat]
    reshape: Final[_Reshape]
    resize: Final[_Resize]
    resize_backprop: Final[_ResizeBackprop]
    reverse: Final[_Reverse]
    reverse_sequence: Final[_ReverseSequence]
    rfft: Final[_Rfft]
    rgb_to_grayscale: Final[_RgbToGrayscale]
    rgb_to_hsv: Final[_RgbToHsv]
    rgb_to_yiq: Final[_RgbToYiq]
    rgb_to_yuv: Final[_RgbToYuv]
    right_shift: Final[_RightShift]
    rint: Final[_Rint]
    roll: Final[_Roll]
    round: Final[_Round]
    rsqrt: Final[_Rsqrt]
    rsqrt_grad: Final[_RsqrtGrad]
    running_logsumexp: Final[_RunningLogsumexp]
    saturate_cast: Final[_SaturateCast]
    scatter_nd: Final[_ScatterNd]
    searchsorted: Final[_Searchsorted]
    selu: Final[_Selu]
    sequence_mask: Final[_SequenceMask]
    set_diag: Final[_SetDiag]
    sigmoid: Final[_Sigmoid]
    sigmoid_cross_entropy: Final[_SigmoidCrossEntropy]
    sign: Final[_Sign]
    silu: Final[_Silu]
    sin: Final[_Sin]
    sinh: Final[_Sinh]
    slice_start: Final[_SliceStart]
    sobel_edges: Final[_SobelEdges]
    sobol_sample: Final[_SobolSample]
    softmax: Final[_Softmax]
    softmax_cross_entropy: Final[_SoftmaxCrossEntropy]
    softplus: Final[_Softplus]
    softsign: Final[_Softsign]
    solve: Final[_Solve]
    sort: Final[_Sort]
    space_to_batch: Final[_SpaceToBatch]
    space_to_depth: Final[_SpaceToDepth]
    sparse_softmax_cross_entropy: Final[_SparseSoftmaxCrossEntropy]
    spence: Final[_Spence]
    sqrt: Final[_Sqrt]
    sqrt_grad: Final[_SqrtGrad]
    sqrtm: Final[_Sqrtm]
    square: Final[_Square]
    squared_difference: Final[_SquaredDifference]
    squeeze: Final[_Squeeze]
    ssim: Final[_Ssim]
    ssim_contrast: Final[_SsimContrast]
    stack: Final[_Stack]
    step: Final[_Step]
    stop_gradient: Final[_StopGradient]
    strided_slice: Final[_StridedSlice]
    strided_slice_grad: Final[_StridedSliceGrad]
    sub: Final[_Sub]
    svd: Final[_Svd]
    svdvals: Final[_Svdvals]
    tan: Final[_Tan]
    tanh: Final[_Tanh]
    tanh_grad: Final[_TanhGrad]
    tensor_diag: Final[_TensorDiag]
    tensor_diag_part: Final[_TensorDiagPart]
    tensor_scatter_nd_add: Final[_TensorScatterNdAdd]
    tensor_scatter_nd_max: Final[_TensorScatterNdMax]
    tensor_scatter_nd_min: Final[_TensorScatterNdMin]
    tensor_scatter_nd_sub: Final[_TensorScatterNdSub]
    tensor_scatter_nd_update: Final[_TensorScatterNdUpdate]
    tile: Final[_Tile]
    top_k: Final[_TopK]
    total_variation: Final[_TotalVariation]
    trace: Final[_Trace]
    transpose: Final[_Transpose]
    triangular_solve: Final[_TriangularSolve]
    tridiagonal_matmul: Final[_TridiagonalMatmul]
    tridiagonal_solve: Final[_TridiagonalSolve]
    truncated_normal: Final[_TruncatedNormal]
    truncatediv: Final[_Truncatediv]
    truncatemod: Final[_Truncatemod]
    unique: Final[_Unique]
    unravel_index: Final[_UnravelIndex]
    unsorted_segment_max: Final[_UnsortedSegmentMax]
    unsorted_segment_mean: Final[_UnsortedSegmentMean]
    unsorted_segment_min: Final[_UnsortedSegmentMin]
    unsorted_segment_prod: Final[_UnsortedSegmentProd]
    unsorted_segment_sqrt_n: Final[_UnsortedSegmentSqrtN]
    unsorted_segment_sum: Final[_UnsortedSegmentSum]
    weighted_cross_entropy: Final[_WeightedCrossEntropy]
    weighted_product: Final[_WeightedProduct]
    where: Final[_Where]
    xdivy: Final[_Xdivy]
    xlog1py: Final[_Xlog1py]
    xlogy: Final[_Xlogy]
    yiq_to_rgb: Final[_YiqToRgb]
    yuv_to_rgb: Final[_YuvToRgb]
    zero_fraction: Final[_ZeroFraction]
    zeros_edge: Final[_ZerosEdge]
    zeros_like: Final[_ZerosLike]
    zeta: Final[_Zeta]

ops: Final[Ops]
