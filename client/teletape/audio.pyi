"""What `tf.audio` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.files.audio import decode_wav as decode_wav
from teletape.files.audio import encode_wav as encode_wav

__all__ = ["decode_wav", "encode_wav"]
