"""What `tf.random` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.algorithms import Algorithm as Algorithm
from teletape.ops.candidates import all_candidate_sampler as all_candidate_sampler
from teletape.ops.candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from teletape.ops.candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from teletape.ops.candidates import uniform_candidate_sampler as uniform_candidate_sampler
from teletape.ops.random import categorical as categorical
from teletape.ops.random import gamma as gamma
from teletape.ops.random import normal as normal
from teletape.ops.random import poisson as poisson
from teletape.ops.random import set_seed as set_seed
from teletape.ops.random import shuffle as shuffle
from teletape.ops.random import truncated_normal as truncated_normal
from teletape.ops.random import uniform as uniform
from teletape.ops.stateless_random import fold_in as fold_in
from teletape.ops.stateless_random import split as split
from teletape.ops.stateless_random import stateless_binomial as stateless_binomial
from teletape.ops.stateless_random import stateless_categorical as stateless_categorical
from teletape.ops.stateless_random import stateless_gamma as stateless_gamma
from teletape.ops.stateless_random import stateless_normal as stateless_normal
from teletape.ops.stateless_random import stateless_poisson as stateless_poisson
from teletape.ops.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from teletape.ops.stateless_random import stateless_uniform as stateless_uniform
from teletape.ops.truncated_normals import (
    stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
)
from teletape.random import experimental as experimental
from teletape.variables.generator import Generator as Generator
from teletape.variables.generator import create_rng_state as create_rng_state
from teletape.variables.generator import get_global_generator as get_global_generator
from teletape.variables.generator import set_global_generator as set_global_generator

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
