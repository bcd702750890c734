"""The modules that Keras gets for `tensorflow` and its submodules: Teletape's public names, and a few inert ones."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

from teletape.keras_mount.inert import INERT

_MISSING: Final = object()


class Surface(ModuleType):
    """A module for Keras: its names are those of INERT, else the public names of `teletape`.

    Args:
        path: Its dotted name without "tensorflow".
        public: The public module with that name, or None.
    """

    def __init__(self, path: str, public: ModuleType | None) -> None:
        super().__init__(f"tensorflow.{path}".rstrip("."))
        self.__path__: list[str] = []
        self._path, self._public = path, public

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}".lstrip(".")
        value = INERT.get(path, _MISSING)
        if value is _MISSING:
            if name.startswith("__") and name not in ("__internal__", "__version__"):
                raise AttributeError(name)
            value = self._public_value(name, path)
        setattr(self, name, value)
        return value

    def _public_value(self, name: str, path: str) -> Any:
        prefix = f"{path}."
        has_inert = any(known.startswith(prefix) for known in INERT)
        if self._public is None:
            if not has_inert:
                raise AttributeError(f"tf.{path} is not in Teletape", name=name)
            return Surface(path, None)
        if has_inert:
            public = getattr(self._public, name, None)
            return Surface(path, public if isinstance(public, ModuleType) else None)
        value = getattr(self._public, name)
        return Surface(path, value) if isinstance(value, ModuleType) else value


_root: Final = Surface("", sys.modules["teletape"])


def module(name: str) -> Any:
    """Returns the module for Keras's `import tensorflow.x.y`.

    Raises:
        ModuleNotFoundError: There is no such module.
    """
    value: Any = _root
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            raise ModuleNotFoundError(f"No module named {name!r} in Teletape", name=name) from None
    return value
