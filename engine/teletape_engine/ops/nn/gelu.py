"""GELU and its gradient, which compute from x what they need: a tape keeps x alone, and no array in between."""

from __future__ import annotations

import math
from typing import Final

from teletape_engine.arrays import Array, ArrayModule, special
from teletape_engine.arrays.tiles import in_tiles
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.elementwise import elementwise, linear_map
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.ops.elementwise.math import exp, square, tanh
from teletape_engine.spec import FLOATING, wide

_SLOPE: Final = math.sqrt(2 / math.pi)
_CUBIC: Final = 0.044715


@elementwise(
    linear_map(lambda ct, x, approximate: ops.gelu_grad(ct, x, approximate=approximate)),
    temporaries=3,
    args="features approximate",
    tf=(
        function(
            "nn.gelu", Conversion.TENSOR("features"), Conversion.FLAG("approximate", False), check="floating_features"
        ),
    ),
    dtypes=FLOATING,
    samples=[sample((2, 3)), sample((2, 3), approximate=True), sample(())],
    traits=[Trait.SATURATES],
)
def gelu(xp: ArrayModule, x: Array, *, approximate: bool = False) -> Array:
    """x·Φ(x), Φ the normal distribution function, elementwise; by tanh if `approximate` (Hendrycks, Gimpel 2016)."""

    def tile(xp: ArrayModule, x: Array) -> Array:
        dtype, x = x.dtype, x.astype(wide(x.dtype), copy=False)
        if approximate:
            y = 0.5 * x * (1 + xp.tanh(_SLOPE * (x + _CUBIC * x * x * x)))
        else:
            y = 0.5 * x * (1 + special.erf(xp, x * math.sqrt(0.5)))
        return y.astype(dtype, copy=False)

    return in_tiles(xp, tile, x)


def _curvature(x: Operand, approximate: bool) -> Operand:
    """The second derivative of GELU."""
    squares = square(x)
    if not approximate:
        return exp(-0.5 * squares) * (2 - squares) / math.sqrt(2 * math.pi)
    t = tanh(_SLOPE * x * (1 + _CUBIC * squares))
    slope = _SLOPE * (1 + 3 * _CUBIC * squares)
    return (1 - square(t)) * (slope + 3 * _CUBIC * _SLOPE * squares - x * t * square(slope))


@elementwise(
    linear_map(lambda ct, x, approximate: ops.gelu_grad(ct, x, approximate=approximate)),
    lambda grad, x, approximate: grad * _curvature(x, approximate),
    temporaries=4,
    dtypes=FLOATING,
    samples=[sample((2, 3), (2, 3)), sample((2, 3), (2, 3), approximate=True), sample((), ()), sample((3,), (2, 1))],
)
def gelu_grad(xp: ArrayModule, grad: Array, x: Array, *, approximate: bool = False) -> Array:
    """grad times the derivative of GELU at x, elementwise."""

    def tile(xp: ArrayModule, grad: Array, x: Array) -> Array:
        dtype = x.dtype if hasattr(x, "dtype") else grad.dtype  # one may be a number
        x = xp.asarray(x, wide(dtype))
        squares = x * x
        if approximate:
            t = xp.tanh(_SLOPE * x * (1 + _CUBIC * squares))
            y = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (_SLOPE * (1 + 3 * _CUBIC * squares))
        else:
            density = xp.exp(-0.5 * squares) * (1 / math.sqrt(2 * math.pi))
            y = 0.5 * (1 + special.erf(xp, x * math.sqrt(0.5))) + x * density
        return (grad * y).astype(dtype, copy=False)

    return in_tiles(xp, tile, grad, x)
