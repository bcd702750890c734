"""Teletape: gradients as a service. `import teletape as tf`, and a program written for tf.GradientTape runs on it.

tf.connect("https://gpu-box:8470", api_key="…")   # leave it out: the same engine, inside this process
"""

from __future__ import annotations

import builtins as _builtins
import sys as _sys
from types import ModuleType as _Module
from typing import Any as _Any

from teletape import data, debugging, errors, keras
from teletape.derivatives.arguments import UnconnectedGradients
from teletape.derivatives.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from teletape.derivatives.registered_gradient import RegisterGradient
from teletape.derivatives.tape import GradientTape
from teletape.functions.function import function, init_scope
from teletape.logs import get_logger
from teletape.namespace import surface as _surface
from teletape.ops import random
from teletape.ops.dispatch import constant, convert_to_tensor
from teletape.sessions.current import connect, current
from teletape.sessions.current import within as _within
from teletape.tensors import dtypes, nest
from teletape.tensors.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import Tensor
from teletape.tensors.tensor_shape import TensorShape
from teletape.variables.module import Module
from teletape.variables.name_scope import name_scope
from teletape.variables.variable import Variable

__all__ = [
    "DType",
    "GradientTape",
    "IndexedSlices",
    "Module",
    "RegisterGradient",
    "Tensor",
    "TensorShape",
    "UnconnectedGradients",
    "Variable",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "connect",
    "constant",
    "convert_to_tensor",
    "custom_gradient",
    "data",
    "debugging",
    "double",
    "dtypes",
    "errors",
    "executing_eagerly",
    "float16",
    "float32",
    "float64",
    "function",
    "get_logger",
    "grad_pass_through",
    "half",
    "init_scope",
    "inside_function",
    "int8",
    "int16",
    "int32",
    "int64",
    "keras",
    "name_scope",
    "nest",
    "newaxis",
    "no_gradient",
    "random",
    "recompute_grad",
    "session",
    "string",
    "sync",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

__version__ = "0.1.0"

newaxis = None


def no_gradient(op_type: str) -> None:
    """Declares that ops of this TensorFlow type have no gradient, from now on, for every tape asked from now on.

    Raises:
        TypeError: Not a string.
        KeyError: The type is registered, or has been declared before.
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    try:
        current().declare_no_gradient(op_type)
    except errors.TeletapeError as error:
        raise error.surfaced() from None


def sync() -> None:
    """Returns when everything recorded so far has happened on the server; raises what failed meanwhile."""
    current().sync()


def session() -> _Any:
    """The program's session: its id, `summary()` of what it asked of the server, `close()`."""
    return current()


def executing_eagerly() -> _builtins.bool:
    """Whether ops run, or are recorded for the server, one by one: everywhere but where a tf.function is traced."""
    return not current().tracing


def inside_function() -> _builtins.bool:
    """Whether a tf.function is being traced, also in an `init_scope` there."""
    return _within() > 0


def _namespace(path: str) -> _Module:
    """The module `tf.<path>`: one of this package's own, or one made for TensorFlow's names that have no file."""
    parent, _, last = path.rpartition(".")
    outer = _namespace(parent) if parent else _sys.modules[__name__]
    module = getattr(outer, last, None)
    if not isinstance(module, _Module):
        module = _sys.modules[f"{__name__}.{path}"] = _Module(f"{__name__}.{path}", f"TensorFlow's `tf.{path}`.")
        setattr(outer, last, module)
    return module


def _place(path: str, thing: _Any) -> None:
    parent, _, last = path.rpartition(".")
    setattr(_namespace(parent) if parent else _sys.modules[__name__], last, thing)


for _path, _thing in _surface().items():
    _place(_path, _thing)
