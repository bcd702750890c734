"""What `tf.saved_model` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.checkpoints.saved_model import contains_saved_model as contains_saved_model
from teletape.tf.checkpoints.saved_model import load as load
from teletape.tf.checkpoints.saved_model import save as save

__all__ = ["contains_saved_model", "load", "save"]
