"""Decompositions of stacked matrices [..., m, n] into several factors, which one result holds."""

from __future__ import annotations

from typing import Any

from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.linalg.diagonal import band_part, stacked
from teletape_engine.ops.linalg.matrix import adjoint_of
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.spec import DTYPES, Spec, shape_text

_REAL = frozenset(DTYPES[name] for name in ("float32", "float64"))
_UPPER = {"num_lower": 0, "num_upper": -1}


def _qr_spec(x: Spec) -> Spec:
    check_dtypes("Qr", (x,), _REAL)
    if x.ndim < 2:
        raise InvalidArgumentError(f"Input tensor 0 must have rank >= 2, got {x.ndim}")
    m, n = x.shape[-2:]
    if m < n:
        raise InvalidArgumentError(
            f"a matrix with at least as many rows as columns is needed, found {shape_text(x.shape)}"
        )
    return x.with_shape((*x.shape[:-2], m + n, n))


def _parts(x: Any, rows: int) -> tuple[Any, Any]:
    """The upper rows, and the lower ones transposed: Q and R, or their cotangents."""
    upper = ops.strided_slice(x, index=("...", (None, rows, None), (None, None, None)))
    return upper, adjoint_of(ops.strided_slice(x, index=("...", (rows, None, None), (None, None, None))))


def _strictly_lower(x: Any) -> Any:
    return x - band_part(x, **_UPPER)


def _divided(x: Any, r: Any, *, adjoint: bool = False) -> Any:
    """x R⁻¹, or x R⁻ᵀ if `adjoint`."""
    return adjoint_of(ops.triangular_solve(r, adjoint_of(x), lower=False, adjoint=not adjoint))


# Walter and Lehmann 2018, Algorithmic differentiation of linear algebra functions. With X = Qᵀ dA R⁻¹ and Ω its
# strictly lower triangle minus that transposed: dQ = dA R⁻¹ + Q (Ω - X), dR = (X - Ω) R.
def _qr_vjp(ct: Any, x_spec: Spec, y: Any) -> Any:
    (q, r), (q_ct, r_ct) = (_parts(each, x_spec.shape[-2]) for each in (y, ct))
    inner = matmul(r, band_part(r_ct, **_UPPER), adjoint_b=True) - matmul(q_ct, q, adjoint_a=True)
    filled = band_part(inner, num_lower=-1, num_upper=0) + adjoint_of(_strictly_lower(inner))
    return _divided(q_ct + matmul(q, filled), r, adjoint=True)


def _qr_jvp(t: Any, x_spec: Spec, y: Any) -> Any:
    q, r = _parts(y, x_spec.shape[-2])
    scaled = _divided(t, r)
    within = matmul(q, scaled, adjoint_a=True)
    lower = _strictly_lower(within)
    upper = within - lower + adjoint_of(lower)
    return concat(scaled - matmul(q, upper), adjoint_of(matmul(upper, r)), axis=-2)


@op(
    infer=_qr_spec,
    vjp=_qr_vjp,
    jvp=_qr_jvp,
    batch=stacked,
    samples=[sample((3, 3)), sample((4, 2)), sample((2, 3, 2), seed=1)],
    op_type="Qr",
    tf=(by_hand("linalg.qr", "an op has one result"),),
    workspace=lambda x: 4 * x.nbytes,
    work=lambda x: x.size * x.shape[-1],
)
def qr(xp: Any, x: Any) -> Any:
    """Q R = x with orthonormal columns Q and upper triangular R, for real matrices [..., m, n] with m >= n.

    The result [..., m + n, n] has the rows of Q above those of Rᵀ.
    """
    q, r = xp.linalg.qr(x)
    return xp.concatenate([q, xp.swapaxes(r, -1, -2)], axis=-2)
