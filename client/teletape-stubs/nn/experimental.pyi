"""What `tf.nn.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.ops.nn.dropout import general_dropout as general_dropout
from teletape.tf.ops.nn.dropout import stateless_dropout as stateless_dropout

__all__ = ["general_dropout", "stateless_dropout"]
