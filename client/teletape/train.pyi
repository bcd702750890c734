"""What `tf.train` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.checkpoints.checkpoint import Checkpoint as Checkpoint
from teletape.checkpoints.checkpoint import CheckpointOptions as CheckpointOptions
from teletape.checkpoints.manager import CheckpointManager as CheckpointManager
from teletape.checkpoints.reading import checkpoints_iterator as checkpoints_iterator
from teletape.checkpoints.reading import list_variables as list_variables
from teletape.checkpoints.reading import load_checkpoint as load_checkpoint
from teletape.checkpoints.reading import load_variable as load_variable
from teletape.checkpoints.state_file import latest as latest_checkpoint
from teletape.checkpoints.state_file import read as get_checkpoint_state
from teletape.records.messages import BytesList as BytesList
from teletape.records.messages import Example as Example
from teletape.records.messages import Feature as Feature
from teletape.records.messages import FeatureList as FeatureList
from teletape.records.messages import FeatureLists as FeatureLists
from teletape.records.messages import Features as Features
from teletape.records.messages import FloatList as FloatList
from teletape.records.messages import Int64List as Int64List
from teletape.records.messages import SequenceExample as SequenceExample
from teletape.variables.moving_average import ExponentialMovingAverage as ExponentialMovingAverage

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
