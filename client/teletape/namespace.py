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
from teletape.ops import arrays, cast, clip, conv, create, linalg, math, nn, segments
from teletape.ops.derived import derived
from teletape.ops.dispatch import call
from teletape.print_op import tf_print
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable or IndexedSlices."""
    return isinstance(x, TensorLike | IndexedSlices)


def no_gradient(input: Any, T: Any = None, name: str | None = None) -> EagerTensor:
    """`input`, declared non-differentiable: the gradient of everything behind it is None. `T` has no effect."""
    return call(CATALOGUE["no_gradient"], (input,))


def by_hand() -> dict[str, Callable[..., Any]]:
    """The functions that are written out, by TensorFlow's names for them."""
    made: dict[str, Callable[..., Any]] = {}
    for module in (create, arrays, cast, clip, eager, maps):
        made |= {name: getattr(module, name) for name in module.__all__}
    for module, inside in (
        (cast, "dtypes."),
        (conv, "nn."),
        (linalg, "linalg."),
        (nn, "nn."),
        (segments, "math."),
    ):
        made |= {inside + name: getattr(module, name) for name in module.__all__}
    for name in math.__all__:
        for inside in _INSIDE.get(name, ("math.",)):
            made[inside + name] = getattr(math, name)
    for name in ("assert_equal", "assert_greater", "assert_less", "assert_rank", "Assert"):
        made[name] = getattr(debugging, name)
    made |= {f"compat.v1.{name}": getattr(compat_v1, name) for name in compat_v1.__all__}
    return made | {
        "TensorSpec": TensorSpec,
        "einsum": linalg.einsum,
        "is_tensor": is_tensor,
        "linalg.eye": create.eye,
        "linalg.global_norm": clip.global_norm,
        "math.log_softmax": nn.log_softmax,
        "math.softmax": nn.softmax,
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
        "raw_ops.no_gradient": no_gradient,
        "tensordot": linalg.tensordot,
    }


_INSIDE = {
    "add_n": ("", "math."),
    "complex": ("", "dtypes."),
    "divide": ("", "math."),
    "matmul": ("", "linalg."),
    "truediv": ("", "math."),
}


@functools.cache
def surface() -> dict[str, Callable[..., Any]]:
    """Every function of TensorFlow's that there is, by its name without the leading `tf.`."""
    written = by_hand()
    return derived(leave_out=written) | written
