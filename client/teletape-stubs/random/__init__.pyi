"""What `tf.random` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.random import experimental as experimental

from teletape.tf.ops.nn.candidates import all_candidate_sampler as all_candidate_sampler
from teletape.tf.ops.nn.candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from teletape.tf.ops.nn.candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from teletape.tf.ops.nn.candidates import uniform_candidate_sampler as uniform_candidate_sampler
from teletape.tf.ops.random.algorithms import Algorithm as Algorithm
from teletape.tf.ops.random.generator import Generator as Generator
from teletape.tf.ops.random.generator import create_rng_state as create_rng_state
from teletape.tf.ops.random.generator import get_global_generator as get_global_generator
from teletape.tf.ops.random.generator import set_global_generator as set_global_generator
from teletape.tf.ops.random.stateful import categorical as categorical
from teletape.tf.ops.random.stateful import gamma as gamma
from teletape.tf.ops.random.stateful import normal as normal
from teletape.tf.ops.random.stateful import poisson as poisson
from teletape.tf.ops.random.stateful import set_seed as set_seed
from teletape.tf.ops.random.stateful import shuffle as shuffle
from teletape.tf.ops.random.stateful import truncated_normal as truncated_normal
from teletape.tf.ops.random.stateful import uniform as uniform
from teletape.tf.ops.random.stateless import fold_in as fold_in
from teletape.tf.ops.random.stateless import split as split
from teletape.tf.ops.random.stateless import stateless_binomial as stateless_binomial
from teletape.tf.ops.random.stateless import stateless_categorical as stateless_categorical
from teletape.tf.ops.random.stateless import stateless_gamma as stateless_gamma
from teletape.tf.ops.random.stateless import stateless_normal as stateless_normal
from teletape.tf.ops.random.stateless import stateless_poisson as stateless_poisson
from teletape.tf.ops.random.stateless import stateless_truncated_normal as stateless_truncated_normal
from teletape.tf.ops.random.stateless import stateless_uniform as stateless_uniform
from teletape.tf.ops.random.truncated import (
    stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
)

__all__ = [
    "Algorithm",
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_parameterized_truncated_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
