"""What `tf.random.experimental` holds. Written by `make reference` from teletape.namespace."""

from teletape.ops.stateless_random import fold_in as stateless_fold_in
from teletape.ops.stateless_random import split as stateless_split
from teletape.ops.stateless_random import stateless_shuffle as stateless_shuffle

__all__ = ["stateless_fold_in", "stateless_shuffle", "stateless_split"]
