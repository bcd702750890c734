"""The ops of `tf.raw_ops` that are more than one call of a public function; their arguments are TensorFlow's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from teletape._generated.elementwise import arithmetic, complex, logic, math
from teletape._generated.linalg import eigen
from teletape._generated.linalg import einsum as sums_of_products
from teletape._generated.nn import activations, loss
from teletape._generated.shapes import shape
from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays import counting, create
from teletape.tf.ops.linalg import decompositions
from teletape.tf.ops.nn import convolutions, windows
from teletape.tf.ops.random import stateless
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.nn.activations import SELU_ALPHA, SELU_SCALE


class SoftmaxCrossEntropyWithLogits(NamedTuple):
    """The losses, and their gradient by the logits."""

    loss: Tensor
    backprop: Tensor


class SparseSoftmaxCrossEntropyWithLogits(NamedTuple):
    """The losses, and their gradient by the logits."""

    loss: Tensor
    backprop: Tensor


class SelfAdjointEigV2(NamedTuple):
    """Eigenvalues and eigenvectors; without vectors `v` has no elements."""

    e: Tensor
    v: Tensor


class Eig(NamedTuple):
    """Complex eigenvalues and eigenvectors; without vectors `v` has no elements."""

    e: Tensor
    v: Tensor


class Svd(NamedTuple):
    """Singular values, and the vectors on the left and on the right; without vectors `u` and `v` have no elements."""

    s: Tensor
    u: Tensor
    v: Tensor


class FusedBatchNormV2(NamedTuple):
    """The result, the updated mean and variance, and those of the batch, which the gradient uses."""

    y: Tensor
    batch_mean: Tensor
    batch_variance: Tensor
    reserve_space_1: Tensor
    reserve_space_2: Tensor


class FusedBatchNormV3(NamedTuple):
    """The fields of FusedBatchNormV2, and `reserve_space_3`, which is zero."""

    y: Tensor
    batch_mean: Tensor
    batch_variance: Tensor
    reserve_space_1: Tensor
    reserve_space_2: Tensor
    reserve_space_3: Tensor


def equal(x: Any, y: Any, incompatible_shape_error: bool) -> Tensor:
    """Whether elements are equal; without `incompatible_shape_error`, False if the shapes do not broadcast."""
    if incompatible_shape_error or _broadcast(x, y):
        return logic.equal(x, y)
    return constant(False)


def not_equal(x: Any, y: Any, incompatible_shape_error: bool) -> Tensor:
    """Whether elements differ; without `incompatible_shape_error`, True if the shapes do not broadcast."""
    if incompatible_shape_error or _broadcast(x, y):
        return logic.not_equal(x, y)
    return constant(True)


def _broadcast(x: Any, y: Any) -> bool:
    shapes = [convert_to_tensor(value).shape.as_list() for value in (x, y)]
    return all(1 in (a, b) or a == b for a, b in zip(*(reversed(shape) for shape in shapes), strict=False))


def softmax_cross_entropy(features: Any, labels: Any) -> SoftmaxCrossEntropyWithLogits:
    """The losses of rows of logits against rows of probabilities, and their gradient."""
    losses = loss.softmax_cross_entropy_with_logits(labels, features)
    return SoftmaxCrossEntropyWithLogits(losses, activations.softmax(features) - labels)


def sparse_softmax_cross_entropy(features: Any, labels: Any) -> SparseSoftmaxCrossEntropyWithLogits:
    """The losses of rows of logits against numbers of classes, and their gradient."""
    losses = loss.sparse_softmax_cross_entropy_with_logits(labels, features)
    chances = activations.softmax(features)
    classes = create.one_hot(labels, chances.shape[-1], dtype=chances.dtype)
    return SparseSoftmaxCrossEntropyWithLogits(losses, chances - classes)


def eigh(input: Any, compute_v: bool) -> SelfAdjointEigV2:
    """Eigenvalues of symmetric matrices, and their eigenvectors if `compute_v`."""
    if compute_v:
        return SelfAdjointEigV2(*eigen.eigh(input))
    values = eigen.eigvalsh(input)
    return SelfAdjointEigV2(values, create.zeros([0], values.dtype))


def eig(input: Any, compute_v: bool) -> Eig:
    """Eigenvalues of matrices without symmetry, and their eigenvectors if `compute_v`."""
    if compute_v:
        return Eig(*eigen.eig(input))
    values = decompositions.eigvals(input)
    return Eig(values, create.zeros([0], values.dtype))


def svd(input: Any, compute_uv: bool, full_matrices: bool) -> Svd:
    """Singular values of matrices, and their vectors if `compute_uv`."""
    if compute_uv:
        return Svd(*decompositions.svd(input, full_matrices))
    values, nothing = decompositions.svd(input, compute_uv=False), create.zeros([0], convert_to_tensor(input).dtype)
    return Svd(values, nothing, nothing)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: Any, fast: bool) -> Tensor:
    """Least squares; the regularizer is always float64."""
    a = convert_to_tensor(matrix)
    return decompositions.lstsq(a, rhs, 0.0 if a.dtype.is_complex else to.cast(l2_regularizer, a), fast)


def tridiagonal_matmul(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Tensor:
    """The products of tridiagonal matrices, whose diagonals are [..., 1, n], and `rhs`."""
    diagonals = call(ops.concat, (superdiag, maindiag, subdiag), axis=-2)
    return call(ops.tridiagonal_matmul, (diagonals, rhs))


def squeeze(input: Any, axis: Sequence[int]) -> Tensor:
    """Removes all axes of length 1, or those of `axis`."""
    return shape.squeeze(input, axis or None)


def einsum(inputs: Sequence[Any], equation: str) -> Tensor:
    """The sum of products that an equation names."""
    return sums_of_products.einsum(equation, *inputs)


def bincount(arr: Any, size: Any, weights: Any) -> Tensor:
    """The count of each number below `size`, or the sum of its weights if there are some."""
    weighted = convert_to_tensor(weights)
    chosen = weighted if weighted.shape.num_elements() else None
    dtype = weighted.dtype
    return counting.bincount(arr, chosen, size, size, dtype)


def stateless_uniform_int(shape: Any, seed: Any, minval: Any, maxval: Any) -> Tensor:
    """Integers evenly distributed in [minval, maxval), of the dtype of the bounds."""
    return stateless.stateless_uniform(shape, seed, minval, maxval, convert_to_tensor(minval).dtype)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Sequence[int],
) -> Tensor:
    """A convolution of each channel by itself; `dilations` has four numbers here."""
    lengths = dilations[2:] if data_format == "NCHW" else dilations[1:3]
    return convolutions.depthwise_conv2d(input, filter, strides, padding, data_format, lengths)


# ------------------------------------------------------------------------------------ gradients by images and filters
def _windows(padding: Any, data_format: str, **lengths: Any) -> dict[str, Any]:
    """The attributes of the engine's ops for images with channels last, from those of the raw ops."""
    first = windows.channels_first(data_format, 2)
    numbers = {name: windows.lengths(value, 2, name, first) for name, value in lengths.items()}
    return numbers | windows.border(padding, 2, first)


