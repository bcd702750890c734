"""TensorFlow's public names and the function behind each: written by hand, or derived from the catalogue.

By hand is what TensorFlow converts in a way of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from teletape import casting, create, debugging, math, nn, shapes
from teletape.calling import call
from teletape.functions import derived
from teletape.slices import IndexedSlices
from teletape.tape import GradientTape
from teletape.tensor import EagerTensor, TensorLike
from teletape_engine.op import CATALOGUE


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable or IndexedSlices."""
    return isinstance(x, TensorLike | IndexedSlices)


def no_gradient(input: Any, T: Any = None, name: str | None = None) -> EagerTensor:
    """`input`, declared non-differentiable: the gradient of everything behind it is None. `T` has no effect."""
    return call(CATALOGUE["no_gradient"], (input,))


def by_hand() -> dict[str, Callable[..., Any]]:
    """The functions that are written out, by TensorFlow's names for them."""
    made: dict[str, Callable[..., Any]] = {}
    for module, inside in ((create, ""), (shapes, ""), (casting, ""), (casting, "dtypes."), (nn, "nn.")):
        made |= {inside + name: getattr(module, name) for name in module.__all__}
    for name in math.__all__:
        for inside in _INSIDE.get(name, ("math.",)):
            made[inside + name] = getattr(math, name)
    for name in ("assert_equal", "assert_greater", "assert_less", "assert_rank", "Assert"):
        made[name] = getattr(debugging, name)
    return made | {
        "is_tensor": is_tensor,
        "linalg.eye": create.eye,
        "math.log_softmax": nn.log_softmax,
        "math.softmax": nn.softmax,
        "autodiff.GradientTape": GradientTape,
        "raw_ops.no_gradient": no_gradient,
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
