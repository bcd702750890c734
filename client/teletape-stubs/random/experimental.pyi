"""What `tf.random.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.ops.random.algorithms import Algorithm as Algorithm
from teletape.tf.ops.random.generator import Generator as Generator
from teletape.tf.ops.random.generator import create_rng_state as create_rng_state
from teletape.tf.ops.random.generator import get_global_generator as get_global_generator
from teletape.tf.ops.random.generator import set_global_generator as set_global_generator
from teletape.tf.ops.random.stateless import fold_in as stateless_fold_in
from teletape.tf.ops.random.stateless import index_shuffle as index_shuffle
from teletape.tf.ops.random.stateless import split as stateless_split
from teletape.tf.ops.random.stateless import stateless_shuffle as stateless_shuffle

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "index_shuffle",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]
