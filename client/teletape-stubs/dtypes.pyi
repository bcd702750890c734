"""What `tf.dtypes` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape._generated.elementwise.arithmetic import saturate_cast as saturate_cast
from teletape._generated.elementwise.complex import complex as complex
from teletape._generated.shapes.cast import cast as cast
from teletape.core.tensors.dtypes import DType as DType
from teletape.core.tensors.dtypes import as_dtype as as_dtype
from teletape.core.tensors.dtypes import bfloat16 as bfloat16
from teletape.core.tensors.dtypes import bool as bool
from teletape.core.tensors.dtypes import complex64 as complex64
from teletape.core.tensors.dtypes import complex128 as complex128
from teletape.core.tensors.dtypes import double as double
from teletape.core.tensors.dtypes import float16 as float16
from teletape.core.tensors.dtypes import float32 as float32
from teletape.core.tensors.dtypes import float64 as float64
from teletape.core.tensors.dtypes import half as half
from teletape.core.tensors.dtypes import int8 as int8
from teletape.core.tensors.dtypes import int16 as int16
from teletape.core.tensors.dtypes import int32 as int32
from teletape.core.tensors.dtypes import int64 as int64
from teletape.core.tensors.dtypes import string as string
from teletape.core.tensors.dtypes import uint8 as uint8
from teletape.core.tensors.dtypes import uint16 as uint16
from teletape.core.tensors.dtypes import uint32 as uint32
from teletape.core.tensors.dtypes import uint64 as uint64

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "saturate_cast",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
