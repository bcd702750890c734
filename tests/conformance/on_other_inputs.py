"""TensorFlow with inputs that are rounded otherwise: `import_module` of this name gives TensorFlow itself.

A program shows its condition in how far its results move. Every floating constant of many digits becomes one of its
two neighbours. Equal numbers become equal numbers, and numbers of few digits stay: programs count on ties, on whole
numbers and on halves. CONFORMANCE_SEED chooses the neighbours.
"""

import importlib
import os
import sys
from typing import Any

import numpy as np

#: For each dtype: integers of its size, and its last digits, which are zeros in a number of few digits.
_WORDS: dict[str, tuple[Any, int]] = {"float32": (np.uint32, 0x3FF), "float64": (np.uint64, 0x3FFFFFF)}


def neighbours(array: np.ndarray[Any, Any], seed: int) -> np.ndarray[Any, Any]:
    """`array` with its numbers of many digits moved by one unit in the last place; other dtypes stay as they are."""
    if array.dtype.name not in _WORDS:
        return array
    word, last = _WORDS[array.dtype.name]
    words = np.ascontiguousarray(array).view(word)
    mixed = (words * word(2654435761) + word(seed * 40503)) >> word(16)
    moved = np.where(mixed & word(1), words + word(1), words - word(1))
    return np.where(words & word(last), moved, words).view(array.dtype).reshape(array.shape)


def _install() -> None:
    """Gives constants their neighbours where TensorFlow makes eager tensors of them."""
    from tensorflow.python.framework import constant_op

    seed = int(os.environ["CONFORMANCE_SEED"])
    convert = constant_op.convert_to_eager_tensor

    def moved(value: Any, ctx: Any, dtype: Any = None) -> Any:
        tensor = convert(value, ctx, dtype)
        if tensor is value or tensor.dtype.name not in _WORDS:
            return tensor
        return convert(neighbours(tensor.numpy(), seed), ctx, dtype)

    constant_op.convert_to_eager_tensor = moved


if "CONFORMANCE_SEED" in os.environ:
    sys.modules[__name__] = importlib.import_module("tensorflow")
    _install()
