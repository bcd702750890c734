"""What `tf.random` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.random import normal as normal
from teletape.ops.random import set_seed as set_seed
from teletape.ops.random import truncated_normal as truncated_normal
from teletape.ops.random import uniform as uniform

__all__ = ["normal", "set_seed", "truncated_normal", "uniform"]
