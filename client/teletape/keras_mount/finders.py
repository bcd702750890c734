"""Finders of two ways to import Keras: `import teletape.keras.layers`, and `import keras` after `import teletape`.

They are in `sys.meta_path` after the import of `teletape`, and import nothing of Keras before they are needed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from teletape.core import environment

_PREFIX: Final = "teletape.keras."


class _SubmoduleLoader(Loader):
    """Loads a submodule of `teletape.keras`: Keras's own module, under both names."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        mount = importlib.import_module("teletape.keras_mount.mount")
        sys.modules[module.__name__] = mount.mounted(module.__name__.removeprefix(_PREFIX))


class KerasFinder(MetaPathFinder):
    """Finds the submodules of `teletape.keras`, and Keras itself for a program that uses Teletape for TensorFlow."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the spec of a module, or None if it is neither; see `importlib.abc.MetaPathFinder`."""
        if name.startswith(_PREFIX):
            return ModuleSpec(name, _SubmoduleLoader(), is_package=True)
        tensorflow = sys.modules.get("tensorflow")  # Teletape itself, if a program has put it there
        is_ours = tensorflow is None or tensorflow is sys.modules.get("teletape")
        if name == "keras" and is_ours and environment.keras_backend() == "tensorflow":
            mount = importlib.import_module("teletape.keras_mount.mount")
            spec: ModuleSpec | None = mount.spec_of_keras(path)
            return spec
        return None


def install() -> None:
    """Puts the finder into `sys.meta_path`."""
    if not any(isinstance(finder, KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, KerasFinder())