def _channels_last(x: Any, data_format: str) -> Tensor:
    return shape.transpose(x, [0, 2, 3, 1]) if data_format == "NCHW" else convert_to_tensor(x)


def _as_format(images: Tensor, data_format: str) -> Tensor:
    """Images with channels last in a data format."""
    return shape.transpose(images, [0, 3, 1, 2]) if data_format == "NCHW" else images


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Any,
) -> Tensor:
    """The gradient of Conv2D by its filters, of shape `filter_sizes`."""
    attrs = _windows(padding, data_format, strides=strides, dilations=dilations)
    images, grads = (_channels_last(x, data_format) for x in (input, out_backprop))
    return call(ops.conv2d_backprop_filter, (images, grads), shape=to.ints(filter_sizes, "filter_sizes"), **attrs)


def max_pool_grad(orig_input: Any, grad: Any, ksize: Any, strides: Any, padding: Any, data_format: str) -> Tensor:
    """The gradient of MaxPool: `grad` at the largest element of each window."""
    attrs = _windows(padding, data_format, ksize=ksize, strides=strides)
    images, grads = (_channels_last(x, data_format) for x in (orig_input, grad))
    return _as_format(call(ops.max_pool_backprop, (grads, images), **attrs), data_format)


def avg_pool_grad(orig_input_shape: Any, grad: Any, ksize: Any, strides: Any, padding: str, data_format: str) -> Tensor:
    """The gradient of AvgPool of images of that shape: `grad` spread over each window."""
    attrs = _windows(padding, data_format, ksize=ksize, strides=strides)
    lengths = to.ints(orig_input_shape, "orig_input_shape")
    if data_format == "NCHW":
        lengths = (lengths[0], *lengths[2:], lengths[1])
    images = call(ops.avg_pool_backprop, (_channels_last(grad, data_format),), shape=lengths, **attrs)
    return _as_format(images, data_format)


