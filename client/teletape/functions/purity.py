"""Whether a Python function can be seen to do nothing but compute, so that running it once tells what running it does.

Read off its bytecode, never by running it: it stores nothing outside itself, and calls only Teletape's functions,
operators and methods of tensors, a few builtins, and functions of the same kind. What cannot be seen counts as impure.
"""

from __future__ import annotations

import builtins
import dis
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.tensors.tensor_shape import TensorShape

#: How instructions begin that change something, or of which it cannot be seen what they call.
_FORBIDDEN: Final = (
    "STORE_",
    "DELETE_",
    "IMPORT_",
    "YIELD",
    "RETURN_GEN",
    "SEND",
    "LOAD_BUILD",
    "BEFORE_",
    "RAISE_",
    "GET_A",
)
_OWN: Final = ("STORE_FAST", "DELETE_FAST")  #: But a variable of its own may change.
_BUILTINS: Final = frozenset(
    (abs, bool, dict, enumerate, float, int, len, list, max, min, pow, range, reversed, round, slice, sum, tuple, zip)
)
#: Teletape's modules whose functions only compute.
_COMPUTING: Final = frozenset(
    f"teletape.{name}"
    for name in (
        *(f"ops.{file}" for file in ("arrays", "cast", "clip", "conv", "create", "derived", "dispatch", "linalg")),
        *("ops.math", "ops.nn", "control_flow.eager", "control_flow.maps", "namespace"),
    )
)
_METHODS: Final = frozenset(name for name in dir(EagerTensor) if not name.startswith("_") and name != "numpy")
_VALUES: Final = (TensorLike, TensorShape, DType, bool, int, float, complex, str, np.generic, ModuleType)
_DEPTH: Final = 8


def pure(function: Any, depth: int = _DEPTH) -> bool:
    """Whether calling `function` can be seen to have no effect but its result."""
    if not isinstance(function, FunctionType) or depth == 0:
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(_plain(one, depth) for one in defaults) and _code(function.__code__, function, depth)


def _code(code: CodeType, function: FunctionType, depth: int) -> bool:
    grows = _grows(code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    known: Any = None  # what the last loads are known to stand for: a module, a function, or nothing
    for one in dis.get_instructions(code):
        name = one.opname
        own = name.startswith(_OWN) or (name == "STORE_DEREF" and one.argval in code.co_cellvars)
        if name.startswith(_FORBIDDEN) and not own:
            return False
        if name in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"):
            known = _looked_up(str(one.argval), name, function, cells)
            if not _plain(known, depth, containers=not grows):
                return False
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            attribute = str(one.argval)
            if isinstance(known, ModuleType):
                known = getattr(known, attribute, _UNSEEN)
                if not _plain(known, depth):
                    return False
            elif attribute in _METHODS:
                known = None
            else:
                return False
        elif name == "LOAD_CONST" and isinstance(one.argval, CodeType):
            if not _code(one.argval, function, depth):  # a function inside: it may only use what this one may
                return False
        elif name not in _NEUTRAL:
            known = None
    return True


_NEUTRAL: Final = frozenset(("CACHE", "PRECALL", "PUSH_NULL", "NOP", "RESUME", "COPY_FREE_VARS", "EXTENDED_ARG"))
_UNSEEN: Final = object()


def _looked_up(name: str, how: str, function: FunctionType, cells: dict[str, Any]) -> Any:
    if how == "LOAD_DEREF":
        cell = cells.get(name)
        if cell is None:
            return None  # a variable of its own that a function inside uses
        try:
            return cell.cell_contents
        except ValueError:
            return _UNSEEN
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, _UNSEEN)


def _grows(code: CodeType) -> bool:
    """Whether there is a `+=` or the like, which changes a list."""
    return any(one.opname == "BINARY_OP" and one.argrepr.endswith("=") for one in dis.get_instructions(code))


def _plain(thing: Any, depth: int, *, containers: bool = False) -> bool:
    """Whether using it cannot do more than compute: an immutable value, tensors, or a function that is seen to.

    `containers`: lists and dicts of such count too.
    """
    if isinstance(thing, tuple) or (containers and isinstance(thing, list)):
        return all(_plain(one, depth, containers=containers) for one in thing)
    if containers and isinstance(thing, dict):
        return all(_plain(one, depth, containers=True) for one in thing.values())
    if thing is None or isinstance(thing, _VALUES):
        return True
    if isinstance(thing, type | BuiltinFunctionType):
        return thing in _BUILTINS
    module = str(getattr(thing, "__module__", ""))
    if module.partition(".")[0] == "teletape":
        if module in _COMPUTING:
            return isinstance(thing, FunctionType)
        traced = getattr(thing, "python_function", None)  # a tf.function: what it calls is what counts
        return isinstance(traced, FunctionType) and pure(traced, depth - 1)
    return isinstance(thing, FunctionType) and pure(thing, depth - 1)
