"""What a conformance program is, and how the programs of a folder are found.

A program is a function ``f(tf, np)`` that uses only the public API of the module ``tf`` and returns nested data that
`compare.encode` knows. It must not care which module it was given, nor which programs ran before it in the process.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conformance import programs

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Program:
    """One program: its id ("file.function"), its function, and what it asks of whoever runs and compares it."""

    id: str
    function: Function
    fresh: bool
    """Needs a process of its own: it counts warnings, declares gradients, or looks at names counted per process."""
    rtol: float | None
    atol: float | None


@dataclass(frozen=True)
class _Mark:
    fresh: bool
    rtol: float | None
    atol: float | None


def program(
    *, fresh: bool = False, rtol: float | None = None, atol: float | None = None
) -> Callable[[Function], Function]:
    """Mark a function as a program. ``rtol`` and ``atol`` replace the tolerances of its floating results."""

    def mark(function: Function) -> Function:
        function.conformance = _Mark(fresh, rtol, atol)  # type: ignore[attr-defined]  # functions take attributes
        return function

    return mark


def load() -> dict[str, Program]:
    """All programs by id, files in the order of their names and functions in the order of their lines."""
    mapping: dict[str, Program] = {}
    for module in sorted(pkgutil.iter_modules(programs.__path__), key=lambda info: info.name):
        for name, function in vars(importlib.import_module(f"{programs.__name__}.{module.name}")).items():
            mark = getattr(function, "conformance", None)
            if isinstance(mark, _Mark):
                key = f"{module.name}.{name}"
                mapping[key] = Program(key, function, mark.fresh, mark.rtol, mark.atol)
    return mapping
