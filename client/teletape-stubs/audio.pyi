"""What `tf.audio` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.audio import decode_wav as decode_wav
from teletape.extras.audio import encode_wav as encode_wav

__all__ = ["decode_wav", "encode_wav"]
