"""`tf.autograph.experimental`: functions without conversion, options of loops, optional features."""

from teletape.tf.autograph.api import Feature, do_not_convert
from teletape.tf.autograph.directives import set_loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
