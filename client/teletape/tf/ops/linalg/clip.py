"""`tf.clip_by_norm`, `tf.clip_by_global_norm`, `tf.linalg.global_norm`: tensors scaled down to a norm.

By hand: they take IndexedSlices and lists with None, and several ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape._generated.shapes.cast import cast
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.op import CATALOGUE

__all__ = ["clip_by_global_norm", "clip_by_norm"]


def _op(name: str, *args: Any, **attrs: Any) -> Tensor:
    return call(CATALOGUE[name], args, **attrs)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t`, scaled so that its L2 norm is at most `clip_norm`; a tensor of zeros is unchanged.

    Args:
        t: A floating tensor, or IndexedSlices, whose rows are scaled.
        clip_norm: A scalar; below zero it counts as zero.
        axes: The axes over which a norm is taken; None: all of them.
        name: Accepted, without effect.

    Raises:
        ValueError: `clip_norm` makes the result larger than `t`.

    Example:
        tf.clip_by_norm(tf.constant([3.0, 4.0]), clip_norm=1.0)
    """
    values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t)
    if isinstance(clip_norm, int | float):
        clip_norm = max(clip_norm, 0)
    else:
        clip_norm = cast(_op("maximum", convert_to_tensor(clip_norm), 0), values.dtype)
    squares = _op("reduce_sum", values * values, axis=axes, keepdims=True)
    positive = squares > 0
    safe = _op("where", positive, squares, _op("ones_like", squares))  # a square root at 0 has no derivative
    norm = _op("where", positive, _op("sqrt", safe), squares)
    scaled = values * clip_norm
    if not values.shape.is_compatible_with(scaled.shape):
        raise ValueError(f"Shapes {values.shape} and {scaled.shape} are incompatible")
    return _like(t, _op("identity", scaled / _op("maximum", norm, clip_norm)))


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """The L2 norm of all tensors of a list together, without those that are None.

    Args:
        t_list: Tensors, IndexedSlices or None.
        name: Accepted, without effect.

    Raises:
        TypeError: `t_list` is no list or tuple.

    Example:
        tf.linalg.global_norm([tf.constant([3.0]), tf.constant([4.0])])
    """
    halves = [_op("l2_loss", value) for value in _values(t_list) if value is not None]
    if not halves:
        return constant(0.0)
    total = _op("reduce_sum", _op("stack", *halves, axis=0))
    return _op("sqrt", total * 2.0)


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """The tensors of a list, scaled together so that their global norm is at most `clip_norm`.

    Args:
        t_list: Tensors, IndexedSlices or None.
        clip_norm: A scalar above zero.
        use_norm: The global norm, if it is known; None: it is computed.
        name: Accepted, without effect.

    Returns:
        The list, and the global norm. A norm that is not finite makes everything NaN.

    Raises:
        TypeError: `t_list` is no list or tuple.

    Example:
        tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], clip_norm=1.0)
    """
    values = _values(t_list)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    finite = clip_norm * _op("minimum", constant(1.0, norm.dtype) / norm, constant(1.0, norm.dtype) / clip_norm)
    scale = finite + (norm - norm)
    scaled = [None if value is None else _op("identity", value * cast(scale, value.dtype)) for value in values]
    return [_like(t, result) for t, result in zip(t_list, scaled, strict=True)], norm


def _values(t_list: Any) -> list[Tensor | None]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
    flat = [t.values if isinstance(t, IndexedSlices) else t for t in t_list]
    return [None if value is None else convert_to_tensor(value) for value in flat]


def _like(source: Any, scaled: Any) -> Any:
    return IndexedSlices(scaled, source.indices, source.dense_shape) if isinstance(source, IndexedSlices) else scaled
