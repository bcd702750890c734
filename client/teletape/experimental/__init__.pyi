"""What `tf.experimental` holds. Written by `make reference` from teletape.namespace."""

from teletape.control_flow.optional import Optional as Optional
from teletape.experimental import dlpack as dlpack

__all__ = ["Optional", "dlpack"]
