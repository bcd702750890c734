"""`tf.register_tensor_conversion_function`: how a program's own types become tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

__all__ = ["register_tensor_conversion_function"]

_registered: Final[list[tuple[int, tuple[type, ...], Callable[..., Any]]]] = []  #: In the order of priority.
#: The priority of the conversion that is built in: a function of this or more is never called.
_OF_ANYTHING: Final = 200


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Registers a function that makes tensors of the objects of a type, wherever an op takes a tensor.

    Args:
        base_type: A type or several. Objects of a derived type count.
        conversion_func: Called as `conversion_func(value, dtype=…, name=…, as_ref=False)`; returns a tensor, of the
            dtype unless that is None, or NotImplemented to leave the object to the next function.
        priority: The function with the smallest priority is called first; of several, the one registered first. One
            of 200 or more is never called: the conversion that is built in has that, and takes or refuses all.

    Raises:
        TypeError: `base_type` is no type, or one of Python's numbers or NumPy's arrays; the function is not callable.

    Example:
        class Celsius:
            def __init__(self, degrees):
                self.degrees = degrees

        def kelvin(value, dtype=None, name=None, as_ref=False):
            return tf.constant(value.degrees + 273.15, dtype)

        tf.register_tensor_conversion_function(Celsius, kelvin)
        tf.add(Celsius(20.0), 1.0)
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(each, type) for each in types):
        raise TypeError(f"Argument `base_type` must be a type or a tuple of types. Obtained: {base_type}")
    if any(issubclass(each, int | float | np.generic | np.ndarray) for each in types):
        raise TypeError("Cannot register conversions for Python numeric types and NumPy scalars and arrays.")
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func}.")
    _registered.append((priority, types, conversion_func))
    _registered.sort(key=lambda entry: entry[0])


def converted(value: Any, dtype: Any, name: str | None) -> Any:
    """Returns the tensor that a registered function makes of `value`; None if there is no such function.

    Raises:
        RuntimeError: The function returns no tensor, or one of another dtype.
    """
    for priority, types, function in _registered:
        if priority >= _OF_ANYTHING:
            break
        if not isinstance(value, types):
            continue
        tensor = function(value, dtype=dtype, name=name, as_ref=False)
        if tensor is NotImplemented:
            continue
        described = f"Conversion function {function!r} for type {types[0] if len(types) == 1 else types}"
        own_dtype = getattr(tensor, "dtype", None)
        if own_dtype is None or isinstance(tensor, np.ndarray | np.generic):
            raise RuntimeError(f"{described} returned non-Tensor: {tensor!r}")
        if dtype is not None and own_dtype is not dtype:
            raise RuntimeError(
                f"{described} returned incompatible dtype: requested = {dtype.name}, actual = {own_dtype.name}"
            )
        return tensor
    return None
