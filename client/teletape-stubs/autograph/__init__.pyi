"""What `tf.autograph` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.autograph import experimental as experimental

from teletape.tf.autograph.api import set_verbosity as set_verbosity
from teletape.tf.autograph.api import to_code as to_code
from teletape.tf.autograph.api import to_graph as to_graph
from teletape.tf.autograph.api import trace as trace

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]
