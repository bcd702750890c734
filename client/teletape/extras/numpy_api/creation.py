"""Arrays of given shapes and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.elementwise import arithmetic
from teletape._generated.elementwise import math as functions
from teletape._generated.shapes import cast
from teletape._generated.shapes import shape as shapes
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import constant
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.promotion import Preference, common_dtype, dtype_of, promoted
from teletape.extras.numpy_api.promotion import array as tensor_of
from teletape.tf.ops.arrays import create

_cast = cast.cast


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Returns a value as a tensor.

    Args:
        val: A number, an array or a tensor, or nested lists of them. Python's numbers become float64 and int64.
        dtype: The dtype; None: that of the value.
        copy: Without effect: tensors do not change.
        ndmin: The least number of axes; new ones come first.
    """
    tensor = tensor_of(val, dtype)
    missing = ndmin - len(tensor.shape)
    return tensor if missing <= 0 else shapes.reshape(tensor, [1] * missing + tensor.shape.as_list())


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """Returns a value as a tensor. The arguments are those of `array`."""
    return tensor_of(a, dtype)


asanyarray = ascontiguousarray = asarray


def copy(a: Any) -> Tensor:
    """Returns a value as a tensor, which never changes."""
    return tensor_of(a)


def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Returns zeros."""
    return create.zeros(_shape(shape), dtype_of(dtype))


def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Returns ones."""
    return create.ones(_shape(shape), dtype_of(dtype))


def empty(shape: Any, dtype: Any = float) -> Tensor:
    """Returns zeros."""
    return zeros(shape, dtype)


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Returns zeros in the shape of an array."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Returns ones in the shape of an array."""
    return full_like(a, 1, dtype)


def empty_like(a: Any, dtype: Any = None) -> Tensor:
    """Returns zeros in the shape of an array."""
    return zeros_like(a, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Returns an array of one value, or of values that broadcast to the shape."""
    return shapes.broadcast_to(tensor_of(fill_value, dtype), _shape(shape))


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Tensor:
    """Returns an array of one value in the shape and the dtype of another.

    Args:
        a: The other array.
        fill_value: The value.
        dtype: The dtype; None: that of `a`.
        order: "K", "A" or "C".
        subok: Always true.
        shape: The shape; None: that of `a`.

    Raises:
        ValueError: Another order, or `subok` is false.
    """
    if order not in ("K", "A", "C") or not subok:
        raise ValueError(f"full_like takes the orders K, A and C, and subok=True: got {order!r} and {subok}")
    a = tensor_of(a)
    return full(a.shape if shape is None else shape, tensor_of(fill_value, a.dtype if dtype is None else dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """Returns zeros with ones on the diagonal `k`.

    Args:
        N: The number of rows.
        M: The number of columns; None: as many.
        k: The diagonal: 0 is the main one, positive ones are above.
        dtype: The dtype.
    """
    return constant(np.eye(int(N), None if M is None else int(M), int(k), dtype_of(dtype).np))


def identity(n: int, dtype: Any = float) -> Tensor:
    """Returns the identity matrix of n rows."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Returns ones on and under the diagonal `k`, and zeros above. The arguments are those of `eye`."""
    return constant(
        np.tri(int(N), None if M is None else int(M), int(k), dtype_of(float if dtype is None else dtype).np)
    )


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Returns numbers from `start` up to and without `stop`, `step` apart; with one argument from 0 up to it.

    Raises:
        ValueError: `step` is 0.
    """
    if not step:
        raise ValueError("step must be non-zero")
    kind = common_dtype(start, step) if stop is None else common_dtype(start, stop, step)
    first, last = (0, start) if stop is None else (start, stop)
    numbers = create.range(tensor_of(first, kind), tensor_of(last, kind), tensor_of(step, kind))
    return numbers if dtype is None else _cast(numbers, dtype_of(dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """Returns `num` numbers from `start` to `stop`, evenly spaced.

    Args:
        start: The first.
        stop: The last, if `endpoint`; else the one after the last.
        num: The number of elements.
        endpoint: Whether `stop` is among them.
        retstep: Whether the distance is returned as well.
        dtype: The dtype; None: that of the bounds, as floats.
        axis: The axis of the result along which they lie.
    """
    kind = dtype_of(float if dtype is None else dtype)
    first, last = (tensor_of(bound, kind) for bound in promoted(start, stop))
    num = int(num)
    step = (last - first) / tensor_of(max(num - 1 if endpoint else num, 1), kind)
    if endpoint and num > 1:
        numbers = create.linspace(first, last, num, axis=axis)
    else:
        counts = tensor_of(np.arange(num), kind)
        shape = [1] * len(step.shape)
        at = to.axis_within(axis, len(shape) + 1)
        counts = shapes.reshape(counts, [*shape[:at], num, *shape[at:]])
        numbers = shapes.expand_dims(first, at) + shapes.expand_dims(step, at) * counts
    return (numbers, step) if retstep else numbers


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Returns powers of `base` with evenly spaced exponents; the arguments are those of `linspace`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    numbers = arithmetic.pow(tensor_of(base, exponents.dtype), exponents)
    return numbers if dtype is None else _cast(numbers, dtype_of(dtype))


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Returns numbers from `start` to `stop` with a constant ratio; the arguments are those of `linspace`."""
    first, last = (_cast(bound, Preference.floats) for bound in promoted(start, stop))
    log = functions.log
    exponents = linspace(log(first), log(last), num, endpoint, axis=axis)
    numbers = functions.exp(exponents)
    return numbers if dtype is None else _cast(numbers, dtype_of(dtype))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Returns the powers of numbers as the columns of a matrix.

    Args:
        x: [n] numbers.
        N: The number of columns; None: n.
        increasing: Whether the powers rise from the left.
    """
    x = tensor_of(x)
    count = x.shape[0] if N is None else int(N)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return arithmetic.pow(shapes.expand_dims(x, 1), tensor_of(np.ascontiguousarray(powers), x.dtype))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Returns the indices of the main diagonal of an array with `ndim` axes of `n` elements."""
    return (constant(np.arange(int(n), dtype=np.int32)),) * ndim


def ix_(*args: Any) -> list[Tensor]:
    """Returns sequences as arrays that broadcast against each other: indices of their product.

    Raises:
        ValueError: One has more than one axis.
    """
    results = []
    for i, arg in enumerate(args):
        a = tensor_of(arg)
        if len(a.shape) != 1:
            raise ValueError(f"Arguments must be 1-d, got arg {i} of rank {len(a.shape)}")
        if a.dtype is dtypes.bool:
            a = constant(np.flatnonzero(a.numpy()))
        results.append(shapes.reshape(a, [1] * i + [-1] + [1] * (len(args) - i - 1)))
    return results


def _shape(shape: Any) -> Any:
    return [shape] if isinstance(shape, int | np.integer) else shape
