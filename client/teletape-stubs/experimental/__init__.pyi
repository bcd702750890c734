"""What `tf.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.experimental import dlpack as dlpack
from teletape.experimental import numpy as numpy

from teletape.tf.data.elements.optional import Optional as Optional

__all__ = ["Optional", "dlpack", "numpy"]
