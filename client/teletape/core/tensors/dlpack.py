"""`tf.experimental.dlpack`: tensors from arrays of other libraries, and for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.tensors.exchange import CPU, dlpack_of
from teletape.core.tensors.tensor import Tensor, TensorLike, from_host
from teletape_engine.errors import InvalidArgumentError


def to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule with the values of a tensor, for a library that takes only capsules and not the tensor."""
    if not isinstance(tf_tensor, TensorLike):
        raise TypeError(f"The argument to `to_dlpack` must be a TF tensor, not Python object: {tf_tensor!r}")
    return dlpack_of(tf_tensor.numpy())


def from_dlpack(dlcapsule: Any) -> Tensor:
    """A tensor with the values of a DLPack capsule, or of another library's array on the CPU; they are copied."""
    source = dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Capsule(dlcapsule)
    try:
        array = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise InvalidArgumentError(f"no DLPack capsule or array in this machine's memory: {error}") from None
    return from_host(array.copy())


class _Capsule:
    """An array that exists only as a capsule."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU
