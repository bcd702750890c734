"""What `tf.nn` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.nn import experimental as experimental

from teletape._generated.elementwise.math import sigmoid as sigmoid
from teletape._generated.elementwise.math import softplus as softplus
from teletape._generated.elementwise.math import tanh as tanh
from teletape._generated.nn.activations import elu as elu
from teletape._generated.nn.activations import l2_loss as l2_loss
from teletape._generated.nn.activations import leaky_relu as leaky_relu
from teletape._generated.nn.activations import log_softmax as log_softmax
from teletape._generated.nn.activations import relu as relu
from teletape._generated.nn.activations import relu6 as relu6
from teletape._generated.nn.activations import selu as selu
from teletape._generated.nn.activations import silu as silu
from teletape._generated.nn.activations import silu as swish
from teletape._generated.nn.activations import softmax as softmax
from teletape._generated.nn.blocks import depth_to_space as depth_to_space
from teletape._generated.nn.blocks import space_to_batch as space_to_batch
from teletape._generated.nn.blocks import space_to_depth as space_to_depth
from teletape._generated.nn.gelu import gelu as gelu
from teletape._generated.nn.loss import log_poisson_loss as log_poisson_loss
from teletape._generated.nn.loss import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from teletape._generated.nn.loss import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from teletape._generated.nn.loss import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from teletape._generated.nn.loss import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from teletape._generated.nn.normalization import crelu as crelu
from teletape._generated.nn.normalization import in_top_k as in_top_k
from teletape._generated.nn.normalization import l2_normalize as l2_normalize
from teletape._generated.nn.normalization import local_response_normalization as local_response_normalization
from teletape._generated.nn.normalization import local_response_normalization as lrn
from teletape._generated.nn.normalization import softsign as softsign
from teletape._generated.nn.normalization import zero_fraction as zero_fraction
from teletape._generated.sorting import top_k as top_k
from teletape.extras.sparse_tensors.ctc import collapse_repeated as collapse_repeated
from teletape.extras.sparse_tensors.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
from teletape.extras.sparse_tensors.ctc import ctc_greedy_decoder as ctc_greedy_decoder
from teletape.extras.sparse_tensors.ctc import ctc_loss as ctc_loss
from teletape.extras.sparse_tensors.ctc import ctc_unique_labels as ctc_unique_labels
from teletape.extras.sparse_tensors.lookups import embedding_lookup_sparse as embedding_lookup_sparse
from teletape.extras.sparse_tensors.lookups import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from teletape.tf.ops.arrays.sorting import approx_max_k as approx_max_k
from teletape.tf.ops.arrays.sorting import approx_min_k as approx_min_k
from teletape.tf.ops.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
from teletape.tf.ops.nn.candidates import all_candidate_sampler as all_candidate_sampler
from teletape.tf.ops.nn.candidates import compute_accidental_hits as compute_accidental_hits
from teletape.tf.ops.nn.candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from teletape.tf.ops.nn.candidates import nce_loss as nce_loss
from teletape.tf.ops.nn.candidates import sampled_softmax_loss as sampled_softmax_loss
from teletape.tf.ops.nn.convolutions import atrous_conv2d as atrous_conv2d
from teletape.tf.ops.nn.convolutions import atrous_conv2d_transpose as atrous_conv2d_transpose
from teletape.tf.ops.nn.convolutions import conv1d as conv1d
from teletape.tf.ops.nn.convolutions import conv1d_transpose as conv1d_transpose
from teletape.tf.ops.nn.convolutions import conv2d as conv2d
from teletape.tf.ops.nn.convolutions import conv2d_transpose as conv2d_transpose
from teletape.tf.ops.nn.convolutions import conv3d as conv3d
from teletape.tf.ops.nn.convolutions import conv3d_transpose as conv3d_transpose
from teletape.tf.ops.nn.convolutions import conv_transpose as conv_transpose
from teletape.tf.ops.nn.convolutions import convolution as convolution
from teletape.tf.ops.nn.convolutions import depthwise_conv2d as depthwise_conv2d
from teletape.tf.ops.nn.convolutions import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
from teletape.tf.ops.nn.convolutions import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input
from teletape.tf.ops.nn.convolutions import separable_conv2d as separable_conv2d
from teletape.tf.ops.nn.convolutions import with_space_to_batch as with_space_to_batch
from teletape.tf.ops.nn.dropout import dropout as dropout
from teletape.tf.ops.nn.embeddings import embedding_lookup as embedding_lookup
from teletape.tf.ops.nn.isotonic import isotonic_regression as isotonic_regression
from teletape.tf.ops.nn.losses import compute_average_loss as compute_average_loss
from teletape.tf.ops.nn.losses import scale_regularization_loss as scale_regularization_loss
from teletape.tf.ops.nn.morphology import dilation2d as dilation2d
from teletape.tf.ops.nn.morphology import erosion2d as erosion2d
from teletape.tf.ops.nn.normalization import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
)
from teletape.tf.ops.nn.normalization import batch_normalization as batch_normalization
from teletape.tf.ops.nn.normalization import bias_add as bias_add
from teletape.tf.ops.nn.normalization import moments as moments
from teletape.tf.ops.nn.normalization import normalize_moments as normalize_moments
from teletape.tf.ops.nn.normalization import sufficient_statistics as sufficient_statistics
from teletape.tf.ops.nn.normalization import weighted_moments as weighted_moments
from teletape.tf.ops.nn.pools import avg_pool as avg_pool
from teletape.tf.ops.nn.pools import avg_pool1d as avg_pool1d
from teletape.tf.ops.nn.pools import avg_pool2d as avg_pool2d
from teletape.tf.ops.nn.pools import avg_pool3d as avg_pool3d
from teletape.tf.ops.nn.pools import fractional_avg_pool as fractional_avg_pool
from teletape.tf.ops.nn.pools import fractional_max_pool as fractional_max_pool
from teletape.tf.ops.nn.pools import max_pool as max_pool
from teletape.tf.ops.nn.pools import max_pool1d as max_pool1d
from teletape.tf.ops.nn.pools import max_pool2d as max_pool2d
from teletape.tf.ops.nn.pools import max_pool3d as max_pool3d
from teletape.tf.ops.nn.pools import max_pool_with_argmax as max_pool_with_argmax
from teletape.tf.ops.nn.pools import pool as pool

__all__ = [
    "all_candidate_sampler",
    "approx_max_k",
    "approx_min_k",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "gelu",
    "in_top_k",
    "isotonic_regression",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "scaled_dot_product_attention",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "zero_fraction",
]
