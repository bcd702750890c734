"""The public modules, `tf` itself and those such as `tf.math`: a name in them is imported when it is first used.

They list public names alone. This module and `table` are all that `import teletape` loads.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections import defaultdict
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from teletape.names.table import CLASSES, LAZY, NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PACKAGE: Final = "teletape"
#: Modules whose public classes are prepared as soon as they are loaded.
_PREPARED: Final = frozenset(f"{_PACKAGE}.{name}" for name in CLASSES)


@functools.cache
def by_module() -> dict[str, list[str]]:
    """Returns the names of each public module, by its path ("" for `tf` itself)."""
    modules: defaultdict[str, set[str]] = defaultdict(set, {"": set()})
    for dotted in NAMES:
        path, _, name = dotted.rpartition(".")
        modules[path].add(name)
        while path:
            outer, _, last = path.rpartition(".")
            modules[outer].add(last)
            path = outer
    return {path: sorted(names) for path, names in modules.items()}


def publish(package: ModuleType) -> list[str]:
    """Makes the public modules below the package, and returns the names of the package itself."""
    modules: dict[str, ModuleType] = {"": package}
    for path in sorted(by_module()):  # an outer module before those inside it
        if path:
            name = f"{_PACKAGE}.{path}"
            modules[path] = sys.modules[name] = ModuleType(name, f"The part of TensorFlow's `tf.{path}` that is here.")
            outer, _, last = path.rpartition(".")
            setattr(modules[outer], last, modules[path])
    for path, names in by_module().items():
        modules[path].__all__ = names  # type: ignore[attr-defined]  # of a module made here
        open_module(path, modules[path])
    importlib.import_module(f"{_PACKAGE}.keras_mount.finders").install()
    if not any(isinstance(finder, _Preparing) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Preparing())
        sys.meta_path.append(_Missing())
    for name in _PREPARED & sys.modules.keys():
        _prepare(sys.modules[name])
    return by_module()[""]


def open_module(path: str, module: ModuleType) -> None:
    """Makes a public module list its public names, import them when they are used, and explain missing ones."""
    listed: list[str] = module.__all__ if path else [*module.__all__, *LAZY]
    setattr(module, "__dir__", functools.partial(sorted, listed))  # noqa: B010  # read by dir(), not a method
    answer = (Answer if path else _AnswerOfPackage)(functools.partial(_value, path))
    setattr(module, "__getattr__", answer)  # noqa: B010
    vars(module).setdefault("__path__", [])  # so that imports of its names use the finder, which answers


class Answer:
    """The `__getattr__` of a public module.

    Args:
        missing: Returns a name that is imported when first used; raises AttributeError if there is no such name.
    """

    def __init__(self, missing: Callable[[str], Any]) -> None:
        self._missing = missing

    def __call__(self, name: str) -> Any:
        """Returns the value of a name; an error shows only the program's lines."""
        if name.startswith("__") or self._imports(name):  # Python looks for it
            raise AttributeError(f"no attribute {name!r}")
        try:
            return self._missing(name)
        except BaseException as error:
            _report(error)
            raise

    def _imports(self, name: str) -> bool:
        """Returns whether `from … import name` imports a module of the package; first it looks for an attribute."""
        return False


class _AnswerOfPackage(Answer):
    def _imports(self, name: str) -> bool:
        if name in NAMES or name in LAZY:
            return False
        return PathFinder.find_spec(f"{_PACKAGE}.{name}", sys.modules[_PACKAGE].__path__) is not None


def _report(error: BaseException) -> None:
    """Removes the frames of this package from an error, like `program.tracebacks`; a bare `raise` must follow."""
    tracebacks = importlib.import_module(f"{_PACKAGE}.core.program.tracebacks")
    tracebacks.report(error)


def _value(path: str, name: str) -> Any:
    publishing = importlib.import_module(f"{_PACKAGE}.names.publishing")
    return publishing.value_of(path, name)


class _Preparing(MetaPathFinder):
    """Finds modules with public classes by the other finders, and prepares these modules after they are loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the spec of such a module, else None; see `importlib.abc.MetaPathFinder`."""
        if name not in _PREPARED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_prepare(module: ModuleType) -> None:
                load(module)
                _prepare(module)

            spec.loader.exec_module = load_and_prepare  # type: ignore[method-assign]
        return spec


def _prepare(module: ModuleType) -> None:
    publishing = importlib.import_module(f"{_PACKAGE}.names.publishing")
    publishing.prepare(module.__name__)


class _Missing(MetaPathFinder):
    """The last finder of modules: for a name in a public module it raises the module's answer to missing attributes."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns None for names outside public modules; see `importlib.abc.MetaPathFinder`.

        Raises:
            ModuleNotFoundError: There is no such name. The error names no module, because `from` ignores errors that
                do.
        """
        try:
            _refuse(name)
        except BaseException as error:
            _report(error)
            raise
        return None


def _refuse(name: str) -> None:
    outer, _, last = name.rpartition(".")
    module = sys.modules.get(outer)
    if last.startswith("_") or module is None or not isinstance(vars(module).get("__getattr__"), Answer):
        return
    try:
        getattr(module, last)
    except AttributeError as error:
        raise ModuleNotFoundError(str(error)) from None
