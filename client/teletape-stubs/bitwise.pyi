"""What `tf.bitwise` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape._generated.elementwise.logic import bitwise_and as bitwise_and
from teletape._generated.elementwise.logic import bitwise_or as bitwise_or
from teletape._generated.elementwise.logic import bitwise_xor as bitwise_xor
from teletape._generated.elementwise.logic import invert as invert
from teletape._generated.elementwise.logic import left_shift as left_shift
from teletape._generated.elementwise.logic import right_shift as right_shift

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
