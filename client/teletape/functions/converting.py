"""The conversion of a Python function before it is traced; the package `autograph`, which is above, registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _as_it_is(function: Callable[..., Any], features: Any = None) -> Callable[..., Any]:
    return function


_convert: Callable[..., Callable[..., Any]] = _as_it_is


def register(convert: Callable[..., Callable[..., Any]]) -> None:
    """Sets what converts functions: from a function, and optional features, to a function with the same arguments."""
    global _convert
    _convert = convert


def converted(function: Callable[..., Any], features: Any = None) -> Callable[..., Any]:
    """Returns the function with its control flow on tensors converted."""
    return _convert(function, features)
