"""`tf.get_static_value`. By hand: it computes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.tensors.tensor import EagerTensor

__all__ = ["get_static_value"]


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the value of a tensor as an array if it is known without computing; else None.

    Args:
        tensor: A tensor; a number or array is returned unchanged.
        partial: Without effect.

    Example:
        tf.get_static_value(tf.constant([1, 2]))
    """
    if isinstance(tensor, int | float | bool | np.ndarray | np.generic):
        return tensor
    if isinstance(tensor, EagerTensor):
        host = getattr(tensor.recorded, "host", None)
        if host is not None or tensor.session.tracing:
            return host
        return tensor.numpy()
    return None
