"""The functions that `tf.function` traces: methods without their objects, and converted functions.

A traced function of a method must not keep the object alive. The package `autograph`, which is above, registers the
conversion; it is loaded for the first function that is traced.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Final

from teletape.core.program.tracebacks import report


def identity(value: Any) -> Any:
    """Returns the value: a strong reference in place of a weak one."""
    return value


def without_self(python_function: Callable[..., Any], reference: Callable[[], Any]) -> Callable[..., Any]:
    """Returns the function with the referenced object as its first argument, without keeping the object alive."""

    @functools.wraps(python_function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return python_function(reference(), *args, **kwargs)

    method.unbound = (python_function, reference)  # type: ignore[attr-defined]  # read by the conversion
    parameters = list(inspect.signature(python_function).parameters.values())[1:]
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return method


class BoundFunction:
    """A Function bound to an object, which it keeps alive; traces must not."""

    def __init__(self, function: Any, instance: Any) -> None:
        self._function, self.__self__ = function, instance
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except BaseException as error:
            report(error)
            raise

    def __repr__(self) -> str:
        return f"{repr(self._function)[:-1]}, bound to a {type(self.__self__).__name__}>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_function"], name)


# ----------------------------------------------------------------------------------------------------- conversion
_PACKAGE: Final = "teletape.tf.autograph.api"  #: It is above this one, and registers the conversion when it is loaded.
_convert: Callable[..., Callable[..., Any]] | None = None


def register(convert: Callable[..., Callable[..., Any]]) -> None:
    """Sets the converter: it takes a function and optional features, and returns a function with the same arguments."""
    global _convert
    _convert = convert


def converted(function: Callable[..., Any], features: Any = None) -> Callable[..., Any]:
    """Returns the function with its control flow on tensors converted."""
    if _convert is None:
        importlib.import_module(_PACKAGE)
    assert _convert is not None, "the package registers it"
    return _convert(function, features)
