"""What `tf.experimental.numpy.random` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.numpy_api.random_numbers import poisson as poisson
from teletape.numpy_api.random_numbers import rand as rand
from teletape.numpy_api.random_numbers import randint as randint
from teletape.numpy_api.random_numbers import randn as randn
from teletape.numpy_api.random_numbers import seed as seed
from teletape.numpy_api.random_numbers import standard_normal as standard_normal
from teletape.numpy_api.random_numbers import uniform as uniform

__all__ = ["poisson", "rand", "randint", "randn", "seed", "standard_normal", "uniform"]