def bias_add_grad(out_backprop: Any, data_format: str) -> Tensor:
    """The gradient of BiasAdd by its bias: the sum over all axes but that of the channels."""
    grad = convert_to_tensor(out_backprop)
    channels = 1 if data_format == "NCHW" else grad.ndim - 1
    return call(ops.reduce_sum, (grad,), axis=tuple(axis for axis in range(grad.ndim) if axis != channels))


# ------------------------------------------------------------------- gradients: dy or `gradients` times the derivative
def _step(x: Any) -> Tensor:
    """1 where x is positive, else 0; its derivative is zero and not None, as in TensorFlow."""
    return complex.sign(activations.relu(x))


def relu_grad(gradients: Any, features: Any) -> Tensor:
    """`gradients` times the derivative of relu at `features`, or at its result."""
    return convert_to_tensor(gradients) * _step(features)


def relu6_grad(gradients: Any, features: Any) -> Tensor:
    """`gradients` times the derivative of relu6 at `features`, or at its result."""
    return convert_to_tensor(gradients) * _step(features) * _step(6 - convert_to_tensor(features))


def elu_grad(gradients: Any, outputs: Any) -> Tensor:
    """`gradients` times the derivative of elu where its result is `outputs`."""
    return convert_to_tensor(gradients) * arithmetic.minimum(convert_to_tensor(outputs) + 1, 1)


def leaky_relu_grad(gradients: Any, features: Any, alpha: float) -> Tensor:
    """`gradients` times the derivative of leaky_relu at `features`, or at its result."""
    grad = convert_to_tensor(gradients)
    return call(ops.where, (convert_to_tensor(features) > 0, grad, grad * alpha))


def selu_grad(gradients: Any, outputs: Any) -> Tensor:
    """`gradients` times the derivative of selu where its result is `outputs`."""
    grad, result = convert_to_tensor(gradients), convert_to_tensor(outputs)
    return grad * call(ops.where, (result < 0, result + SELU_SCALE * SELU_ALPHA, SELU_SCALE))


def softsign_grad(gradients: Any, features: Any) -> Tensor:
    """`gradients` times the derivative of softsign at `features`."""
    return convert_to_tensor(gradients) / math.square(1 + complex.abs(features))


def softplus_grad(gradients: Any, features: Any) -> Tensor:
    """`gradients` times the derivative of softplus at `features`."""
    return convert_to_tensor(gradients) * math.sigmoid(features)


def sigmoid_grad(y: Any, dy: Any) -> Tensor:
    """`dy` times the derivative of sigmoid where its result is `y`."""
    result = complex.conj(y)
    return convert_to_tensor(dy) * result * (1 - result)


