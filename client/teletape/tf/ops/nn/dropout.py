"""`tf.nn.dropout`, and the same from a seed. By hand: they draw random numbers, and take several ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.sessions.current import current
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.tf.ops.random import stateful
from teletape.tf.ops.random.stateless import state
from teletape_engine.catalogue.namespace import ops


def dropout(
    x: to.TensorInput, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Replaces elements by zero with probability `rate`, and scales the others by 1 / (1 - rate).

    Args:
        x: A floating tensor.
        rate: The probability, in [0, 1).
        noise_shape: One draw is made for each element of this shape, which broadcasts to that of `x`; None: its shape.
        seed: The seed of the random numbers, as in `tf.random.uniform`.
        name: Accepted, without effect.

    Raises:
        ValueError: `x` is not floating, or the rate is a number outside [0, 1).

    Example:
        tf.nn.dropout(np.ones([4, 4], np.float32), rate=0.5)
    """
    tensor = _floating(x, rate)
    if _never(rate):
        current().draws("philox_uniform", seed)  # as in TensorFlow: later draws do not depend on the rate
        return tensor
    return _dropped(
        tensor, rate, noise_shape, lambda shape: stateful.fractions(shape, stateful.OpSeed(seed), tensor.dtype)
    )


def stateless_dropout(
    x: to.TensorInput,
    rate: Any,
    seed: to.TensorInput,
    rng_alg: Any = None,
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Like dropout; the replaced elements follow from the seed, two integers.

    Example:
        tf.nn.experimental.stateless_dropout([1.0, 2.0, 3.0], rate=0.5, seed=[1, 2])
    """
    tensor = _floating(x, rate)
    if _never(rate):
        return tensor
    return _dropped(tensor, rate, noise_shape, lambda shape: stateful.fractions(shape, state(seed), tensor.dtype))


def general_dropout(
    x: to.TensorInput,
    rate: Any,
    uniform_sampler: Callable[..., Any],
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Like dropout, with random numbers of `uniform_sampler(shape=…, dtype=…)`, uniform in [0, 1).

    Example:
        tf.nn.experimental.general_dropout([1.0, 2.0], 0.5, lambda shape, dtype: tf.constant([0.1, 0.9], dtype))
    """
    tensor = _floating(x, rate)
    if _never(rate):
        return tensor
    return _dropped(tensor, rate, noise_shape, lambda shape: uniform_sampler(shape=shape, dtype=tensor.dtype))


def _floating(x: Any, rate: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={tensor.dtype}"
        )
    if not isinstance(rate, TensorLike) and not 0 <= float(rate) < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    return tensor


def _never(rate: Any) -> bool:
    return not isinstance(rate, TensorLike) and float(rate) == 0


def _dropped(tensor: Tensor, rate: Any, noise_shape: Any, uniform: Callable[[tuple[int, ...]], Any]) -> Tensor:
    shape = tuple(tensor.shape)
    if isinstance(noise_shape, list | tuple) and None in noise_shape:
        noise_shape = [own if length is None else length for length, own in zip(noise_shape, shape, strict=True)]
    if noise_shape is not None:
        shape = to.ints(noise_shape)
    chances = uniform(tuple(shape))
    if isinstance(rate, TensorLike):
        rate = to.cast(rate, tensor)
        scale: Any = 1.0 / (1.0 - rate)
    else:
        rate = float(rate)
        scale = 1.0 / (1.0 - rate)
    keep = call(ops.greater_equal, (chances, rate))
    scaled = tensor * scale
    return call(ops.where, (keep, scaled, call(ops.zeros_like, (scaled,))))
