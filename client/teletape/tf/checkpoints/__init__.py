"""Checkpoints of variables, modules and Keras objects: `tf.train`, in safetensors files with an index."""

from teletape.tf.checkpoints.checkpoint import Checkpoint, CheckpointOptions
from teletape.tf.checkpoints.manager import CheckpointManager
from teletape.tf.checkpoints.reading import checkpoints_iterator, list_variables, load_checkpoint, load_variable
from teletape.tf.checkpoints.state_file import latest as latest_checkpoint
from teletape.tf.checkpoints.state_file import read as get_checkpoint_state

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "checkpoints_iterator",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
