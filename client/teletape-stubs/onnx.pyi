"""What `tf.onnx` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.exporting.onnx_graphs import save as save
from teletape.extras.onnx.network import Network as Network
from teletape.extras.onnx.network import load as load

__all__ = ["Network", "load", "save"]
