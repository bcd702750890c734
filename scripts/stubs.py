"""The stubs of the public modules: where each public name comes from, for editors and type checkers.

`tf.math` and its like are made when teletape is imported, so that nothing else says what they hold.
"""

import importlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

import public_surface
from functions import formatted

import teletape as tf
from teletape.core import errors
from teletape.core.calls import arguments
from teletape.core.tensors import dtypes
from teletape.extras import raw_ops as raw

FOLDER = Path(__file__).resolve().parent.parent / "client" / "teletape-stubs"
HEAD = '"""What `{name}` holds. Written by `make reference` from scripts/public_surface.py."""\n'


def files() -> dict[Path, str]:
    """The text of every stub."""
    texts = {_file(path): _stub(path, entries) for path, entries in public_surface.by_module().items()}
    texts |= _keras_stubs()
    return {file: formatted(text, file, "I,RUF022") for file, text in texts.items()}


def _keras_stubs() -> dict[Path, str]:
    """The stubs of `teletape.keras` and its submodules: each holds what Keras's own module holds."""
    root = tf.keras
    for name in {module.name for module in pkgutil.iter_modules(root.__path__)} - vars(root).keys():
        importlib.import_module(f"{root.__name__}.{name}")  # such as saving, which Keras leaves to an import
    inner = sorted(name for name, value in vars(root).items() if isinstance(value, ModuleType) and name[0] != "_")
    star = "from {home} import *\n"
    head = HEAD.format(name="tf.keras")
    texts = {FOLDER / "keras" / f"{name}.pyi": head + star.format(home=vars(root)[name].__name__) for name in inner}
    # Keras's own modules, which have sources: pyright warns of modules that are stubs alone.
    lines = [f"from {root.__name__} import {name} as {name}\n" for name in inner]
    return texts | {FOLDER / "keras" / "__init__.pyi": head + star.format(home=root.__name__) + "".join(lines)}


def others(texts: Collection[Path]) -> list[Path]:
    """Stubs of the package that are not among these."""
    return sorted(path for path in FOLDER.rglob("*.pyi") if path not in texts)


def _file(path: str) -> Path:
    outer = any(other.startswith(f"{path}." if path else "") and other != path for other in public_surface.by_module())
    folder = FOLDER.joinpath(*path.split(".")) if path else FOLDER
    return folder / "__init__.pyi" if outer else folder.with_suffix(".pyi")


def _stub(path: str, entries: dict[str, Any]) -> str:
    package = f"teletape.{path}".rstrip(".")
    modules = public_surface.by_module().keys()
    lines = [HEAD.format(name=f"tf.{path}" if path else "teletape")]
    if any(_of_table(value) for value in entries.values()):
        lines.append("import typing")
    values = [] if path else ["__version__: str", "__git_version__: str", "__compiler_version__: str"]
    for name in () if path else sorted(public_surface.LAZY):
        home, _, own = public_surface.LAZY[name].rpartition(".")
        lines.append(f"from {home} import {own} as {name}")
    for name, value in sorted(entries.items()):
        if f"{path}.{name}".lstrip(".") in modules:
            lines.append(f"from {package} import {name} as {name}")
        elif value is None:
            values.append(f"{name}: None")
        elif isinstance(value, str | int | float):
            values.append(f"{name}: {type(value).__name__}")
        elif _of_table(value):
            values.append(_definition(name, value))
        else:
            home, own = _home(f"{path}.{name}".lstrip("."), value)
            lines.append(f"from {home} import {own} as {name}")
    return "\n".join([*lines, "", *values, f"__all__ = {sorted(entries)!r}"])


def _of_table(value: Any) -> bool:
    """Whether a value is a function that a table defines, and no statement of a module."""
    return getattr(value, "__module__", "") == raw.__name__


def _definition(name: str, function: Any) -> str:
    """The stub of a function that a table defines."""
    parameters = [
        f"{parameter.name}: typing.Any" + ("" if parameter.default is parameter.empty else " = ...")
        for parameter in inspect.signature(function).parameters.values()
    ]
    return f"def {name}(*, {', '.join(parameters)}) -> typing.Any: ..."


def _home(dotted: str, value: Any) -> tuple[str, str]:
    """The module that defines a value, and its name there."""
    if isinstance(value, dtypes.DType):
        return dtypes.__name__, dotted.rpartition(".")[2]
    if isinstance(value, types.UnionType):  # an alias of types has no name
        return arguments.__name__, next(own for own, alias in vars(arguments).items() if alias is value)
    home, own = value.__module__, value.__name__
    if home != errors.PUBLIC and vars(sys.modules[home]).get(own) is value:
        return home, own
    home, _, own = public_surface.place(dotted, value).partition(":")
    return f"teletape.{home}", own
