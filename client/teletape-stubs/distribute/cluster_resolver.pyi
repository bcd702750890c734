"""What `tf.distribute.cluster_resolver` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.distribution.cluster_resolvers import ClusterResolver as ClusterResolver
from teletape.extras.distribution.cluster_resolvers import TFConfigClusterResolver as TFConfigClusterResolver
from teletape.extras.distribution.cluster_resolvers import TPUClusterResolver as TPUClusterResolver

__all__ = ["ClusterResolver", "TFConfigClusterResolver", "TPUClusterResolver"]
