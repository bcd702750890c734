"""What `tf.config.optimizer` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.configuration.execution import get_experimental_options as get_experimental_options
from teletape.tf.configuration.execution import get_jit as get_jit
from teletape.tf.configuration.execution import set_experimental_options as set_experimental_options
from teletape.tf.configuration.execution import set_jit as set_jit

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]