def tanh_grad(y: Any, dy: Any) -> Tensor:
    """`dy` times the derivative of tanh where its result is `y`."""
    return convert_to_tensor(dy) * (1 - math.square(complex.conj(y)))


def sqrt_grad(y: Any, dy: Any) -> Tensor:
    """`dy` times the derivative of sqrt where its result is `y`."""
    return convert_to_tensor(dy) * 0.5 / complex.conj(y)


def rsqrt_grad(y: Any, dy: Any) -> Tensor:
    """`dy` times the derivative of rsqrt where its result is `y`."""
    result = complex.conj(y)
    return convert_to_tensor(dy) * -0.5 * result * math.square(result)


def reciprocal_grad(y: Any, dy: Any) -> Tensor:
    """`dy` times the derivative of the reciprocal where its result is `y`."""
    return -convert_to_tensor(dy) * math.square(complex.conj(y))


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> FusedBatchNormV2:
    """Batches normalized for each channel, by their own moments if `is_training`; 16-bit floats in float32.

    `mean` and `variance` have no gradient, as in TensorFlow. `batch_variance` is divided by n - 1, and both moments are
    averaged with `mean` and `variance` if `exponential_avg_factor` is not 1.

    Raises:
        InvalidArgumentError: Without training, a mean or variance that does not have one number for each channel.
    """
    source = convert_to_tensor(x)
    tensor = cast(source, dtypes.float32) if source.dtype in (dtypes.float16, dtypes.bfloat16) else source
    channels = 1 if data_format.startswith("NC") else tensor.ndim - 1
    over = tuple(axis for axis in range(tensor.ndim) if axis != channels)
    sizes = tensor.shape.as_list()
    moments = [convert_to_tensor(moment, tensor.dtype) for moment in (mean, variance)]
    before = [call(ops.stop_gradient, (moment,)) for moment in moments]
    if is_training:
        average = call(ops.reduce_mean, (tensor,), axis=over, keepdims=True)
        spread = call(ops.reduce_mean, (call(ops.squared_difference, (tensor, average)),), axis=over, keepdims=True)
    else:
        for name, moment in zip(("mean", "variance"), before, strict=True):
            if moment.shape.num_elements() != sizes[channels]:
                raise InvalidArgumentError(
                    f"When is_training=false, {name} must have the same number of elements as the channels of x, got "
                    f"{moment.shape.num_elements()} and {sizes[channels]} [Op:FusedBatchNorm]"
                )
        average, spread = (_along_channels(moment, channels, tensor.ndim) for moment in before)
    factor, shift = (
        _along_channels(convert_to_tensor(vector, tensor.dtype), channels, tensor.ndim) for vector in (scale, offset)
    )
    y = (tensor - average) * (call(ops.rsqrt, (spread + epsilon,)) * factor) + shift
    own = [
        call(ops.stop_gradient, (call(ops.reshape, (moment,), shape=(sizes[channels],)),))
        for moment in (average, spread)
    ]
    further = own
    if is_training:
        count = prod(sizes[axis] for axis in over)
        further = [own[0], own[1] * (count / max(count - 1, 1))]
        if exponential_avg_factor != 1:
            share = exponential_avg_factor
            further = [old * (1 - share) + new * share for old, new in zip(before, further, strict=True)]
    return FusedBatchNormV2(cast(y, source.dtype), *further, *own)


def fused_batch_norm_v3(*arguments: Any) -> FusedBatchNormV3:
    """Calls FusedBatchNormV2, and adds one result."""
    results = fused_batch_norm(*arguments)
    return FusedBatchNormV3(*results, constant(0.0, results.batch_mean.dtype))


def _along_channels(vector: Tensor, axis: int, rank: int) -> Tensor:
    """Returns a vector reshaped so that it broadcasts along an axis."""
    return call(ops.reshape, (vector,), shape=tuple(-1 if i == axis else 1 for i in range(rank)))
