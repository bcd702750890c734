"""What `tf.compat` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.compat import v1 as v1

from teletape.core.tensors.tensor_shape import dimension_at_index as dimension_at_index
from teletape.core.tensors.tensor_shape import dimension_value as dimension_value
from teletape.extras.text.strings import as_bytes as as_bytes
from teletape.extras.text.strings import as_str_any as as_str_any
from teletape.extras.text.strings import as_text as as_str
from teletape.extras.text.strings import as_text as as_text

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_at_index", "dimension_value", "v1"]
