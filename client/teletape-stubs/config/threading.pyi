"""What `tf.config.threading` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.configuration.execution import get_inter_op_parallelism_threads as get_inter_op_parallelism_threads
from teletape.tf.configuration.execution import get_intra_op_parallelism_threads as get_intra_op_parallelism_threads
from teletape.tf.configuration.execution import set_inter_op_parallelism_threads as set_inter_op_parallelism_threads
from teletape.tf.configuration.execution import set_intra_op_parallelism_threads as set_intra_op_parallelism_threads

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]
