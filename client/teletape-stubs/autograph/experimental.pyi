"""What `tf.autograph.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.autograph.api import Feature as Feature
from teletape.tf.autograph.api import do_not_convert as do_not_convert
from teletape.tf.autograph.directives import set_loop_options as set_loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
