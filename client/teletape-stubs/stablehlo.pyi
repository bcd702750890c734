"""What `tf.stablehlo` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.exporting.stablehlo import save as save

__all__ = ["save"]
