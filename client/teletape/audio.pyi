"""What `tf.audio` holds. Written by `make reference` from teletape.namespace."""

from teletape.files.audio import decode_wav as decode_wav
from teletape.files.audio import encode_wav as encode_wav

__all__ = ["decode_wav", "encode_wav"]
