"""Checkpoints of variables, modules and Keras objects: `tf.train`, in safetensors files with an index."""

from teletape.checkpoints.checkpoint import Checkpoint, CheckpointOptions
from teletape.checkpoints.manager import CheckpointManager
from teletape.checkpoints.reading import checkpoints_iterator, list_variables, load_checkpoint, load_variable
from teletape.checkpoints.state_file import latest as latest_checkpoint
from teletape.checkpoints.state_file import read as get_checkpoint_state

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
