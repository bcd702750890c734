"""What `tf.nn` holds. Written by `make reference` from teletape.namespace."""

from teletape.nn import experimental as experimental
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
from teletape.ops.derived.conv import conv2d as conv2d
from teletape.ops.derived.conv import conv2d_transpose as conv2d_transpose
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
from teletape.ops.derived.pool import avg_pool as avg_pool
from teletape.ops.derived.pool import avg_pool2d as avg_pool2d
from teletape.ops.derived.pool import max_pool as max_pool
from teletape.ops.derived.pool import max_pool2d as max_pool2d
from teletape.ops.dropout import dropout as dropout
from teletape.ops.nn import batch_normalization as batch_normalization
from teletape.ops.nn import bias_add as bias_add
from teletape.ops.nn import moments as moments

__all__ = [
    "avg_pool",
    "avg_pool2d",
    "batch_normalization",
    "bias_add",
    "conv2d",
    "conv2d_transpose",
    "dropout",
    "elu",
    "embedding_lookup",
    "experimental",
    "gelu",
    "l2_loss",
    "leaky_relu",
    "log_softmax",
    "max_pool",
    "max_pool2d",
    "moments",
    "relu",
    "relu6",
    "selu",
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
