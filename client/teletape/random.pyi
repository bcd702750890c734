"""What `tf.random` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.random import normal as normal
from teletape.ops.random import set_seed as set_seed
from teletape.ops.random import truncated_normal as truncated_normal
from teletape.ops.random import uniform as uniform
from teletape.ops.stateless_random import stateless_normal as stateless_normal
from teletape.ops.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from teletape.ops.stateless_random import stateless_uniform as stateless_uniform

__all__ = [
    "normal",
    "set_seed",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]
