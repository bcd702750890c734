"""What `tf.nn` holds. Written by `make reference` from teletape.namespace."""

from teletape.nn import experimental as experimental
from teletape.ops.convolutions import atrous_conv2d as atrous_conv2d
from teletape.ops.convolutions import atrous_conv2d_transpose as atrous_conv2d_transpose
from teletape.ops.convolutions import conv1d as conv1d
from teletape.ops.convolutions import conv1d_transpose as conv1d_transpose
from teletape.ops.convolutions import conv2d as conv2d
from teletape.ops.convolutions import conv2d_transpose as conv2d_transpose
from teletape.ops.convolutions import conv3d as conv3d
from teletape.ops.convolutions import conv3d_transpose as conv3d_transpose
from teletape.ops.convolutions import conv_transpose as conv_transpose
from teletape.ops.convolutions import convolution as convolution
from teletape.ops.convolutions import depthwise_conv2d as depthwise_conv2d
from teletape.ops.convolutions import separable_conv2d as separable_conv2d
from teletape.ops.derived.activations import elu as elu
from teletape.ops.derived.activations import l2_loss as l2_loss
from teletape.ops.derived.activations import leaky_relu as leaky_relu
from teletape.ops.derived.activations import log_softmax as log_softmax
from teletape.ops.derived.activations import relu as relu
from teletape.ops.derived.activations import relu6 as relu6
from teletape.ops.derived.activations import selu as selu
from teletape.ops.derived.activations import silu as silu
from teletape.ops.derived.activations import silu as swish
from teletape.ops.derived.activations import softmax as softmax
from teletape.ops.derived.gelu import gelu as gelu
from teletape.ops.derived.index import embedding_lookup as embedding_lookup
from teletape.ops.derived.loss import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from teletape.ops.derived.loss import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from teletape.ops.derived.loss import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from teletape.ops.derived.math import sigmoid as sigmoid
from teletape.ops.derived.math import softplus as softplus
from teletape.ops.derived.math import tanh as tanh
from teletape.ops.dropout import dropout as dropout
from teletape.ops.nn import batch_normalization as batch_normalization
from teletape.ops.nn import bias_add as bias_add
from teletape.ops.nn import moments as moments
from teletape.ops.pools import avg_pool as avg_pool
from teletape.ops.pools import avg_pool1d as avg_pool1d
from teletape.ops.pools import avg_pool2d as avg_pool2d
from teletape.ops.pools import avg_pool3d as avg_pool3d
from teletape.ops.pools import max_pool as max_pool
from teletape.ops.pools import max_pool1d as max_pool1d
from teletape.ops.pools import max_pool2d as max_pool2d
from teletape.ops.pools import max_pool3d as max_pool3d
from teletape.ops.pools import pool as pool

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_normalization",
    "bias_add",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "experimental",
    "gelu",
    "l2_loss",
    "leaky_relu",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "moments",
    "pool",
    "relu",
    "relu6",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
]
