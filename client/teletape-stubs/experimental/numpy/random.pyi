"""What `tf.experimental.numpy.random` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.numpy_api.random_numbers import poisson as poisson
from teletape.extras.numpy_api.random_numbers import rand as rand
from teletape.extras.numpy_api.random_numbers import randint as randint
from teletape.extras.numpy_api.random_numbers import randn as randn
from teletape.extras.numpy_api.random_numbers import seed as seed
from teletape.extras.numpy_api.random_numbers import standard_normal as standard_normal
from teletape.extras.numpy_api.random_numbers import uniform as uniform

__all__ = ["poisson", "rand", "randint", "randn", "seed", "standard_normal", "uniform"]
