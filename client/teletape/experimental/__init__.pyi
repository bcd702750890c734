"""What `tf.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.data.elements.optional import Optional as Optional
from teletape.experimental import dlpack as dlpack
from teletape.experimental import numpy as numpy

__all__ = ["Optional", "dlpack", "numpy"]
