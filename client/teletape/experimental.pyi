"""What `tf.experimental` holds. Written by `make reference` from teletape.namespace."""

from teletape.control_flow.optional import Optional as Optional

__all__ = ["Optional"]
