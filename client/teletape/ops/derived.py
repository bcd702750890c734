"""TensorFlow's functions, derived from the catalogue: each op under its TensorFlow names, with TensorFlow's arguments.

What takes shapes, lists or special conversions is written by hand elsewhere; surface.py puts both together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from teletape.ops.arguments import axes
from teletape.ops.dispatch import call
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape_engine.catalogue.attributes import REQUIRED
from teletape_engine.catalogue.op import CATALOGUE, Op

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def derived(leave_out: Collection[str] = ()) -> dict[str, Callable[..., Any]]:
    """The public TensorFlow names of the catalogue ("math.tanh", "tanh") but for some, with their functions."""
    found: dict[str, Callable[..., Any]] = {}
    for op in CATALOGUE.values():
        names = [name for name in op.tf if name not in leave_out]
        if names:
            found.update(dict.fromkeys(names, function_of(op)))
    return found


def function_of(op: Op) -> Callable[..., Any]:
    """The op as a function with TensorFlow's signature: arrays, then attributes, then `name`, which has no effect."""
    readers = {attr.name: _READERS.get(attr.kind) for attr in op.schema.attrs}
    arrays, attrs = op.signature()[: len(op.inputs)], op.signature()[len(op.inputs) :]
    spelled = dict(zip(attrs, (attr.name for attr in op.schema.attrs), strict=True))
    parameters = [inspect.Parameter(name, _POSITIONAL) for name in arrays]
    parameters += [
        inspect.Parameter(
            name, _POSITIONAL, default=inspect.Parameter.empty if attr.default is REQUIRED else attr.default
        )
        for name, attr in zip(attrs, op.schema.attrs, strict=True)
    ]
    parameters.append(inspect.Parameter("name", _POSITIONAL, default=None))
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    signature = inspect.Signature(parameters)

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == len(arrays) and not kwargs:  # the common call: arrays alone, in order
            given: list[Any] = list(args)
            read: dict[str, Any] = {}
        else:
            try:
                bound = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{op.tf[0]}{signature}: {error}") from None
            given = [bound[name] for name in arrays]
            read = {spelled[name]: value for name, value in bound.items() if name in spelled}
            for name, value in read.items():
                reader = readers[name]
                if reader is not None:
                    read[name] = reader(value)
        if op.variadic:
            given = list(given[0])
        return call(op, given, **read)

    function.__name__ = function.__qualname__ = op.tf[0].rsplit(".", 1)[-1]
    function.__doc__ = op.doc
    function.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    return function


def _dtype(value: Any) -> Any:
    return value.np if isinstance(value, DType) else dtypes.as_dtype(value).np


def _number(value: Any) -> Any:
    return value.numpy().item() if hasattr(value, "numpy") else value


_READERS: dict[str, Callable[[Any], Any]] = {
    "DType": _dtype,
    "Axes": axes,
    "Axis": lambda value: axes(value),
    "Ints": axes,
    "Shape": axes,
    "bool": bool,
    "int": int,
    "float": lambda value: float(value),
    "Number": _number,
}
