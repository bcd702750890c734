"""What `tf.summary.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.summary.conditions import get_step as get_step
from teletape.tf.summary.conditions import set_step as set_step
from teletape.tf.summary.conditions import summary_scope as summary_scope

__all__ = ["get_step", "set_step", "summary_scope"]
