"""What `tf.train` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.record_messages import BytesList as BytesList
from teletape.extras.record_messages import Example as Example
from teletape.extras.record_messages import Feature as Feature
from teletape.extras.record_messages import FeatureList as FeatureList
from teletape.extras.record_messages import FeatureLists as FeatureLists
from teletape.extras.record_messages import Features as Features
from teletape.extras.record_messages import FloatList as FloatList
from teletape.extras.record_messages import Int64List as Int64List
from teletape.extras.record_messages import SequenceExample as SequenceExample
from teletape.tf.checkpoints.checkpoint import Checkpoint as Checkpoint
from teletape.tf.checkpoints.checkpoint import CheckpointOptions as CheckpointOptions
from teletape.tf.checkpoints.manager import CheckpointManager as CheckpointManager
from teletape.tf.checkpoints.reading import checkpoints_iterator as checkpoints_iterator
from teletape.tf.checkpoints.reading import list_variables as list_variables
from teletape.tf.checkpoints.reading import load_checkpoint as load_checkpoint
from teletape.tf.checkpoints.reading import load_variable as load_variable
from teletape.tf.checkpoints.state_file import latest as latest_checkpoint
from teletape.tf.checkpoints.state_file import read as get_checkpoint_state
from teletape.tf.ops.moving_average import ExponentialMovingAverage as ExponentialMovingAverage

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "checkpoints_iterator",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
