"""Random numbers of gamma distributions from a state of Philox, and their derivative by the shape parameter.

A number is a function of its shape parameter that leaves the value of the distribution function as it is: Figurnov,
Mohamed, Mnih, "Implicit Reparameterization Gradients", 2018. So its derivative is not that of the steps that drew it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox_streams, special
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise, elementwise_spec, sum_to
from teletape_engine.catalogue.families import batch_loop
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random.distributions import (
    arranged,
    check_fits,
    common_shape,
    counts_of,
    listed,
    stream_bytes,
)
from teletape_engine.ops.random.philox import check_state, unsigned
from teletape_engine.spec import FLOATING, Shape, Spec

_STATE: Final = np.array([1234, 0, 7])
_TERMS: Final = 20_000
_EPSILON: Final = float(np.finfo(np.float64).eps)
_BIG: Final = 1.0 / _EPSILON


def _gamma_spec(state: Spec, alpha: Spec, *, shape: Shape) -> Spec:
    check_state(state)
    check_dtypes("RandomGamma", (alpha,), FLOATING)
    check_fits("RandomGamma", alpha, shape)
    return alpha.with_shape(shape)


def _vjp_alpha(ct: Operand, y: Operand, alpha: Any) -> Operand:
    return sum_to(ct * ops.random_gamma_grad(alpha, y), alpha.shape)


def _jvp_alpha(t: Operand, y: Operand, alpha: Any) -> Operand:
    return t * ops.random_gamma_grad(alpha, y)


@op(
    infer=_gamma_spec,
    vjp=[NON_DIFFERENTIABLE, _vjp_alpha],
    jvp=[NON_DIFFERENTIABLE, _jvp_alpha],
    batch=batch_loop,
    samples=[
        sample(_STATE, np.array([0.5, 2.0]), shape=(3, 2)),
        sample(_STATE, np.array(1.0), shape=()),
    ],
    op_type="RandomGamma",
    like=(0, 1),
    workspace=lambda state, alpha, *, shape: stream_bytes(alpha, alpha.with_shape(shape)),
    integers=("state",),
    traits=[Trait.RANDOM, Trait.IMPLICIT],
)
@on_gpu(down="the state and the parameters", up="the numbers, which the host draws")
def philox_gamma(xp: ArrayModule, state: Array, alpha: Any, *, shape: Shape) -> Array:
    """Numbers of gamma distributions of shape parameter alpha and scale 1, from a state of Philox: int64 [3].

    alpha broadcasts to `shape`. Its gradient is the implicit one.

    Raises:
        InvalidArgumentError: alpha is negative or NaN.
    """
    alphas = on_host(alpha).astype(np.float64)
    if not (alphas >= 0).all():
        raise InvalidArgumentError("RandomGamma: alpha < 0 or alpha contains NaNs")
    full = common_shape(shape, alphas.shape)
    draws, count = counts_of(shape, full)
    numbers = philox_streams.gammas(unsigned(state), listed(alphas, full, draws))
    return xp.asarray(arranged(numbers, shape, draws, count).astype(alpha.dtype))


# ---------------------------------------------------------------------------------------------------------- derivative
def _gamma_grad_spec(alpha: Spec, sample: Spec) -> Spec:
    return elementwise_spec("RandomGammaGrad", alpha, sample, dtypes=FLOATING)


@op(
    infer=_gamma_grad_spec,
    vjp=NOT_REGISTERED,
    batch=batch_elementwise,
    workspace=lambda alpha, sample: 160 * _gamma_grad_spec(alpha, sample).size,
    samples=[sample(np.array([0.5, 2.0, 90.0]), np.array([[0.3], [4.0], [80.0]]))],
    op_type="RandomGammaGrad",
)
@on_gpu(down="its inputs", up="the derivatives, which the host computes")
def random_gamma_grad(xp: ArrayModule, alpha: Any, sample: Array) -> Array:
    """The derivative by alpha of a number `sample` of the gamma distribution of shape parameter alpha and scale 1."""
    a, x = np.broadcast_arrays(*[on_host(each).astype(np.float64) for each in (alpha, sample)])
    slopes = np.where(x == 0, 0.0, np.nan)
    fraction = (x > 1) & (x > a) & np.isfinite(x)
    series = (x > 0) & (a > 0) & ~fraction
    with np.errstate(all="ignore"):
        slopes[fraction] = _by_fraction(a[fraction], x[fraction])
        slopes[series] = _by_series(a[series], x[series])
    return xp.asarray(slopes.astype(alpha.dtype))


def _by_series(a: Array, x: Array) -> Array:
    """-dP/da / dP/dx of P = xᵃ e⁻ˣ S/Γ(a + 1), S = Σ xⁿ/((a + 1)…(a + n)), with the derivative of each term."""
    term, total = np.ones_like(x), np.ones_like(x)
    term_slope, total_slope = np.zeros_like(x), np.zeros_like(x)
    unfinished, r = np.arange(len(x)), a.copy()
    for _ in range(_TERMS):
        if not unfinished.size:
            break
        k = unfinished
        r[k] += 1
        ratio = x[k] / r[k]
        term_slope[k] = (term_slope[k] - term[k] / r[k]) * ratio
        term[k] *= ratio
        total[k] += term[k]
        total_slope[k] += term_slope[k]
        unfinished = k[np.abs(term_slope[k]) > _EPSILON * np.abs(total_slope[k])]
    logarithm = np.log(x) - special.function(np, "digamma", a + 1)
    return -(total_slope + total * logarithm) * x / a


def _by_fraction(a: Array, x: Array) -> Array:
    """dQ/da / dP/dx of Q = xᵃ e⁻ˣ F/Γ(a), F the continued fraction of Legendre, with the derivative of each step."""
    y, z = 1 - a, x - a + 2
    old, new = np.stack([np.ones_like(x), x]), np.stack([x + 1, z * x])  # numerators and denominators
    old_slope, new_slope = np.zeros_like(old), np.stack([np.zeros_like(x), -x])
    value = new[0] / new[1]
    slope = (new_slope[0] - value * new_slope[1]) / new[1]
    unfinished = np.arange(len(x))
    for c in range(1, _TERMS):
        if not unfinished.size:
            break
        k = unfinished
        y[k] += 1
        z[k] += 2
        step = new[:, k] * z[k] - old[:, k] * (y[k] * c)
        step_slope = new_slope[:, k] * z[k] - new[:, k] - old_slope[:, k] * (y[k] * c) + old[:, k] * c
        before = slope[k]
        value[k] = step[0] / step[1]
        slope[k] = (step_slope[0] - value[k] * step_slope[1]) / step[1]
        scale = np.where(np.abs(step[0]) > _BIG, _EPSILON, 1.0)
        old[:, k], new[:, k] = new[:, k] * scale, step * scale
        old_slope[:, k], new_slope[:, k] = new_slope[:, k] * scale, step_slope * scale
        unfinished = k[~(np.abs(slope[k] - before) <= _EPSILON)]
    logarithm = np.log(x) - special.function(np, "digamma", a)
    return (slope + value * logarithm) * x
