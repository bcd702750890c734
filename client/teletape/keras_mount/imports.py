"""Gives Keras's modules a private `import tensorflow`, and replaces a few of their functions.

`__import__` is looked up in a module's builtins. Keras's modules get builtins in which it returns Teletape for
TensorFlow, so that nothing named `tensorflow` is in `sys.modules`, and a real TensorFlow can be imported too.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

from teletape.core.program import call_site
from teletape.keras_mount import replacements, surface


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` of Keras's modules."""
    if level == 0 and (name == "tensorflow" or name.startswith("tensorflow.")):
        module: ModuleType = surface.module(name if fromlist else "tensorflow")
        return module
    return builtins.__import__(name, globals, locals, fromlist or (), level)


_BUILTINS: Final[dict[str, Any]] = {**vars(builtins), "__import__": _import}


def make_private(module: ModuleType) -> None:
    """Makes a module, before it is executed, import Teletape for TensorFlow."""
    module.__dict__["__builtins__"] = _BUILTINS


def is_private(module: ModuleType) -> bool:
    """Whether a module imports Teletape for TensorFlow."""
    return module.__dict__.get("__builtins__") is _BUILTINS


class _Loader(SourceFileLoader):
    """Loads a module of Keras from its source file."""

    def exec_module(self, module: ModuleType) -> None:
        make_private(module)
        super().exec_module(module)
        replacements.replace(module)


class _Finder(MetaPathFinder):
    """Finds the modules of Keras as Python does, and gives them another loader."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "keras" and not name.startswith("keras."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
            if name == "keras":
                call_site.add_package(os.path.dirname(spec.loader.path))
        return spec


_finder: Final = _Finder()


def install() -> MetaPathFinder:
    """Makes the modules of Keras that are imported from now on import Teletape for TensorFlow; returns the finder."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    return _finder
