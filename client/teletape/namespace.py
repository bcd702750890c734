"""TensorFlow's public names and the function behind each: written by hand, or derived from the catalogue.

By hand is what TensorFlow converts in a way of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from teletape import debugging, devices, python_calls
from teletape.control_flow import compat_v1, eager, maps
from teletape.derivatives.forward import ForwardAccumulator
from teletape.derivatives.tape import GradientTape
from teletape.functions import function as polymorphic
from teletape.functions.tensor_spec import TensorSpec
from teletape.ops import arrays, clip, create, linalg, nn, segments
from teletape.ops.derived import DERIVED
from teletape.ops.operators import give_operators
from teletape.print_op import tf_print
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import TensorLike

give_operators(TensorLike)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable or IndexedSlices."""
    return isinstance(x, TensorLike | IndexedSlices)


def by_hand() -> dict[str, Callable[..., Any]]:
    """The functions that are written out, by TensorFlow's names for them."""
    functions: dict[str, Callable[..., Any]] = {}
    for module in (create, arrays, clip, eager, maps):
        functions |= {name: getattr(module, name) for name in module.__all__}
    for module, path in ((linalg, "linalg."), (nn, "nn."), (segments, "math.")):
        functions |= {path + name: getattr(module, name) for name in module.__all__}
    for name in ("assert_equal", "assert_greater", "assert_less", "assert_rank", "Assert"):
        functions[name] = getattr(debugging, name)
    functions |= {f"compat.v1.{name}": getattr(compat_v1, name) for name in compat_v1.__all__}
    return functions | {
        "TensorSpec": TensorSpec,
        "is_tensor": is_tensor,
        "linalg.global_norm": clip.global_norm,
        "config.list_logical_devices": devices.list_logical_devices,
        "config.list_physical_devices": devices.list_physical_devices,
        "device": devices.device,
        "numpy_function": python_calls.numpy_function,
        "print": tf_print,
        "py_function": python_calls.py_function,
        "autodiff.ForwardAccumulator": ForwardAccumulator,
        "autodiff.GradientTape": GradientTape,
        "config.functions_run_eagerly": polymorphic.functions_run_eagerly,
        "config.run_functions_eagerly": polymorphic.run_functions_eagerly,
        "norm": linalg.norm,
        "tensordot": linalg.tensordot,
    }


@functools.cache
def surface() -> dict[str, Callable[..., Any]]:
    """Every function of TensorFlow's that there is, by its name without the leading `tf.`."""
    return DERIVED | by_hand()
