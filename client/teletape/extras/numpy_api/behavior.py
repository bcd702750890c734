"""`experimental_enable_numpy_behavior`: NumPy's dtypes of Python's numbers, and its methods on tensors."""

from __future__ import annotations

from typing import Any

from teletape.core.errors import UnimplementedError
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.extras.numpy_api import arranging, elementwise, promotion, reductions
from teletape.extras.numpy_api.promotion import array


def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Gives tensors NumPy's methods (`T`, `reshape`, `astype`, `mean`, …), for the rest of the program.

    The functions of `tf.experimental.numpy` follow NumPy's promotion in any case. The operators of tensors keep
    TensorFlow's rules: two tensors of different dtypes are still refused.

    Args:
        prefer_float32: Whether Python's numbers become float32 and int32 in `tf.experimental.numpy`.
        dtype_conversion_mode: "legacy".

    Raises:
        UnimplementedError: Another mode of dtype conversion.
    """
    if dtype_conversion_mode != "legacy":
        raise UnimplementedError(
            f"dtype_conversion_mode={dtype_conversion_mode!r} is not supported: cast the operands with tf.cast"
        )
    promotion.prefer_float32(bool(prefer_float32))
    for name, method in _METHODS.items():
        setattr(TensorLike, name, method)


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Tensor:
    """Returns the elements in another shape."""
    return arranging.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """Returns the tensor with its axes in another order."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return arranging.transpose(self, order or None)


def _astype(self: Tensor, dtype: Any) -> Tensor:
    """Returns the tensor as another dtype."""
    return array(self, dtype)


def _data(self: Tensor) -> Tensor:
    return array(self)


_METHODS: dict[str, Any] = {
    "T": property(lambda self: arranging.transpose(self)),
    "astype": _astype,
    "clip": elementwise.clip,
    "data": property(_data),
    "flatten": arranging.flatten,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "ravel": arranging.ravel,
    "reshape": _reshape,
    "size": property(reductions.size),
    "tolist": lambda self: self.numpy().tolist(),
    "transpose": _transpose,
}
